"""Where the parameters of a selection lie, and how many of its top the calibration removed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mathneuro.groups import Place
from mathneuro.selection import number_selected


@dataclass(frozen=True)
class Share:
    """How many parameters of a place are selected.

    Attributes:
        parameters: How many parameters its weights have.
        selected: How many of them are selected.
        of_all: How many are selected in the whole model.
    """

    parameters: int
    selected: int
    of_all: int

    @property
    def of_place(self) -> float:
        """Share of the place's parameters that is selected; NaN if it has none."""
        return self.selected / self.parameters if self.parameters else math.nan

    @property
    def of_selected(self) -> float:
        """Share of all selected parameters that lies there; NaN if none is selected."""
        return self.selected / self.of_all if self.of_all else math.nan


@dataclass(frozen=True)
class Removed:
    """How much of the top for math was in the top of a calibration set too, and is not selected.

    Attributes:
        top: How many parameters are in the top for math: ``int(parameters * proportion)`` of each
            weight.
        selected: How many of them are selected.
    """

    top: int
    selected: int

    @property
    def share(self) -> float:
        """Share of the top that was removed; NaN if there is no top."""
        return 1 - self.selected / self.top if self.top else math.nan


def locate(
    places: Mapping[Place, Sequence[str]],
    parameters: Mapping[str, int],
    selected: Mapping[str, int],
) -> dict[Place, Share]:
    """Count selected parameters place by place.

    Args:
        places: Names of the weights by place.
        parameters: How many parameters each weight has.
        selected: How many of them are selected.

    Example:
        >>> from mathneuro.groups import find_places
        >>> found = locate(find_places(["h.0.a", "h.1.a"]), {"h.0.a": 8, "h.1.a": 8},
        ...                {"h.0.a": 1, "h.1.a": 3})
        >>> found[Place("block", 1)].of_place, found[Place("block", 1)].of_selected
        (0.375, 0.75)
    """
    of_all = sum(selected.values())
    return {
        place: Share(
            sum(parameters[name] for name in names), sum(selected[name] for name in names), of_all
        )
        for place, names in places.items()
    }


def removed_by_calibration(
    places: Mapping[Place, Sequence[str]],
    parameters: Mapping[str, int],
    selected: Mapping[str, int],
    proportion: float,
) -> dict[Place, Removed]:
    """Count, place by place, what the method `mathneuro` took from the top for math.

    Args:
        places: Names of the weights by place.
        parameters: How many parameters each weight has.
        selected: How many of them the method selected.
        proportion: Share of each weight's parameters that is its top.

    Example:
        >>> from mathneuro.groups import WHOLE
        >>> removed_by_calibration({WHOLE: ["a"]}, {"a": 25}, {"a": 1}, 0.1)[WHOLE]
        Removed(top=2, selected=1)
    """
    return {
        place: Removed(
            sum(number_selected(parameters[name], proportion) for name in names),
            sum(selected[name] for name in names),
        )
        for place, names in places.items()
    }
