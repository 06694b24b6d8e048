"""Share of a sweep's time that goes to anything but the model's forward passes.

Runs a whole sweep in this process: identification, selections, edits, lm-eval, files, tables and
figures. The clock starts when the model and the tasks are loaded. The time inside of forward passes
is measured around the outermost module that runs.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from jsonargparse import auto_cli
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn
from transformers import AutoTokenizer

import callbacks
from benchmarks.measuring import Figure, now, publish
from benchmarks.parts import (
    LANGUAGE,
    MATH,
    MODEL,
    name_of,
    random_llama,
    shipped_tasks,
    silent_trainer,
)
from mathneuro.data.module import TextDataModule
from mathneuro.grid import PROPORTIONS, Grid
from mathneuro.module import CausalLanguageModel
from mathneuro.terminal import quieten


class Clock(Callback):
    """Adds up the time inside of forward passes, and notes when the first may begin."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.start = 0.0
        self._depth = 0
        self._entered = 0.0

    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin."""
        self.start = now()

    @contextmanager
    def listening(self, *modules: nn.Module) -> Iterator[None]:
        """Listen to the modules in this block."""
        handles = []
        for module in modules:
            handles.append(module.register_forward_pre_hook(self._enter, prepend=True))
            handles.append(module.register_forward_hook(self._leave, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, *_: object) -> None:
        if self._depth == 0:
            self._entered = now()
        self._depth += 1

    def _leave(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += now() - self._entered


def run(
    model: Path, grid: Grid, num_samples: int, limit: int | None, batch_size: int, folder: Path
) -> tuple[Clock, str]:
    """Run a sweep on the shipped model's data and tasks, and name the model."""
    clock = Clock()
    module = CausalLanguageModel(str(model))
    data = TextDataModule(
        MATH,
        {"language": LANGUAGE},
        num_samples=num_samples,
        batch_size=16,
    )
    trainer = silent_trainer(
        [
            clock,
            callbacks.RecordSweep(),
            callbacks.AccumulateImportance(),
            callbacks.SelectParameters(),
            callbacks.Intervene(),
            shipped_tasks(limit, batch_size),
        ],
        devices=1,
        default_root_dir=folder,
    )
    trainer.grid = grid
    module.configure_model()
    with clock.listening(module.model, module.model.get_decoder()):
        trainer.sweep(module, data)
    return clock, name_of(module)


def main(
    parameters: int | None = None,
    repeats: int = 1,
    proportions: list[float] | None = None,
    num_samples: int = 300,
    limit: int | None = None,
    batch_size: int = 64,
    seed: int = 0,
    output: Path | None = None,
) -> None:
    """Run the sweep and print the share.

    Args:
        parameters: Size of a random Llama to use, with the shipped model's tokenizer. null: the
            shipped model.
        repeats: Repeats of the grid.
        proportions: Proportions of the grid. null: the published ones.
        num_samples: Texts drawn from each set.
        limit: First so many questions of each task. null: all.
        batch_size: Requests a forward pass.
        seed: Seed of whatever draws.
        output: A JSON file to write the figure to.
    """
    quieten()
    torch.manual_seed(seed)
    grid = Grid(repeats=repeats, proportions=proportions or list(PROPORTIONS))
    with tempfile.TemporaryDirectory() as folder:
        model = MODEL
        if parameters is not None:
            model = Path(folder) / "random"
            random_llama(parameters).save_pretrained(model)
            AutoTokenizer.from_pretrained(MODEL).save_pretrained(model)
        clock, name = run(model, grid, num_samples, limit, batch_size, Path(folder) / "sweep")
        whole = now() - clock.start
    details = {"whole, s": whole, "forward passes, s": clock.seconds}
    share = 1 - clock.seconds / whole
    what = "8. sweep: share of time outside of forward passes"
    figure = Figure(what, name, share, 0.1, details=details)
    publish([figure], output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
