"""When importance is accumulated: during the predict epoch."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import Callback
from torch import Tensor
from typing_extensions import override

from mathneuro.decoder import check_head
from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.norms import InputNorms

if TYPE_CHECKING:
    from mathneuro.data.batches import Batch
    from mathneuro.data.module import TextDataModule
    from mathneuro.module import CausalLanguageModel
    from mathneuro.trainer import MathNeuroTrainer


class AccumulateImportance(Callback):
    """Adds up importance over the texts of every set, on every rank.

    Args:
        file: An importance file of an earlier run on the same model; `operate` then makes no
            forward pass for identification.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.seconds = 0.0
        self.forward_passes = 0
        self._loaded: Importance | None = None
        self._norms: dict[str, InputNorms] = {}
        self._recording = ExitStack()
        self._batch = ExitStack()

    @override
    def setup(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel", stage: str
    ) -> None:
        """Read the importance file, before the model loads."""
        if self.file is None or self._loaded is not None:
            return
        if trainer.command == "predict":
            raise InputError(
                f"importance.file: got {self.file}, but `predict` measures importance anew; remove "
                "it, or run `operate`"
            )
        self._loaded = Importance.load(self.file)

    @override
    def on_validation_start(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Hand the saved importance over, if it is for this model."""
        if self._loaded is None or pl_module.importance is not None or self.file is None:
            return
        shapes = {name: ln.weight.shape for name, ln in pl_module.coverage.linears.items()}
        self._loaded.check(shapes, pl_module.identity["weight_hash"], self.file)
        pl_module.importance = self._loaded

    @override
    def on_predict_start(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Start anew."""
        if pl_module.head_weight is not None:
            check_head(pl_module.model)
        self._norms = {
            name: InputNorms(pl_module.coverage.linears) for name in _data(trainer).names
        }
        self.forward_passes = 0
        self.seconds = -time.perf_counter()

    @override
    def on_predict_batch_start(
        self,
        trainer: "MathNeuroTrainer",
        pl_module: "CausalLanguageModel",
        batch: "Batch",
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Listen to the inputs of the linear layers."""
        norms = list(self._norms.values())[dataloader_idx]
        if batch_idx == 0:
            self._recording.close()
            self._recording.enter_context(norms.recording())
        self._batch.enter_context(
            norms.batch(batch["attention_mask"], batch["names"], batch["counts"])
        )

    @override
    def on_predict_batch_end(
        self,
        trainer: "MathNeuroTrainer",
        pl_module: "CausalLanguageModel",
        outputs: Tensor,
        batch: "Batch",
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add the batch's norms to the sums; the head's input is the decoder's output."""
        if pl_module.head_weight is not None:
            list(self._norms.values())[dataloader_idx].observe(pl_module.head_weight, outputs)
        self._batch.close()
        self.forward_passes += 1

    @override
    def on_predict_epoch_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Add up over the ranks, once."""
        self._recording.close()
        data = _data(trainer)
        sets, texts = {}, {}
        for name, norms in self._norms.items():
            sums = norms.sums()
            joined = torch.cat([vector.to(pl_module.device) for vector in sums.values()])
            joined = trainer.strategy.reduce(joined, reduce_op="sum").cpu()
            parts = joined.split([vector.numel() for vector in sums.values()])
            sets[name] = dict(zip(sums, parts, strict=True))
            counted = torch.tensor(norms.texts, device=pl_module.device)
            texts[name] = int(trainer.strategy.reduce(counted, reduce_op="sum"))
        pl_module.importance = Importance(sets, texts, pl_module.identity, data.fingerprints())
        self._norms = {}
        self.seconds += time.perf_counter()

    @override
    def on_exception(
        self,
        trainer: "MathNeuroTrainer",
        pl_module: "CausalLanguageModel",
        exception: BaseException,
    ) -> None:
        """Take the hooks off the model."""
        self._batch.pop_all()
        self._recording.close()


def _data(trainer: Any) -> "TextDataModule":  # noqa: ANN401
    data: TextDataModule = trainer.datamodule
    return data
