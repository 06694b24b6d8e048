"""How time and memory grow, as one thing grows at a time: texts, length, weights, grid."""

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from jsonargparse import auto_cli

from benchmarks.measuring import Figure, Ratio, alternate, peak_bytes, publish, seconds
from benchmarks.parts import load, name_of, silent_trainer
from callbacks import AccumulateImportance
from mathneuro.data import TextSet
from mathneuro.data.draws import DrawKey
from mathneuro.data.module import TextDataModule
from mathneuro.grid import PROPORTIONS
from mathneuro.methods import select
from mathneuro.module import CausalLanguageModel
from mathneuro.terminal import quieten
from mathneuro.tops import Tops

PARTS = ("identification, s", "identification, bytes", "selection, s", "selection, bytes")
"""What is measured of a size."""

Work = Callable[[], object]


@dataclass(frozen=True)
class Size:
    """What a run is made of.

    Attributes:
        parameters: Parameters of the model, about.
        texts: Texts of each set.
        words: Words of each text.
        repeats: Draws of texts.
        proportions: How many proportions are selected at.
    """

    parameters: int = 20_000_000
    texts: int = 128
    words: int = 64
    repeats: int = 1
    proportions: int = 2


def identification(size: Size, folder: Path) -> tuple[Work, CausalLanguageModel]:
    """Prepare identification of a size."""
    generator = random.Random(0)
    words = ["is", "in", "the", "has", "coins", "garden", "1", "2", "+", "="]
    sets = {}
    for name in ("math", "language"):
        path = folder / f"{name}.jsonl"
        lines = (
            {"text": " ".join(generator.choices(words, k=size.words))} for _ in range(size.texts)
        )
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        sets[name] = TextSet(str(path), columns=["text"])
    module = load(size.parameters)
    data = TextDataModule(
        sets["math"], {"language": sets["language"]}, num_samples=size.texts, batch_size=16,
        held_out=0, replacement=False,
    )  # fmt: skip
    data.draws = [DrawKey(size.texts, repeat + 1) for repeat in range(size.repeats)]

    def work() -> None:
        silent_trainer([AccumulateImportance()], devices=1).predict(module, datamodule=data)

    return work, module


def selection(size: Size, module: CausalLanguageModel) -> Work:
    """Prepare the selections of a size, from what was identified."""
    steps = range(1, size.proportions + 1)
    proportions = [PROPORTIONS[-1] * step / size.proportions for step in steps]
    weights = module.coverage.weights

    def work() -> None:
        tops = Tops(proportions)
        for importance in module.importances.values():
            for proportion in proportions:
                select(weights, importance, proportion=proportion, tops=tops)

    return work


@dataclass(frozen=True)
class Prepared:
    """Both parts of a size, ready to be timed.

    Attributes:
        identify: Identifies.
        select: Selects from what was identified.
        weights: How many parameters are selected from.
    """

    identify: Work
    select: Work
    weights: int


def prepare(size: Size, folder: Path) -> Prepared:
    """Prepare both parts of a size, each of which has run once."""
    folder.mkdir()
    identify, module = identification(size, folder)
    identify()
    select_all = selection(size, module)
    select_all()
    return Prepared(
        identify, select_all, sum(each.numel for each in module.coverage.weights.values())
    )


def compare(base: Size, size: Size, rounds: int) -> dict[str, Ratio]:
    """Measure time and memory of a size against the base's, alternately, by part."""
    with tempfile.TemporaryDirectory() as name:
        before, after = prepare(base, Path(name) / "base"), prepare(size, Path(name) / "size")
        return {
            "identification, s": alternate(
                partial(seconds, after.identify), partial(seconds, before.identify), rounds
            ),
            "identification, bytes": alternate(
                partial(peak_bytes, after.identify), partial(peak_bytes, before.identify), 1
            ),
            "selection, s": alternate(
                partial(seconds, after.select), partial(seconds, before.select), rounds
            ),
            "selection, bytes": alternate(
                partial(peak_bytes, after.select), partial(peak_bytes, before.select), 1
            ),
            "weights": alternate(lambda: after.weights, lambda: before.weights, 1),
        }


def main(rounds: int = 3, output: Path | None = None) -> None:
    """Measure and print.

    Args:
        rounds: How often each is timed.
        output: A JSON file to write the figures to.
    """
    quieten()
    base = Size()
    changed = {
        "texts x 2": replace(base, texts=2 * base.texts),
        "length x 2": replace(base, words=2 * base.words),
        "weights x 2": replace(base, parameters=2 * base.parameters),
        "repeats x 10": replace(base, repeats=10 * base.repeats),
        "proportions x 4": replace(base, proportions=4 * base.proportions),
    }
    name = name_of(load(base.parameters))
    figures = []
    for what, size in changed.items():
        ratios = compare(base, size, rounds)
        for part in PARTS:
            ratio = ratios[part]
            details = {"before": ratio.second, "after": ratio.first}
            if size.parameters != base.parameters:
                details["weights"] = ratios["weights"].value
            figures.append(
                Figure(f"{what}: {part}", name, ratio.value, details=details, spread=ratio.spread)
            )
    publish(figures, output)


if __name__ == "__main__":
    torch.manual_seed(0)
    auto_cli(main, as_positional=False)
