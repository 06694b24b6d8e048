"""Identification and masks of the published default grid against the naive method.

Two calibration sets, five repeats, eight proportions. The naive method reads the texts of every
setting anew; here each distinct text is read once.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

import torch
from jsonargparse import auto_cli
from torch import Tensor

from benchmarks import naive
from benchmarks.measuring import Figure, alternate, publish, seconds
from benchmarks.parts import LANGUAGE, MATH, OTHER, load, name_of, silent_trainer
from callbacks import AccumulateImportance
from mathneuro.data.draws import DrawKey
from mathneuro.data.module import TextDataModule
from mathneuro.grid import PROPORTIONS
from mathneuro.methods import select
from mathneuro.module import CausalLanguageModel
from mathneuro.terminal import quieten
from mathneuro.tops import Tops

REPEATS = range(1, 6)
CALIBRATION = ("language", "other")

Masks = dict[tuple[str, int, float], dict[str, Tensor]]
"""Flat positions in each weight, by calibration set, repeat and proportion."""

NaiveSetting = tuple[str, DrawKey, float]
"""Calibration set, draw and proportion."""


def ours(module: CausalLanguageModel, data: TextDataModule) -> Masks:
    """Identify in one epoch, then select for every setting, weight by weight."""
    silent_trainer([AccumulateImportance()], devices=1).predict(module, datamodule=data)
    settings = list(product(CALIBRATION, data.draws, PROPORTIONS))
    masks: Masks = {(calibration, draw.repeat, p): {} for calibration, draw, p in settings}
    for name, weight in module.coverage.weights.items():
        tops = Tops(PROPORTIONS, together=True)
        for calibration, draw, proportion in settings:
            found = select(
                {name: weight}, module.importances[draw], "mathneuro", proportion, [calibration],
                tops=tops,
            )  # fmt: skip
            masks[calibration, draw.repeat, proportion] |= found.positions
    return masks


def naive_slices(data: TextDataModule, repeats: int, rounds: int) -> list[list[NaiveSetting]]:
    """Deal the settings that the naive method is timed on out into slices of about equal work."""
    settings = list(product(CALIBRATION, data.draws[:repeats], PROPORTIONS))
    return [settings[start::rounds] for start in range(min(rounds, len(settings)))]


def theirs(
    module: CausalLanguageModel, data: TextDataModule, settings: Sequence[NaiveSetting]
) -> None:
    """Read the texts of every setting anew, into bfloat16 sums of the weights' size."""
    for calibration, draw, proportion in settings:
        sums = {
            name: naive.add_up(
                module.model, module.coverage.weights, drawn_tokens(data, name, draw)
            )
            for name in ("math", calibration)
        }
        naive.select(sums["math"], sums[calibration], proportion)


def exactly(module: CausalLanguageModel, data: TextDataModule) -> Masks:
    """Find the masks of the first draw from float64 sums, each of them added up once."""
    draw = data.draws[0]
    sums = {
        name: naive.add_up(
            module.model, module.coverage.weights, drawn_tokens(data, name, draw), torch.float64
        )
        for name in ("math", *CALIBRATION)
    }
    return {
        (name, draw.repeat, proportion): naive.select(sums["math"], sums[name], proportion)
        for name, proportion in product(CALIBRATION, PROPORTIONS)
    }


def drawn_tokens(data: TextDataModule, name: str, draw: DrawKey) -> list[list[int]]:
    """Return the tokens of each text of a draw, as often as it was drawn."""
    index = list(data.draws).index(draw)
    return [
        list(text.tokens)
        for text in data.tokenized[name].identification
        for _ in range(text.counts[index])
    ]


def agreement(masks: Masks, others: Masks) -> float:
    """Return which share of what either selects both select, over all settings of the latter."""
    both = either = 0
    for setting, weights in others.items():
        for name, positions in weights.items():
            mine, other = masks[setting][name], positions.cpu()
            common = int(torch.isin(mine, other, assume_unique=True).sum())
            both += common
            either += len(mine) + len(other) - common
    return both / either


def main(
    parameters: int | None = None,
    num_samples: int = 40,
    batch_size: int = 16,
    repeats: int = 5,
    rounds: int = 8,
    output: Path | None = None,
) -> None:
    """Measure and print.

    Args:
        parameters: Size of a random Llama to measure. null: the shipped model.
        num_samples: Texts drawn from each set.
        batch_size: Texts a forward pass; the naive method takes one.
        repeats: How many of the five repeats the naive method is timed on.
        rounds: In how many slices. Each is timed next to a whole grid of ours, and its time counts
            as many times as the grid has such slices, so that a machine that gets busy slows both.
        output: A JSON file to write the figure to.
    """
    quieten()
    module = load(parameters)
    data = TextDataModule(
        MATH, {"language": LANGUAGE, "other": OTHER}, num_samples=num_samples,
        batch_size=batch_size, held_out=0,
    )  # fmt: skip
    data.draws = [DrawKey(num_samples, repeat) for repeat in REPEATS]
    masks = ours(module, data)
    exact = exactly(module, data)
    slices = naive_slices(data, repeats, rounds)
    whole = len(CALIBRATION) * len(REPEATS) * len(PROPORTIONS)
    remaining = iter(slices)

    def slow() -> float:
        part = next(remaining)
        return seconds(partial(theirs, module, data, part)) * whole / len(part)

    ratio = alternate(slow, lambda: seconds(partial(ours, module, data)), len(slices))
    distinct = sum(len(each.identification) for each in data.tokenized.values())
    goal = 40 if torch.cuda.is_available() else 20
    figure = Figure(
        "3. default grid: naive / ours", name_of(module), ratio.value, None, goal,
        {"naive, s": ratio.first, "ours, s": ratio.second, "naive passes": 160 * num_samples,
         "distinct texts": distinct, "agreement with float64 sums": agreement(masks, exact)},
        ratio.spread,
    )  # fmt: skip
    publish([figure], output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
