"""How well selections of a sweep agree: means over pairs, beside what chance would give."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mathneuro.analysis.inspection import OVERLAP_COLUMNS, overlap_cells
from mathneuro.analysis.pairs import Kind, Tally, find_pairs
from mathneuro.analysis.ranges import Range, mean_range
from mathneuro.analysis.writing import Table, number_of_texts
from mathneuro.grid import Setting
from mathneuro.report.cells import Series

SHARE = "Share in common: what two selections have in common, divided by the mean of their sizes."
"""What is told of `Agreement.share`."""

Key = tuple[Series, float, int | None, int | None]
"""Series, proportion, and the numbers of texts of the first and the second of a pair."""


@dataclass(frozen=True)
class Compared:
    """Two selections and what they have in common.

    Attributes:
        first: How the first was made; that of fewer texts, or of the earlier repeat.
        second: How the second was made.
        kind: In what they differ.
        cells: What they have in common, by `OVERLAP_COLUMNS`.
    """

    first: Setting
    second: Setting
    kind: Kind
    cells: dict[str, float]

    def number(self, column: str) -> float:
        """Return one of the cells."""
        return float(self.cells[column])

    @property
    def series(self) -> Series:
        """Method and calibration sets."""
        return Series(self.first.method, self.first.calibration)


@dataclass(frozen=True)
class Agreement:
    """Pairs that differ in nothing but their draws, together.

    Attributes:
        pairs: How many there are.
        selected: Mean size of the selections.
        share: Mean share of selected parameters in common, with the lowest and the highest pair's.
        deviation: Standard deviation of the share over the pairs; NaN of a single one.
        chance: What chance would give: the mean of the expected shares, the lowest lower end and
            the highest upper end of the pairs' 95 % intervals.
        jaccard: Mean Jaccard index.
        jaccard_by_chance: Mean expected Jaccard index.
    """

    pairs: int
    selected: float
    share: Range
    deviation: float
    chance: Range
    jaccard: float
    jaccard_by_chance: float


def compare_all(tally: Tally) -> list[Compared]:
    """Compare all pairs of a tally."""
    found = []
    for pair, kind in find_pairs(tally.settings).items():
        first, second = (tally.settings[number] for number in pair)
        cells = zip(OVERLAP_COLUMNS, overlap_cells(tally.overlap(pair)), strict=True)
        found.append(Compared(first, second, kind, dict(cells)))
    return found


def agree(pairs: Sequence[Compared]) -> Agreement | None:
    """Take pairs together; None if none of them has a selected parameter.

    Args:
        pairs: Pairs of the same kind.
    """
    known = [each for each in pairs if not math.isnan(each.number("share"))]
    if not known:
        return None
    shares = [each.number("share") for each in known]

    def mean(column: str) -> float:
        return float(np.mean([each.number(column) for each in known]))

    return Agreement(
        pairs=len(known),
        selected=(mean("first_selected") + mean("second_selected")) / 2,
        share=mean_range(shares),
        deviation=float(np.std(shares, ddof=1)) if len(shares) > 1 else math.nan,
        chance=Range(
            mean("share_by_chance"),
            min(each.number("share_by_chance_low") for each in known),
            max(each.number("share_by_chance_high") for each in known),
        ),
        jaccard=mean("jaccard"),
        jaccard_by_chance=mean("jaccard_by_chance"),
    )


def agreements(pairs: Iterable[Compared], kind: Kind) -> dict[Key, Agreement]:
    """Take pairs of one kind together that differ in nothing but their draws."""
    groups: dict[Key, list[Compared]] = {}
    for each in pairs:
        if each.kind == kind:
            key = (each.series, each.first.proportion, each.first.num_samples,
                   each.second.num_samples)  # fmt: skip
            groups.setdefault(key, []).append(each)
    together = {key: agree(each) for key, each in groups.items()}
    order = list(dict.fromkeys(key[0] for key in together))
    return {
        key: found
        for key, found in sorted(
            together.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
        )
        if found is not None
    }


def agreement_table(found: Sequence[Compared]) -> Table:
    """Lay out every pair in a row."""
    columns = ("method", "calibration", "proportion", "differ_in", "first_num_samples",
               "first_repeat", "second_num_samples", "second_repeat", *OVERLAP_COLUMNS)  # fmt: skip
    return Table(columns, [
        (each.first.method, "+".join(each.first.calibration), each.first.proportion, each.kind,
         number_of_texts(each.first.num_samples), each.first.repeat,
         number_of_texts(each.second.num_samples), each.second.repeat, *each.cells.values())
        for each in found
    ])  # fmt: skip
