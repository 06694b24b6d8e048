"""When the config is saved: before anything else, so that the folder tells what was asked."""

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback
from typing_extensions import override

from mathneuro.files import write_text


class SaveRunConfig(SaveConfigCallback):
    """Saves the exact config into the run's folder; it can be given as ``--config`` again."""

    @override
    def save_config(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Write the config in one step."""
        text = self.parser.dump(self.config, skip_unset=False)
        write_text(Path(trainer.default_root_dir) / "config.yaml", text)
