"""The command line: Lightning's CLI with our commands, our callbacks and short error messages."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ProgressBar
from lightning.pytorch.cli import (
    ArgsType,
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)
from typing_extensions import override

from mathneuro.data.module import TextDataModule
from mathneuro.errors import InputError
from mathneuro.messages import shorten
from mathneuro.module import CausalLanguageModel
from mathneuro.trainer import MathNeuroTrainer

DESCRIPTION = """Find the parameters of a language model that matter for math and not for ordinary
language, prune or scale them, and measure what that did. Start with:
python main.py operate --config configs/quickstart.yaml"""


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
    """LightningCLI with the commands ``operate``, ``predict`` and ``validate``.

    Args:
        callbacks: Classes of the callbacks that always run, by their name in the config.
        save_config: Callback that saves the config.
        progress_bar: Callback that shows progress, unless the config names another.
    """

    def __init__(
        self,
        callbacks: Mapping[str, type[Callback]],
        save_config: type[SaveConfigCallback],
        progress_bar: type[ProgressBar],
    ) -> None:
        self._callback_classes = dict(callbacks)
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
        """Give every callback a section of its own, and the run a folder."""
        for name, callback in self._callback_classes.items():
            parser.add_lightning_class_args(callback, name)
        parser.add_argument("--folder", type=str, default="runs/run", help="Folder of the run.")
        parser.link_arguments("folder", "trainer.default_root_dir")

    @staticmethod
    @override
    def subcommands() -> dict[str, set[str]]:
        """Return the commands and the arguments that do not come from the command line."""
        return {name: {"model", "datamodule"} for name in ("operate", "predict", "validate")}

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
        callbacks = trainer["callbacks"] = list(trainer["callbacks"] or [])
        bars = [each for each in callbacks if isinstance(each, ProgressBar)]
        if trainer["enable_progress_bar"] is not False and not bars:
            callbacks.append(self._progress_bar())
        folder = make_folder(self._get(self.config_init, "folder"))
        if trainer["logger"] in (None, True):
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


def make_folder(folder: str) -> str:
    """Make the folder of a run.

    Raises:
        InputError: If that cannot be.
    """
    try:
        if not folder.strip():
            raise OSError("it has no name")
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"folder: {folder!r} cannot be made ({error.strerror or error}); give another folder"
        ) from error
    return folder


def run(
    callbacks: Mapping[str, type[Callback]],
    save_config: type[SaveConfigCallback],
    progress_bar: type[ProgressBar],
) -> None:
    """Run the command line; a mistake in its input ends it with one sentence and status 2."""
    try:
        CommandLine(callbacks, save_config, progress_bar)
    except InputError as error:
        fail(str(error))


def fail(sentence: str) -> None:
    """Print an error and exit with status 2."""
    sys.stderr.write(f"error: {sentence}\n")
    raise SystemExit(2)
