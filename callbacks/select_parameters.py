"""When parameters are selected: at the end of the predict epoch."""

from lightning.pytorch import Callback, LightningModule, Trainer
from typing_extensions import override

from callbacks.run import Run, running
from mathneuro.errors import InputError
from mathneuro.methods import calibration_sets, check_method, select


class SelectParameters(Callback):
    """Selects parameters as soon as their importance is known.

    Args:
        method: mathneuro (what matters for math and not for the calibration sets), wanda (what
            matters for math) or random (as many as mathneuro, but any).
        proportion: Share of each weight's parameters that counts as its top, from 0 to 1.
        calibration: Which calibration sets are removed. null: all.
        seed: Seed of methods that draw.
    """

    def __init__(
        self,
        method: str = "mathneuro",
        proportion: float = 0.05,
        calibration: list[str] | None = None,
        seed: int = 0,
    ) -> None:
        check_method(method, proportion)
        if seed < 0:
            raise InputError(f"selection.seed: got {seed}, but it may not be below 0")
        self.method = method
        self.proportion = proportion
        self.calibration = calibration
        self.seed = seed

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse calibration sets that do not exist, before the model loads."""
        run = running(trainer, pl_module)
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

    def _select(self, run: Run) -> None:
        if run.module.importance is None:
            return
        run.module.selection = select(
            run.module.coverage.linears,
            run.module.importance,
            method=self.method,
            proportion=self.proportion,
            calibration=self.calibration,
            seed=self.seed,
            progress=True,
        )
