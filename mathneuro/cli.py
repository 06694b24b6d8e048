"""The command line: Lightning's CLI with our commands, our callbacks and short error messages."""

import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, set_dumper
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ProgressBar
from lightning.pytorch.cli import (
    ArgsType,
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import distributed
from typing_extensions import override

from mathneuro.commands import ALONE, NEED_MODEL, NO_FOLDER
from mathneuro.data.module import TextDataModule
from mathneuro.errors import InputError
from mathneuro.failure import tell_once, what_went_wrong
from mathneuro.grid import Grid
from mathneuro.messages import shorten
from mathneuro.module import CausalLanguageModel
from mathneuro.signals import ending_when_told
from mathneuro.strategies import check_strategy_name
from mathneuro.terminal import is_first_process
from mathneuro.trainer import MathNeuroTrainer
from mathneuro.watch import reason, watching
from mathneuro.yaml_text import dump

DESCRIPTION = """Find the parameters of a language model that matter for math and not for ordinary
language, prune or scale them, and measure what that did. Start with:
python main.py operate --config configs/quickstart.yaml"""


FAULT = 1
"""Exit status of a run that a fault of the program ended."""

MISTAKE = 2
"""Exit status of a run that a mistake in its input ended."""

TERMINATED = 128 + signal.SIGTERM
"""Exit status of a run that a scheduler or ``kill`` ended."""

RUN_PARTS = {"model", "datamodule"}
"""Arguments of commands that do not come from the command line."""


class Parser(LightningArgumentParser):
    """A parser that answers a mistake with one sentence rather than with its whole usage."""

    @override
    def error(self, message: str, ex: Exception | None = None) -> None:  # type: ignore[override]
        """Print what is wrong and exit with status 2."""
        fail(shorten(message, options(self)))


def options(parser: ArgumentParser) -> list[str]:
    """List the names of all options of a parser and of its commands."""
    names = []
    for action in parser._actions:
        names.append(action.dest)
        if isinstance(action.choices, Mapping):
            names += [name for each in action.choices.values() for name in options(each)]
    return list(dict.fromkeys(names))


class CommandLine(LightningCLI):
    """LightningCLI with the commands of `MathNeuroTrainer`.

    Args:
        callbacks: Classes of the callbacks that always run, by their name in the config.
        silent_callbacks: Classes of callbacks that always run and have no options.
        save_config: Callback that saves the config.
        progress_bar: Callback that shows progress, unless the config names another.
    """

    def __init__(
        self,
        callbacks: Mapping[str, type[Callback]],
        silent_callbacks: Sequence[type[Callback]],
        save_config: type[SaveConfigCallback],
        progress_bar: type[ProgressBar],
    ) -> None:
        set_dumper("yaml", dump)
        self._callback_classes = dict(callbacks)
        self._silent_callbacks = tuple(silent_callbacks)
        self._progress_bar = progress_bar
        super().__init__(
            CausalLanguageModel,
            TextDataModule,
            save_config_callback=save_config,
            save_config_kwargs={"save_to_log_dir": False},
            trainer_class=MathNeuroTrainer,
            trainer_defaults={
                "enable_checkpointing": False,
                "enable_model_summary": False,
                "use_distributed_sampler": False,
                # Inference tensors do not count their changes, which the sharing of norms needs.
                "inference_mode": False,
            },
            seed_everything_default=0,
            parser_class=Parser,
            parser_kwargs={"description": DESCRIPTION},
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
        )

    @override
    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Give every callback and the grid a section of their own, and the run a folder."""
        for name, callback in self._callback_classes.items():
            parser.add_lightning_class_args(callback, name)
        parser.add_class_arguments(Grid, "grid")
        parser.add_argument("--folder", type=str, default="runs/run", help="Folder of the run.")
        parser.link_arguments("folder", "trainer.default_root_dir")

    @staticmethod
    @override
    def subcommands() -> dict[str, set[str]]:
        """Return the commands and the arguments that do not come from the command line."""
        commands = dict.fromkeys(NEED_MODEL, RUN_PARTS)
        return {**commands, **{name: set() for name in ALONE}}

    @override
    def _prepare_subcommand_parser(
        self, klass: type, subcommand: str, **keywords: Any
    ) -> LightningArgumentParser:
        """Give a command that needs files alone its own arguments, and no others.

        Commands that are not asked for get none: making all of them takes most of a second.
        """
        if asked_command() not in (None, subcommand):
            return self.init_parser(**keywords)
        if subcommand not in ALONE:
            return super()._prepare_subcommand_parser(klass, subcommand, **keywords)
        parser = self.init_parser(**keywords)
        parser.add_method_arguments(klass, subcommand)
        return parser

    @override
    def _set_seed(self) -> None:
        if self.subcommand not in ALONE:
            super()._set_seed()

    @override
    def instantiate_classes(self) -> None:
        """Build model, data and Trainer, for the commands that need them."""
        if self.subcommand in ALONE:
            return
        super().instantiate_classes()
        if isinstance(self.trainer, MathNeuroTrainer):
            self.trainer.grid = self._get(self.config_init, "grid")

    @override
    def _run_subcommand(self, subcommand: str) -> None:
        if subcommand not in ALONE:
            with ending_together(self.trainer):
                super()._run_subcommand(subcommand)
            return
        if not is_first_process():
            return
        options = dict(self.config[subcommand])
        options.pop("config", None)
        getattr(MathNeuroTrainer, subcommand)(**options)

    @override
    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parse, and refuse a config that holds no text."""
        try:
            super().parse_arguments(parser, args)
        except UnicodeDecodeError as error:
            raise InputError(
                f"--config: the file holds no text ({error.reason}); give a YAML file"
            ) from error

    @override
    def instantiate_trainer(self, **keywords: Any) -> Trainer:
        """Build the Trainer, with TensorBoard's files in the run's own folder."""
        from lightning.pytorch.loggers import TensorBoardLogger

        trainer = self._get(self.config_init, "trainer")
        if isinstance(trainer["strategy"], str):
            check_strategy_name(trainer["strategy"])
        callbacks = trainer["callbacks"] = list(trainer["callbacks"] or [])
        callbacks += [callback() for callback in self._silent_callbacks]
        bars = [each for each in callbacks if isinstance(each, ProgressBar)]
        if trainer["enable_progress_bar"] is not False and not bars:
            callbacks.append(self._progress_bar())
        folder = self._get(self.config_init, "folder")
        if self.subcommand not in NO_FOLDER and not self._get(self.config_init, "dry_run", False):
            make_folder(folder)
        if self.subcommand in ("sweep", "consistency") and trainer["logger"] is None:
            # A sweep writes TensorBoard's pages itself, so that they are whole after a resume.
            keywords["logger"] = False
        elif trainer["logger"] in (None, True):
            keywords["logger"] = TensorBoardLogger(
                folder, name="", version="", default_hp_metric=False
            )
        try:
            return super().instantiate_trainer(**keywords)
        except (MisconfigurationException, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"trainer: Lightning refuses these settings ({reason}); see its documentation of "
                "the Trainer"
            ) from error


def asked_command() -> str | None:
    """Return the command that the command line names first; None: it names none."""
    return next((word for word in sys.argv[1:] if word in (*NEED_MODEL, *ALONE)), None)


def make_folder(folder: str) -> None:
    """Make the folder of a run, in which files can be made.

    Raises:
        InputError: If that cannot be.
    """
    try:
        if not folder.strip():
            raise OSError("it has no name")
        Path(folder).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"folder: {folder!r} cannot be made or written to ({error.strerror or error}); give "
            "another folder"
        ) from error


