"""When parameters are selected: after the predict epoch, or as a setting of a sweep begins."""

from dataclasses import replace
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from typing_extensions import override

from callbacks.run import Run, running
from callbacks.setting import SettingCallback
from mathneuro.errors import InputError
from mathneuro.grid import Setting
from mathneuro.methods import NEED_ACTIVATIONS, calibration_sets, check_method, select
from mathneuro.selection import Selection
from mathneuro.study import InFlight, Study
from mathneuro.tops import Tops
from mathneuro.whole_number import WholeNumber


class SelectParameters(SettingCallback):
    """Selects parameters as soon as their importance is known.

    In a sweep the grid says how, and only the seed is taken from here.

    Args:
        method: mathneuro (what matters for math and not for the calibration sets), wanda (what
            matters for math), random (as many as mathneuro, but any) or lape (neurons that are
            active on math rather than on the calibration sets).
        proportion: Share of each weight's parameters that counts as its top, from 0 to 1; for lape
            the share of all neurons.
        calibration: Which calibration sets are removed, or compared with (lape). null: all.
        seed: Seed of methods that draw.
    """

    def __init__(
        self,
        method: str = "mathneuro",
        proportion: float = 0.05,
        calibration: list[str] | None = None,
        seed: WholeNumber = 0,
    ) -> None:
        check_method(method, proportion)
        if seed < 0:
            raise InputError(f"selection.seed: got {seed}, but it may not be below 0")
        self.method = method
        self.proportion = proportion
        self.calibration = calibration
        self.seed = seed
        self._last: tuple[Setting, Selection] | None = None
        self._tops = Tops()

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse calibration sets that do not exist, before the model loads."""
        run = running(trainer, pl_module)
        if run.module.study is not None:
            run.module.study.expect("selection", {"seed": self.seed})
            self._tops = Tops(run.module.study.grid.proportions)
            run.module.needs_activations |= run.module.study.needs_activations
            return
        run.module.needs_activations |= run.command == "operate" and self.method in NEED_ACTIVATIONS
        calibration_sets(run.data.names, self.method, self.calibration)

    @override
    def on_predict_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Select from the importance that was just measured."""
        run = running(trainer, pl_module)
        if run.command == "operate":
            self._select(run)

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Select from importance that was loaded from a file."""
        run = running(trainer, pl_module)
        if run.command == "operate" and run.module.selection is None:
            self._select(run)

    @override
    def on_setting_start(self, run: Run, study: Study, position: int) -> None:
        """Select what the setting of a sweep says."""
        name = study.names[position]
        flight = run.module.in_flight = InFlight(name, study.settings[name])
        if flight.setting is not None:
            flight.selection = self._select_setting(run, flight.setting)
            flight.known = self._find(run, study, flight.selection, flight.setting.factor)

    def _find(
        self, run: Run, study: Study, selection: Selection, factor: float
    ) -> dict[str, Any] | None:
        """Find a setting that changes the model in the same way, in all processes or in none."""
        if run.module.ranks.in_lockstep:
            return run.module.ranks.first(lambda: study.find(selection, factor))
        return study.find(selection, factor)

    def _select_setting(self, run: Run, setting: Setting) -> Selection:
        """Select, unless the setting before differs in nothing but its factor."""
        same = replace(setting, factor=0.0)
        if self._last is None or self._last[0] != same:
            selection = select(
                run.module.coverage.weights,
                run.module.importances[setting.draw],
                method=setting.method,
                proportion=setting.proportion,
                calibration=setting.calibration,
                seed=self.seed,
                repeat=setting.repeat,
                progress=run.is_first,
                tops=self._tops,
            )
            self._last = same, selection
        return self._last[1]

    def _select(self, run: Run) -> None:
        if run.module.importance is None:
            return
        run.module.selection = select(
            run.module.coverage.weights,
            run.module.importance,
            method=self.method,
            proportion=self.proportion,
            calibration=self.calibration,
            seed=self.seed,
            repeat=run.data.repeat,
            progress=run.is_first,
        )
        run.module.ranks.agree("the selection", run.module.selection.sha256)
