"""What a callback needs to know of the run that it is called in."""

from dataclasses import dataclass
from pathlib import Path

from lightning.pytorch import LightningModule, Trainer

from mathneuro.data.module import TextDataModule
from mathneuro.module import CausalLanguageModel
from mathneuro.trainer import Command, MathNeuroTrainer


@dataclass(frozen=True)
class Run:
    """A run, by its parts.

    Attributes:
        module: The model with what was found and measured so far.
        data: The sets of texts.
        command: The command that is running. None: a method of a plain Trainer.
        folder: Where the run leaves its files.
        is_first: Whether this process is the one that writes and prints.
        has_logger: Whether anything is logged.
    """

    module: CausalLanguageModel
    data: TextDataModule
    command: Command | None
    folder: Path
    is_first: bool
    has_logger: bool

    @property
    def writes(self) -> bool:
        """Whether this process writes what an evaluation found.

        The first does, and in a sweep whose settings are divided among processes each does.
        """
        return self.is_first or self.module.evaluators.count == 1


def running(trainer: Trainer, pl_module: LightningModule) -> Run:
    """Return the parts of the run that Lightning hands to a callback.

    Raises:
        TypeError: If the module or the data are not MathNeuro's.
    """
    data = getattr(trainer, "datamodule", None)
    if not isinstance(pl_module, CausalLanguageModel) or not isinstance(data, TextDataModule):
        raise TypeError(
            "Expected a CausalLanguageModel and a TextDataModule but got "
            f"{type(pl_module).__name__} and {type(data).__name__}."
        )
    return Run(
        module=pl_module,
        data=data,
        command=trainer.command if isinstance(trainer, MathNeuroTrainer) else None,
        folder=Path(trainer.default_root_dir),
        is_first=trainer.is_global_zero,
        has_logger=bool(trainer.loggers),
    )
