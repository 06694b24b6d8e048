"""What the terminal shows: our lines, progress bars, warnings about results, and no more."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from mathneuro.watch import watch_parent

if TYPE_CHECKING:
    from rich.console import Console

LABEL_WIDTH = 11
"""Columns that the label of a line takes."""


def settle() -> None:
    """Make bars appear for what takes longer than two seconds; end with who started this process.

    Has to run before anything else is imported: tqdm reads its settings from the environment then.
    """
    watch_parent()
    os.environ.setdefault("TQDM_DELAY", "2")
    os.environ.setdefault("TQDM_LEAVE", "")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # When a process ends, the others would print what their sockets noticed, frame by frame.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if not is_first_process():
        os.environ["TQDM_DISABLE"] = "1"


def is_first_process() -> bool:
    """Tell whether this is the first of the processes that were started together, or alone."""
    # Set by Lightning and torchrun, and by SLURM.
    ranks = ("LOCAL_RANK", "RANK", "NODE_RANK", "SLURM_PROCID")
    return all(os.environ.get(name, "0") == "0" for name in ranks)


def quieten() -> None:
    """Keep what libraries tell of themselves off the terminal, once they are imported."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It tells why it kills the run: a process that it started was killed.
    logging.getLogger("lightning.fabric.strategies.launchers.subprocess_script").setLevel(
        logging.INFO
    )
    unneeded = ("does not have many workers", "treespec, LeafSpec", "across ranks is zero")
    for message in (f".*{words}.*" for words in unneeded):
        warnings.filterwarnings("ignore", message=message)


@contextmanager
def saving_quietly() -> Iterator[None]:
    """Keep off the terminal what libraries tell of weights that are on the disk on purpose."""
    loggers = [logging.getLogger(name) for name in ("accelerate", "transformers")]
    levels = [logger.level for logger in loggers]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*model with offloaded modules.*")
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def tell(label: str, text: str) -> None:
    """Print one line: what it is about, and what is to be said."""
    say(f"{label:<{LABEL_WIDTH}} {text}")


def counted(number: int, noun: str) -> str:
    """Write a number of things.

    Example:
        >>> counted(1, "draw"), counted(1200, "draw")
        ('1 draw', '1,200 draws')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def say(line: str) -> None:
    """Print one line as it is."""
    _console().print(line, markup=False, emoji=False)


@cache
def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)
