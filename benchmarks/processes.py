"""Throughput of two processes against one: identification, and evaluation with lm-eval.

To be started in two processes::

    OMP_NUM_THREADS=1 python -m torch.distributed.run --standalone --nproc-per-node 2 \
        -m benchmarks.processes

Both are timed alternately: the first process does the work alone while the other waits, then both
share it. Two cores need not be twice as fast as one, as they share memory and often more, so bare
forward passes over the same batches, which need nothing of one another, are timed as well: they are
what can be had.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from jsonargparse import auto_cli
from lightning.pytorch import Callback, LightningModule, Trainer

from benchmarks.measuring import Figure, alternate, publish
from benchmarks.parts import load, name_of, shipped_tasks, silent_trainer, texts
from callbacks import AccumulateImportance
from mathneuro.data.module import TextDataModule
from mathneuro.decoder import run_decoder
from mathneuro.module import CausalLanguageModel
from mathneuro.ranks import Ranks
from mathneuro.terminal import quieten
from mathneuro.trainer import MathNeuroTrainer

T = TypeVar("T")


class Stopwatch(Callback):
    """Measures an evaluation, from its start until all processes are done."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start."""
        self.seconds = -time.perf_counter()

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop: every process has the answers of all."""
        self.seconds += time.perf_counter()


class FirstAlone(Ranks):
    """Processes of which the first does all the work."""

    def share(self, items: Sequence[T]) -> list[T]:
        """Return everything, or nothing."""
        return list(items) if self.rank == 0 else []


@dataclass
class Parts:
    """What one way to run needs."""

    trainer: MathNeuroTrainer
    module: CausalLanguageModel
    data: TextDataModule
    stopwatch: Stopwatch

    def forward(self) -> float:
        """Time bare forward passes over the batches of identification, in seconds."""
        batches = [batch for loader in self.data.predict_dataloader() for batch in loader]
        self.module.ranks.meet()
        start = time.perf_counter()
        with torch.no_grad():
            for batch in filter(None, batches):
                run_decoder(self.module.model, batch["input_ids"], batch["attention_mask"])
        self.module.ranks.meet()
        return time.perf_counter() - start

    def identify(self) -> float:
        """Time a whole predict epoch, in seconds."""
        self.trainer.predict(self.module, self.data)
        if self.module.identification is None:
            raise RuntimeError("Nothing was identified.")
        return self.module.identification.seconds

    def evaluate(self) -> float:
        """Time a whole evaluation, in seconds."""
        self.trainer.validate(self.module, self.data)
        return self.stopwatch.seconds


def build(parameters: int | None, num_samples: int, limit: int, folder: str) -> Parts:
    """Build a Trainer, a module and the texts."""
    module = load(parameters)
    stopwatch = Stopwatch()
    trainer = silent_trainer(
        [AccumulateImportance(), shipped_tasks(limit, batch_size=16), stopwatch],
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        default_root_dir=folder,
    )
    data = texts(num_samples, batch_size=16)
    return Parts(trainer, module, data, stopwatch)


def main(
    parameters: int | None = None,
    num_samples: int = 800,
    limit: int = 300,
    rounds: int = 5,
    output: Path | None = None,
) -> None:
    """Measure and print.

    Args:
        parameters: Size of a random Llama to measure. null: the shipped model.
        num_samples: Texts of each set.
        limit: Questions of each task.
        rounds: How often each is timed.
        output: A JSON file to write the figures to.
    """
    with tempfile.TemporaryDirectory() as folder:
        both, alone = (build(parameters, num_samples, limit, folder) for _ in range(2))
        figures = measure(both, alone, rounds)
        if both.trainer.is_global_zero:
            publish(figures, output)


def measure(both: Parts, alone: Parts, rounds: int) -> list[Figure]:
    """Measure; the work is shared, or all of it done by the first process."""
    both.identify()
    alone.module.ranks = FirstAlone(**vars(both.module.ranks))
    alone.identify()
    figures = []
    for what, name in (
        (Parts.forward, "bare forward passes"),
        (Parts.identify, "identification"),
        (Parts.evaluate, "evaluation"),
    ):
        what(both)
        ratio = alternate(partial(what, alone), partial(what, both), rounds)
        details = {"one process, s": ratio.first, "two, s": ratio.second}
        figures.append(
            Figure(f"throughput of two processes / one: {name}", name_of(both.module),
                   ratio.value, details=details, spread=ratio.spread)
        )  # fmt: skip
    return figures


if __name__ == "__main__":
    quieten()
    auto_cli(main, as_positional=False)
