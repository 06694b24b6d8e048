"""What two selections have in common, place by place, beside what chance would give."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from mathneuro.analysis.chance import (
    Chance,
    Sizes,
    common_by_chance,
    common_share,
    expected_jaccard,
    jaccard,
)
from mathneuro.analysis.common import number_in_common, pack
from mathneuro.analysis.ranges import Range
from mathneuro.errors import InputError
from mathneuro.groups import Place
from mathneuro.selection import Selection


@dataclass(frozen=True)
class Overlap:
    """What two selections have in common.

    Attributes:
        sizes: The sizes of both in each weight.
        common: How many parameters are in both.
    """

    sizes: tuple[Sizes, ...]
    common: int

    @cached_property
    def first(self) -> int:
        """How many parameters the first selection holds."""
        return sum(each.first for each in self.sizes)

    @cached_property
    def second(self) -> int:
        """How many parameters the second selection holds."""
        return sum(each.second for each in self.sizes)

    @property
    def jaccard(self) -> float:
        """Share that is in both, of all that is in either; NaN if both are empty."""
        return jaccard(self.common, self.first, self.second)

    @property
    def share_of_first(self) -> float:
        """Share of the first selection that is in the second too; NaN if the first is empty."""
        return self.common / self.first if self.first else math.nan

    @property
    def share_of_second(self) -> float:
        """Share of the second selection that is in the first too; NaN if the second is empty."""
        return self.common / self.second if self.second else math.nan

    @property
    def share(self) -> float:
        """What is in both, divided by the mean of the two sizes; NaN if both are empty."""
        return common_share(self.common, self.first, self.second)

    @cached_property
    def chance(self) -> Chance:
        """How many parameters would be in both by chance."""
        return common_by_chance(self.sizes)

    @cached_property
    def jaccard_by_chance(self) -> Range:
        """The expected Jaccard index by chance, and the central 95 % of what chance gives."""
        sizes = self.first, self.second
        return Range(
            expected_jaccard(self.chance, *sizes),
            # The index rises with what is in common, so that ends stay ends.
            jaccard(self.chance.low, *sizes),
            jaccard(self.chance.high, *sizes),
        )

    @cached_property
    def share_by_chance(self) -> Range:
        """The same of `share`."""
        sizes, chance = (self.first, self.second), self.chance
        return Range(*(common_share(x, *sizes) for x in (chance.mean, chance.low, chance.high)))


Pair = tuple[int, int]
"""Which two of several selections."""


def overlaps(
    selections: Sequence[Selection], places: Mapping[Place, Sequence[str]]
) -> dict[Pair, dict[Place, Overlap]]:
    """Compare every two selections of the same weights, place by place.

    Args:
        selections: The selections.
        places: Names of the weights by place.

    Returns:
        By pair and place.

    Example:
        >>> import torch
        >>> from mathneuro.groups import WHOLE
        >>> one, other = (Selection({"a": torch.tensor(each)}, {"a": (3, 4)})
        ...               for each in ([0, 5, 7], [5, 7, 11]))
        >>> overlap = overlaps([one, other], {WHOLE: ["a"]})[0, 1][WHOLE]
        >>> overlap.jaccard, overlap.share_by_chance.value
        (0.5, 0.25)
    """
    pairs = list(combinations(range(len(selections)), 2))
    names = list(dict.fromkeys(name for members in places.values() for name in members))
    common: dict[str, list[int]] = {}
    parameters = {name: count_parameters(selections[0].shapes[name]) for name in names}
    for name in names:
        packed = [pack(each.positions[name], parameters[name]) for each in selections]
        common[name] = [number_in_common(packed[first], packed[second]) for first, second in pairs]
    counts = [count_selected(each) for each in selections]
    return {
        (first, second): {
            place: Overlap(
                tuple(
                    Sizes(parameters[name], counts[first][name], counts[second][name])
                    for name in members
                ),
                sum(common[name][number] for name in members),
            )
            for place, members in places.items()
        }
        for number, (first, second) in enumerate(pairs)
    }


def count_selected(selection: Selection) -> dict[str, int]:
    """Return how many parameters are selected in each weight."""
    return {name: each.numel() for name, each in selection.positions.items()}


def count_parameters(shape: Sequence[int]) -> int:
    """Return how many parameters a weight of a shape has."""
    rows, columns = shape
    return rows * columns


def check_comparable(selections: Mapping[str, Selection], option: str) -> None:
    """Refuse selections that were made in other sets of weights.

    Args:
        selections: The selections by name.
        option: The option that gave them, for messages.

    Raises:
        InputError: If a weight is missing in one, or has another shape there.
    """
    names = list(selections)
    reference = selections[names[0]].shapes
    for name in names[1:]:
        shapes = selections[name].shapes
        for weight in (*reference, *shapes):
            one, other = reference.get(weight), shapes.get(weight)
            if one != other:
                raise InputError(
                    f"{option}: {names[0]} and {name} cannot be compared: {weight} "
                    f"{_held(one, names[0])} and {_held(other, name)}; compare edits of models of "
                    "the same shapes, made with the same model.include and model.exclude"
                )


def _held(shape: Sequence[int] | None, name: str) -> str:
    return f"takes no part in {name}" if shape is None else f"has shape {list(shape)} in {name}"
