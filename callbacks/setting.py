"""When a setting of a sweep begins and ends: each is a batch of one validation epoch."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from typing_extensions import override

from callbacks.run import Run, running
from mathneuro.study import InFlight, Study


class SettingCallback(Callback):
    """A callback with hooks for the settings of a sweep."""

    def on_setting_start(self, run: Run, study: Study, position: int) -> None:
        """Act as a setting begins.

        Args:
            run: The run.
            study: The sweep.
            position: The position of the setting among all.
        """

    def on_setting_end(self, run: Run, study: Study, flight: InFlight) -> None:
        """Act as a setting ends.

        Args:
            run: The run.
            study: The sweep.
            flight: The setting, with what became of it so far.
        """

    @override
    def on_validation_batch_start(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Call `on_setting_start`, in a sweep."""
        run = running(trainer, pl_module)
        if run.module.study is not None and batch is not None:
            self.on_setting_start(run, run.module.study, batch)

    @override
    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Call `on_setting_end`, in a sweep."""
        run = running(trainer, pl_module)
        if run.module.study is not None and run.module.in_flight is not None:
            self.on_setting_end(run, run.module.study, run.module.in_flight)
