"""When the config is saved: once all checks have passed, before anything is measured."""

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback
from typing_extensions import override

from mathneuro.files import write_text


class SaveRunConfig(SaveConfigCallback):
    """Saves the exact config into the run's folder; it can be given as ``--config`` again."""

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Wait: a run that is refused must not replace the config of the run that is there."""

    @override
    def on_predict_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the config."""
        self._save(trainer, pl_module, "predict")

    @override
    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the config."""
        self._save(trainer, pl_module, "validate")

    def _save(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if trainer.is_global_zero and not self.already_saved:
            self.save_config(trainer, pl_module, stage)
            self.already_saved = True

    @override
    def save_config(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Write the config in one step, without what is no setting but a way to run a sweep."""
        config = self.config.clone()
        for option in ("shard", "dry_run"):
            config.pop(option, None)
        text = self.parser.dump(config, skip_unset=False, skip_validation=True)
        write_text(Path(trainer.default_root_dir) / "config.yaml", text)
