"""A callback that ends the process at once, as an out-of-memory killer or a scheduler would."""

import os
import signal
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from mathneuro.loading import weight_hash
from mathneuro.module import CausalLanguageModel


class Kill(Callback):
    """Kills its own process in the middle of a setting: measured, not yet written.

    Args:
        at: Name of the setting.
        gently: Whether to ask it to end rather than to kill it.
    """

    def __init__(self, at: str, gently: bool = False) -> None:
        self.at = at
        self.signal = signal.SIGTERM if gently else signal.SIGKILL

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, *_: Any, **__: Any
    ) -> None:
        """Make sure that the edit is on, and end."""
        assert isinstance(pl_module, CausalLanguageModel)
        assert pl_module.in_flight is not None
        if pl_module.in_flight.name == self.at:
            assert weight_hash(pl_module.model) != pl_module.identity["weight_hash"]
            os.kill(os.getpid(), self.signal)
