"""When the edit is on the model: during a validation, or a setting of a sweep, that asks for it."""

from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from typing_extensions import override

from callbacks.run import Run, running
from callbacks.setting import SettingCallback
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.factors import check_factor
from mathneuro.selection import Selection
from mathneuro.study import InFlight, Study


class Intervene(SettingCallback):
    """Multiplies the selected parameters during validation and restores them bit for bit.

    Args:
        factor: What selected parameters are multiplied by: 0 prunes, 1.1 scales up.
        factors: Other factors for some weights, by patterns of their names, such as
            {"*.down_proj.*": 1.1}; of several that match a name the first counts. A sweep takes
            none.
    """

    def __init__(self, factor: float = 0.0, factors: dict[str, float] | None = None) -> None:
        check_factor(factor, {})
        self.factor = factor
        self.factors = factors or {}
        self._saved: dict[str, Tensor] | None = None
        self._edit: Edit | None = None

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse a saved edit whose identification saw held-out texts."""
        run = running(trainer, pl_module)
        if run.module.study is not None and self.factors:
            raise InputError(
                f"intervention.factors: got {self.factors}, but a sweep multiplies all parameters "
                "of a setting by one of grid.factors; leave it out"
            )
        if run.command == "validate" and run.module.edit is not None:
            run.data.check_held_out(run.module.edit.data, "edit")

    @override
    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse factors of a sweep that a weight cannot be multiplied by."""
        run = running(trainer, pl_module)
        self._check_factors(run)

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Apply the edit, if this validation is to see it."""
        run = running(trainer, pl_module)
        if not run.module.intervening:
            if run.module.study is None:
                weights = run.module.candidates.weights
                nothing = Selection({}, dict.fromkeys(weights, ()))
                self._with_factors(Edit(nothing, self.factor)).check_factors(weights)
            else:
                self._check_factors(run)
            return
        if run.module.edit is None and run.module.selection is not None:
            data = run.module.importance.data if run.module.importance is not None else {}
            run.module.edit = self._with_factors(
                Edit(run.module.selection, self.factor, run.module.identity, data)
            )
        if run.module.edit is None:
            raise RuntimeError("Nothing was selected before the evaluation of an edit.")
        run.module.edit.check_model(run.module.identity["weight_hash"])
        left_alone = run.module.candidates.left_alone
        run.module.edit.check_left_alone({item.name: item.reason for item in left_alone})
        run.module.edit.check_factors(run.module.candidates.weights)
        self._apply(run, run.module.edit)

    @override
    def on_setting_start(self, run: Run, study: Study, position: int) -> None:
        """Apply the edit of a setting, unless its result is known."""
        flight = run.module.in_flight
        if flight is None or flight.setting is None or flight.selection is None or flight.known:
            return
        data = run.module.importances[flight.setting.draw].data
        edit = Edit(flight.selection, flight.setting.factor, run.module.identity, data)
        self._apply(run, edit)

    @override
    def on_setting_end(self, run: Run, study: Study, flight: InFlight) -> None:
        """Undo the edit of a setting."""
        self._undo(run)

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Undo the edit."""
        run = running(trainer, pl_module)
        self._undo(run)

    @override
    def on_exception(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        exception: BaseException,
    ) -> None:
        """Undo the edit, if there is one: what went wrong may have been before there was data."""
        if self._saved is not None:
            self._undo(running(trainer, pl_module))

    def _with_factors(self, edit: Edit) -> Edit:
        """Give the weights of an edit the factors of their own."""
        return edit.with_factors(patterns=self.factors or None, where="intervention.")

    def _check_factors(self, run: Run) -> None:
        if run.module.study is None:
            return
        factors, where = run.module.study.grid.factors, "grid.factors"
        for factor in factors:
            check_factor(factor, {}, where)
        # Looking at all weights takes time, and the others follow from the largest.
        check_factor(max(factors, key=abs), run.module.candidates.weights, where)

    def _apply(self, run: Run, edit: Edit) -> None:
        self._edit, self._saved = edit, edit.apply(run.module.model)

    def _undo(self, run: Run) -> None:
        if self._saved is not None and self._edit is not None:
            self._edit.undo(run.module.model, self._saved)
            self._saved = None
