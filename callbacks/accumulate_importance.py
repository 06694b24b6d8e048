"""When importance is accumulated: during the predict epoch."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from typing_extensions import override

from callbacks.run import Run, running
from mathneuro.activations import ActivationCounts
from mathneuro.errors import InputError
from mathneuro.importance import Identification, Importance
from mathneuro.norms import InputNorms

if TYPE_CHECKING:
    from mathneuro.data.batches import Batch


class AccumulateImportance(Callback):
    """Adds up importance over the texts of every set, on every rank.

    Args:
        file: An importance file of an earlier run on the same model; `operate` then makes no
            forward pass for identification.
        activations: Whether it is also counted how often each neuron of the MLPs is active, which
            the method lape needs and gets in any case; with `predict`, so that the file serves it.
    """

    def __init__(self, file: Path | None = None, activations: bool = False) -> None:
        self.file = file
        self.activations = activations
        self._forward_passes = 0
        self._start = 0.0
        self._loaded: Importance | None = None
        self._norms: dict[str, InputNorms] = {}
        self._counts: dict[str, ActivationCounts] = {}
        self._recording = ExitStack()
        self._batch = ExitStack()

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Read the importance file, before the model loads."""
        run = running(trainer, pl_module)
        run.module.needs_activations |= self.activations and run.command != "validate"
        if self.file is None or self._loaded is not None:
            return
        if self.activations:
            raise InputError(
                f"importance.activations: got true, but with importance.file ({self.file}) nothing "
                "is measured; remove one of them"
            )
        if run.command == "sweep":
            raise InputError(
                f"importance.file: got {self.file}, but a sweep keeps the importance of its own "
                "draws in its folder; remove it"
            )
        if run.command == "predict":
            raise InputError(
                f"importance.file: got {self.file}, but `predict` measures importance anew; remove "
                "it, or run `operate`"
            )
        self._loaded = Importance.load(self.file)
        run.data.check_held_out(self._loaded.data, "importance.file")

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Hand the saved importance over, if it is for this model."""
        run = running(trainer, pl_module)
        if self._loaded is None or run.module.importance is not None or self.file is None:
            if run.module.needs_activations:
                # Found before anything is evaluated: a model without any is refused at once.
                _ = run.module.neurons
            return
        self._loaded.check_model(run.module.identity["weight_hash"], self.file)
        self._loaded.check_weights(run.module.coverage.weights, self.file)
        if run.module.needs_activations:
            self._loaded.check_activations(run.module.neurons.neurons, self.file)
        run.module.importance = self._loaded
        run.module.identification = Identification(0, 0, 0.0, self.file)

    @override
    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start anew."""
        run = running(trainer, pl_module)
        weights, draws = run.module.coverage.weights, len(run.data.draws)
        self._norms = {name: InputNorms(weights, draws) for name in run.data.names}
        self._counts = {}
        if run.module.needs_activations:
            neurons = run.module.neurons.neurons
            self._counts = {name: ActivationCounts(neurons, draws) for name in run.data.names}
        self._forward_passes = 0
        self._start = time.perf_counter()

    @override
    def on_predict_batch_start(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        batch: "Batch",
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Listen to the inputs of the linear layers, and to activations."""
        name, norms = list(self._norms.items())[dataloader_idx]
        activations = self._counts.get(name)
        if batch_idx == 0:
            self._recording.close()
            self._recording.enter_context(norms.recording())
            if activations is not None:
                self._recording.enter_context(activations.recording())
        if not batch:
            return
        mask, counts = batch["attention_mask"], batch["counts"]
        self._batch.enter_context(norms.batch(mask, batch["names"], counts))
        if activations is not None:
            self._batch.enter_context(activations.batch(mask, counts))

    @override
    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Tensor | None,
        batch: "Batch",
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add the batch's norms to the sums; the head's input is the decoder's output."""
        run = running(trainer, pl_module)
        if outputs is None:
            return
        if run.module.head_weight is not None:
            list(self._norms.values())[dataloader_idx].observe(run.module.head_weight, outputs)
        self._batch.close()
        self._forward_passes += 1

    @override
    def on_predict_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Add up over the ranks, once."""
        run = running(trainer, pl_module)
        self._recording.close()
        run.module.ranks.meet()
        sets = {name: self._add_up_set(trainer, run, name) for name in self._norms}
        activations, tokens = {}, {}
        for name, each in self._counts.items():
            activations[name] = _add_up_vectors(trainer, run, each.counts())
            tokens[name] = _add_up(trainer, run, each.tokens).tolist()
        run.module.importances = {
            key: Importance(
                sets=_of_draw(sets, index),
                texts={name: len(drawn.draws[key].rows) for name, drawn in run.data.drawn.items()},
                model=run.module.identity,
                data=run.data.fingerprints(key),
                activations=_of_draw(activations, index),
                tokens={name: each[index] for name, each in tokens.items()},
            )
            for index, key in enumerate(run.data.draws)
        }
        run.module.importance = next(iter(run.module.importances.values()))
        forwarded = sum(norms.forwarded for norms in self._norms.values())
        run.module.identification = Identification(
            forward_passes=int(_add_up(trainer, run, torch.tensor(self._forward_passes))),
            texts_forwarded=int(_add_up(trainer, run, torch.tensor(forwarded))),
            seconds=time.perf_counter() - self._start,
        )
        self._norms, self._counts = {}, {}

    def _add_up_set(self, trainer: Trainer, run: Run, name: str) -> dict[str, Tensor]:
        """Return the sums of one set over the ranks: ``[draws, features]`` a weight."""
        norms, drawn = self._norms[name], run.data.drawn[name]
        texts = _add_up(trainer, run, norms.texts).tolist()
        expected = [len(draw.rows) for draw in drawn.draws.values()]
        if texts != expected:
            raise InputError(
                f"trainer: {texts} of {expected} {name} texts went through the model, but each "
                "must do so once; leave use_distributed_sampler at false, and the limits of "
                "batches unset"
            )
        return _add_up_vectors(trainer, run, norms.sums())

    @override
    def on_exception(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        exception: BaseException,
    ) -> None:
        """Take the hooks off the model."""
        self._batch.pop_all()
        self._recording.close()


def _of_draw(sets: dict[str, dict[str, Tensor]], index: int) -> dict[str, dict[str, Tensor]]:
    """Return one draw's vectors of every set, by weight."""
    return {
        name: {weight: vectors[index] for weight, vectors in each.items()}
        for name, each in sets.items()
    }


def _add_up_vectors(trainer: Trainer, run: Run, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Add vectors up over the ranks, ``[draws, features]`` each, all at once."""
    # The devices of a model that is spread over several hold some vectors each.
    here = [each.to(run.module.device) for each in vectors.values()]
    joined = _add_up(trainer, run, torch.cat(here, dim=-1))
    parts = torch.split(joined, [each.shape[-1] for each in vectors.values()], dim=-1)
    return dict(zip(vectors, parts, strict=True))


def _add_up(trainer: Trainer, run: Run, tensor: Tensor) -> Tensor:
    """Add a tensor up over the processes that share the texts; on the CPU afterwards."""
    if not run.module.ranks.divides:
        return tensor.cpu()
    total: Tensor = trainer.strategy.reduce(tensor.to(run.module.device), reduce_op="sum")
    return total.cpu()
