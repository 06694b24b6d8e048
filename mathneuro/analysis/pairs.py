"""Which selections of a sweep's grid are compared, and what they have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from mathneuro.analysis.chance import Sizes
from mathneuro.analysis.common import number_in_common, pack
from mathneuro.analysis.overlap import Overlap, Pair
from mathneuro.data.draws import DrawKey
from mathneuro.grid import Setting
from mathneuro.importance import Importance
from mathneuro.methods import MODEL_METHODS, NO_DRAWS, select
from mathneuro.report.cells import samples_order
from mathneuro.tops import Tops
from mathneuro.weights import Weight

Kind = Literal["repeats", "samples"]
"""Whether two selections differ in the repeat, or in the number of texts."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Tally:
    """How much the selections of a grid hold, and have in common.

    What is counted are parameters; of a method that selects neurons (lape), neurons.

    Attributes:
        settings: What was selected by, each with a factor of 0, since factors select nothing.
        weights: Names of the weights, in the order of the model.
        units: How many parameters each weight has, by method; for lape the neurons before it, of
            which there are none but before output projections of MLPs.
        selected: How many each setting selects in each weight, ``[settings, weights]``.
        common: How many two settings have in common in the whole model, pair by pair.
    """

    settings: Sequence[Setting]
    weights: Sequence[str]
    units: Mapping[str, Sequence[int]]
    selected: Counts
    common: Mapping[Pair, int]

    def overlap(self, pair: Pair) -> Overlap:
        """Return what two settings have in common in the whole model."""
        first, second = pair
        sizes = zip(
            self.units[self.settings[first].method],
            self.selected[first].tolist(),
            self.selected[second].tolist(),
            strict=True,
        )
        return Overlap(tuple(Sizes(*each) for each in sizes), self.common[pair])

    def by_weight(self, number: int) -> dict[str, int]:
        """Return how many a setting selects in each weight."""
        return dict(zip(self.weights, self.selected[number].tolist(), strict=True))

    def units_by_weight(self, method: str) -> dict[str, int]:
        """Return how many there are in each weight that a method could select."""
        return dict(zip(self.weights, self.units[method], strict=True))


def selections_of(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings that differ in more than their factor; those of fewer texts first."""
    return sorted(
        dict.fromkeys(replace(each, factor=0.0) for each in settings),
        key=lambda each: (samples_order(each.num_samples), each.repeat),
    )


def find_pairs(settings: Sequence[Setting]) -> dict[Pair, Kind]:
    """Find the settings that differ in the repeat alone, or in the number of texts alone.

    Methods that draw at random are not compared between numbers of texts: in one repeat they draw
    from the same generator, whatever the texts.

    Example:
        >>> settings = [Setting("wanda", (), number, repeat, 0.1, 0.0)
        ...             for number in (5, 20) for repeat in (1, 2)]
        >>> find_pairs(settings)
        {(0, 1): 'repeats', (2, 3): 'repeats', (0, 2): 'samples', (1, 3): 'samples'}
    """
    pairs: dict[Pair, Kind] = {}
    kinds: dict[Kind, Callable[[Setting], Setting]] = {
        "repeats": lambda setting: replace(setting, repeat=0),
        "samples": lambda setting: replace(setting, num_samples=0),
    }
    for kind, without in kinds.items():
        alike: dict[Setting, list[int]] = {}
        for number, setting in enumerate(settings):
            if kind == "repeats" or setting.method in NO_DRAWS:
                alike.setdefault(without(setting), []).append(number)
        pairs |= {pair: kind for each in alike.values() for pair in combinations(each, 2)}
    return pairs


def tally(
    weights: Mapping[str, Weight],
    importances: Mapping[DrawKey, Importance],
    settings: Sequence[Setting],
    seed: int,
) -> Tally:
    """Select by every setting, weight by weight, and count what the selections have in common.

    Only the selections of one weight by one method and its calibration sets are there at once, each
    with at most one bit a parameter.

    Args:
        weights: The weights that take part, by name.
        importances: Importance of each draw that a setting needs.
        settings: What to select by.
        seed: Seed of methods that draw.
    """
    pairs = list(find_pairs(settings))
    selected = np.zeros((len(settings), len(weights)), dtype=np.int64)
    common = dict.fromkeys(pairs, 0)
    units: dict[str, list[int]] = {each.method: [] for each in settings}
    neurons = {
        number: _neurons(weights, importances[each.draw], each, seed)
        for number, each in enumerate(settings)
        if each.method in MODEL_METHODS
    }
    counted = [each.activations.values() for each in importances.values()]
    after_neurons = {name for sets in counted for vectors in sets for name in vectors}
    proportions = sorted({each.proportion for each in settings})
    names = tqdm(weights, "Selecting", delay=2, leave=False)
    for column, name in enumerate(names):
        tops, weight = Tops(proportions, together=True), weights[name]
        for method, found in units.items():
            if method not in MODEL_METHODS:
                found.append(weight.numel)
            else:
                found.append(weight.in_features if name in after_neurons else 0)
        for numbers in _alike(settings):
            size = units[settings[numbers[0]].method][-1]
            packed = {}
            for number in numbers:
                if number in neurons:
                    positions = neurons[number][name]
                else:
                    importance = importances[settings[number].draw]
                    positions = _positions(weight, importance, settings[number], seed, tops)
                packed[number] = pack(positions, size)
                selected[number, column] = packed[number].count
            for pair in combinations(numbers, 2):
                if pair in common:
                    common[pair] += number_in_common(packed[pair[0]], packed[pair[1]])
    return Tally(settings, list(weights), units, selected, common)


def _alike(settings: Sequence[Setting]) -> Iterator[list[int]]:
    """Go through the settings of one method and its calibration sets, draw by draw."""
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for number, setting in enumerate(settings):
        groups.setdefault((setting.method, setting.calibration), []).append(number)
    yield from groups.values()


def _positions(
    weight: Weight, importance: Importance, setting: Setting, seed: int, tops: Tops
) -> Tensor:
    """Select in one weight, by a method that looks at one at a time."""
    selection = select(
        {weight.name: weight}, importance, setting.method, setting.proportion, setting.calibration,
        seed=seed, repeat=setting.repeat, tops=tops,
    )  # fmt: skip
    return selection.positions[weight.name]


def _neurons(
    weights: Mapping[str, Weight], importance: Importance, setting: Setting, seed: int
) -> dict[str, Tensor]:
    """Select neurons in the whole model: the columns of each weight of which all is selected."""
    selection = select(
        weights, importance, setting.method, setting.proportion, setting.calibration, seed=seed,
        repeat=setting.repeat,
    )  # fmt: skip
    found = {}
    for name, positions in selection.positions.items():
        weight = weights[name]
        step = weight.out_features if weight.transposed else 1
        # Every selected column has a parameter in the first row.
        first = positions[positions % step == 0] if weight.transposed else positions[
            positions < weight.in_features
        ]  # fmt: skip
        found[name] = first // step
    return found
