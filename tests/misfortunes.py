"""Callbacks for what can happen to one of several processes."""

import os
import signal
import time
from datetime import timedelta
from typing import Any, Literal

from lightning.pytorch import Callback, LightningModule, Trainer
from torch.distributed import distributed_c10d

from mathneuro.errors import InputError

Misfortune = Literal["mistake", "fault", "kill", "terminate"]


class Fail(Callback):
    """Ends one process in the middle of identification, or all.

    Args:
        rank: Which process. null: all.
        how: By a mistake of the user, a fault of the program, or as by lack of memory or a
            scheduler.
    """

    def __init__(self, rank: int | None, how: Misfortune) -> None:
        self.rank = rank
        self.how = how

    def on_predict_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, *_: Any, **__: Any
    ) -> None:
        """Fail."""
        if self.rank not in (None, trainer.global_rank):
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        if self.how == "mistake":
            raise InputError("data: one process met a text that the others do not have")
        raise RuntimeError("a fault in one process")


class Linger(Callback):
    """Keeps the first process in an evaluation for longer than ordinary collectives wait.

    Args:
        patience: How many seconds these wait.
    """

    def __init__(self, patience: float = 5.0) -> None:
        self.patience = patience

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let ordinary collectives give up early."""
        distributed_c10d._set_pg_timeout(timedelta(seconds=self.patience))

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: object,
        batch: object,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Wait, as a long evaluation would."""
        if trainer.is_global_zero and (batch_idx, dataloader_idx) == (0, 0):
            time.sleep(2 * self.patience)
