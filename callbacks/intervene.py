"""When the edit is on the model: during a validation that asks for it."""

from typing import TYPE_CHECKING

from lightning.pytorch import Callback
from torch import Tensor
from typing_extensions import override

from mathneuro.edit import Edit, check_factor

if TYPE_CHECKING:
    from mathneuro.module import CausalLanguageModel
    from mathneuro.trainer import MathNeuroTrainer


class Intervene(Callback):
    """Multiplies the selected parameters during validation and restores them bit for bit.

    Args:
        factor: What selected parameters are multiplied by: 0 prunes, 1.1 scales up.
    """

    def __init__(self, factor: float = 0.0) -> None:
        check_factor(factor, {})
        self.factor = factor
        self._saved: dict[str, Tensor] | None = None
        self._edit: Edit | None = None

    @override
    def on_validation_start(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Apply the edit, if this validation is to see it."""
        if not pl_module.intervening:
            check_factor(self.factor, pl_module.coverage.linears)
            return
        if pl_module.edit is None and pl_module.selection is not None:
            pl_module.edit = Edit(pl_module.selection, self.factor, pl_module.identity)
        if pl_module.edit is None:
            raise RuntimeError("Nothing was selected before the evaluation of an edit.")
        pl_module.edit.check_model(pl_module.identity["weight_hash"])
        check_factor(pl_module.edit.factor, pl_module.coverage.linears)
        self._edit = pl_module.edit
        self._saved = self._edit.apply(pl_module.model)

    @override
    def on_validation_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Undo the edit."""
        self._undo(pl_module)

    @override
    def on_exception(
        self,
        trainer: "MathNeuroTrainer",
        pl_module: "CausalLanguageModel",
        exception: BaseException,
    ) -> None:
        """Undo the edit."""
        self._undo(pl_module)

    def _undo(self, pl_module: "CausalLanguageModel") -> None:
        if self._saved is not None and self._edit is not None:
            self._edit.undo(pl_module.model, self._saved)
            self._saved = None
