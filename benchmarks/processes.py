"""Throughput of two processes against one: identification, and evaluation with lm-eval.

To be started in two processes::

    OMP_NUM_THREADS=1 python -m torch.distributed.run --standalone --nproc-per-node 2 \
        -m benchmarks.processes

Both are timed alternately: the first process does the work alone while the other waits, then both
share it. Prints the median of each, and that of the ratios of neighbouring rounds. Two cores need
not be twice as fast as one, as they share memory and often more, so bare forward passes over the
same batches, which need nothing of one another, are timed as well: they are what can be had.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from jsonargparse import auto_cli
from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console

from benchmarks.parts import LANGUAGE, MATH, MODEL, random_llama, shipped_tasks, silent_trainer
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


def build(random_parameters: int | None, texts: int, questions: int, folder: str) -> Parts:
    """Build a Trainer, a module and the texts."""
    module = CausalLanguageModel(str(MODEL))
    if random_parameters is not None:
        torch.manual_seed(0)
        module.model = random_llama(random_parameters)
    stopwatch = Stopwatch()
    trainer = silent_trainer(
        [AccumulateImportance(), shipped_tasks(questions, batch_size=16), stopwatch],
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        default_root_dir=folder,
    )
    data = TextDataModule(
        MATH,
        {"language": LANGUAGE},
        num_samples=texts,
        replacement=False,
        batch_size=16,
        held_out=0,
    )
    return Parts(trainer, module, data, stopwatch)


def main(
    random_parameters: int | None = None, texts: int = 800, questions: int = 300, rounds: int = 5
) -> None:
    """Measure and print.

    Args:
        random_parameters: Measure a random Llama of about so many parameters instead of the model
            that comes with the project.
        texts: Texts of each set.
        questions: Questions of each task.
        rounds: How often each is timed.
    """
    with tempfile.TemporaryDirectory() as folder:
        both, alone = (build(random_parameters, texts, questions, folder) for _ in range(2))
        measure(both, alone, rounds)


def measure(both: Parts, alone: Parts, rounds: int) -> None:
    """Measure and print; the work is shared, or all of it done by the first process."""
    both.identify()
    alone.module.ranks = FirstAlone(**vars(both.module.ranks))
    alone.identify()
    for what, name in (
        (Parts.forward, "bare forward passes"),
        (Parts.identify, "identification"),
        (Parts.evaluate, "evaluation"),
    ):
        what(both)
        pairs = [(what(alone), what(both)) for _ in range(rounds)]
        one, two = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(single / shared for single, shared in pairs)
        if both.trainer.is_global_zero:
            Console().print(
                f"{name}, {both.module.coverage.total / 1e6:.1f} M parameters, "
                f"{torch.get_num_threads()} threads a process: one process {one:.2f} s, two "
                f"{two:.2f} s, throughput of two against one {ratio:.2f}",
                soft_wrap=True,
            )


if __name__ == "__main__":
    quieten()
    auto_cli(main, as_positional=False)
