"""What there is to know about some edits, from their files alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mathneuro.analysis.concentration import Kind, Line, most_selected
from mathneuro.analysis.edits import NamedEdit
from mathneuro.analysis.location import Removed, Share, locate, removed_by_calibration
from mathneuro.analysis.overlap import (
    Overlap,
    Pair,
    count_parameters,
    count_selected,
    overlaps,
)
from mathneuro.analysis.writing import Table
from mathneuro.groups import Level, Place, find_places

LINES = 10
"""Rows, and columns, that are named of each edit."""

OVERLAP_LEVELS: tuple[Level, ...] = ("whole", "block", "projection")
"""Where edits are compared."""

JACCARD = "Jaccard: parameters in both edits / parameters in either."
"""What is told of the index."""


@dataclass(frozen=True)
class Inspection:
    """What was found.

    Attributes:
        edits: The edits.
        parameters: How many parameters each weight has that takes part.
        location: Where the parameters of each edit lie, by place.
        removed: What calibration removed, for each edit of the method `mathneuro`; else None.
        lines: The most selected rows and columns of each edit.
        pairs: What every two edits have in common, by place.
    """

    edits: Sequence[NamedEdit]
    parameters: Mapping[str, int]
    location: Sequence[Mapping[Place, Share]]
    removed: Sequence[Mapping[Place, Removed] | None]
    lines: Sequence[Mapping[Kind, Sequence[Line]]]
    pairs: Mapping[Pair, Mapping[Place, Overlap]]

    def pair_name(self, pair: Pair) -> str:
        """Name two edits."""
        return " / ".join(self.edits[index].name for index in pair)


def inspect_edits(edits: Sequence[NamedEdit]) -> Inspection:
    """Find out where edits lie and what they have in common.

    Args:
        edits: Edits of the same set of weights.
    """
    selections = [each.edit.selection for each in edits]
    parameters = {name: count_parameters(shape) for name, shape in selections[0].shapes.items()}
    places = find_places(parameters)
    counts = [count_selected(each) for each in selections]
    compared = {place: names for place, names in places.items() if place.level in OVERLAP_LEVELS}
    return Inspection(
        edits=edits,
        parameters=parameters,
        location=[locate(places, parameters, each) for each in counts],
        removed=[
            removed_by_calibration(places, parameters, selected, each.proportion)
            if each.origin.get("method") == "mathneuro" and each.proportion is not None
            else None
            for each, selected in zip(edits, counts, strict=True)
        ],
        lines=[most_selected(each, LINES) for each in selections],
        pairs=overlaps(selections, compared) if len(edits) > 1 else {},
    )


def location_table(found: Inspection) -> Table:
    """Lay out where edits lie, one row an edit and place."""
    columns = (
        "edit", "level", "block", "projection", "parameters", "selected", "share_of_parameters",
        "share_of_selected", "top", "removed_by_calibration",
    )  # fmt: skip
    rows = []
    for edit, location, removed in zip(found.edits, found.location, found.removed, strict=True):
        for place, share in location.items():
            taken = None if removed is None else removed[place]
            rows.append((
                edit.name, place.level, place.block_name, place.projection, share.parameters,
                share.selected, share.of_place, share.of_selected,
                None if taken is None else taken.top, None if taken is None else taken.share,
            ))  # fmt: skip
    return Table(columns, rows)


def lines_table(found: Inspection) -> Table:
    """Lay out the most selected rows and columns."""
    columns = ("edit", "kind", "weight", "index", "selected", "length", "share",
               "expected_by_chance")  # fmt: skip
    return Table(columns, [
        (edit.name, line.kind, line.weight, line.index, line.selected, line.length, line.share,
         line.expected)
        for edit, kinds in zip(found.edits, found.lines, strict=True)
        for lines in kinds.values()
        for line in lines
    ])  # fmt: skip


OVERLAP_COLUMNS = (
    "first_selected", "second_selected", "common", "common_by_chance", "common_by_chance_low",
    "common_by_chance_high", "jaccard", "jaccard_by_chance", "jaccard_by_chance_low",
    "jaccard_by_chance_high", "share_of_first", "share_of_second", "share",
    "share_by_chance", "share_by_chance_low", "share_by_chance_high",
)  # fmt: skip
"""Of what two selections have in common."""


def overlap_cells(overlap: Overlap) -> tuple[float, ...]:
    """Return the cells of `OVERLAP_COLUMNS`."""
    chance, jaccard, share = overlap.chance, overlap.jaccard_by_chance, overlap.share_by_chance
    return (
        overlap.first, overlap.second, overlap.common, chance.mean, chance.low, chance.high,
        overlap.jaccard, jaccard.value, jaccard.low, jaccard.high,
        overlap.share_of_first, overlap.share_of_second,
        overlap.share, share.value, share.low, share.high,
    )  # fmt: skip


def overlaps_table(found: Inspection) -> Table | None:
    """Lay out what edits have in common, one row a pair and place; None of a single edit."""
    if not found.pairs:
        return None
    columns = ("first", "second", "level", "block", "projection", *OVERLAP_COLUMNS)
    return Table(columns, [
        (found.edits[first].name, found.edits[second].name, place.level, place.block_name,
         place.projection, *overlap_cells(overlap))
        for (first, second), by_place in found.pairs.items()
        for place, overlap in by_place.items()
    ])  # fmt: skip