def run(
    callbacks: Mapping[str, type[Callback]],
    silent_callbacks: Sequence[type[Callback]],
    save_config: type[SaveConfigCallback],
    progress_bar: type[ProgressBar],
) -> None:
    """Run the command line; a mistake in its input ends it with one sentence and status 2."""
    try:
        CommandLine(callbacks, silent_callbacks, save_config, progress_bar)
    except InputError as error:
        fail(str(error))


@contextmanager
def ending_together(trainer: Trainer) -> Iterator[None]:
    """End the processes that this one started when it fails, once one of all has told why.

    Raises:
        SystemExit: If this or another process failed.
    """
    try:
        with ending_when_told(trainer), watching():
            yield
    except SIGTERMException:
        if sentence := reason():
            fail(sentence)
        who = f"process {trainer.global_rank}" if trainer.world_size > 1 else "this run"
        tell_once(lambda: sys.stderr.write(f"error: trainer: {who} was told to end (SIGTERM)\n"))
        # As a shell tells of it; the exception's own status is that of success.
        raise SystemExit(TERMINATED) from None
    except InputError as error:
        fail(str(error))
    except Exception as error:
        if sentence := what_went_wrong(error):
            fail(sentence)
        if not distributed.is_initialized():
            raise
        tell_once(traceback.print_exc)
        raise SystemExit(FAULT) from None
    finally:
        launcher = trainer.strategy.launcher
        if sys.exc_info()[0] is not None and isinstance(launcher, _SubprocessScriptLauncher):
            # Processes that wait for others within a library hear of no gentler signal.
            launcher.kill(signal.SIGKILL)


def fail(sentence: str) -> NoReturn:
    """Print an error, in one of several processes, and exit with status 2."""
    tell_once(lambda: sys.stderr.write(f"error: {sentence}\n"))
    raise SystemExit(MISTAKE)
