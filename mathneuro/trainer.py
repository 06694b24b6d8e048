"""The Trainer whose methods are the commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lightning.pytorch import Trainer
from typing_extensions import override

from mathneuro.edit import Edit
from mathneuro.errors import InputError

if TYPE_CHECKING:
    from mathneuro.data.module import TextDataModule
    from mathneuro.module import CausalLanguageModel


Command = Literal["operate", "predict", "validate"]


class MathNeuroTrainer(Trainer):
    """Lightning's Trainer with the commands ``operate``, ``predict`` and ``validate``."""

    command: Command | None = None
    """The command that is running."""

    def operate(self, model: "CausalLanguageModel", datamodule: "TextDataModule") -> None:
        """Evaluate, identify, intervene, evaluate again: the main job."""
        self._begin("operate")
        super().validate(model, datamodule=datamodule, verbose=False)
        if model.importance is None:
            super().predict(model, datamodule=datamodule, return_predictions=False)
        model.intervening = True
        try:
            super().validate(model, datamodule=datamodule, verbose=False)
        finally:
            model.intervening = False

    @override
    def predict(  # type: ignore[override]
        self, model: "CausalLanguageModel", datamodule: "TextDataModule"
    ) -> None:
        """Identify only: save the importance of every parameter, to be used again."""
        self._begin("predict")
        super().predict(model, datamodule=datamodule, return_predictions=False)

    @override
    def validate(  # type: ignore[override]
        self,
        model: "CausalLanguageModel",
        datamodule: "TextDataModule",
        edit: Path | None = None,
    ) -> list[Any]:
        """Evaluate only: tasks and perplexity, optionally with a saved edit applied.

        Args:
            model: The model.
            datamodule: The texts.
            edit: An edit file that ``operate`` wrote; the model is evaluated with it.
        """
        self._begin("validate")
        if edit is not None:
            model.edit, model.intervening = Edit.load(edit), True
        return list(super().validate(model, datamodule=datamodule, verbose=False))

    def _begin(self, command: Command) -> None:
        """Note the command, and refuse settings that would leave out texts without a word."""
        self.command = command
        if self.world_size > 1 and command != "predict":
            raise InputError(
                f"trainer.devices: got {self.world_size} processes, but `{command}` evaluates in "
                "one; run `predict` on all devices, then `operate` with trainer.devices 1 and "
                "importance.file"
            )
        for name in ("limit_predict_batches", "limit_val_batches"):
            limit = getattr(self, name)
            if isinstance(limit, int) or limit != 1.0:
                raise InputError(
                    f"trainer.{name} (or fast_dev_run): got {limit}, but every text "
                    "must be used; lower data.num_samples or data.held_out instead"
                )
