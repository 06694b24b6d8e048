"""Figures of how stable the selections of a sweep are."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mathneuro.analysis.agreement import SHARE, Agreement, Key, agreements
from mathneuro.analysis.consistency import Consistency, Located
from mathneuro.analysis.curves import Point, agreement_curves, removed_curves
from mathneuro.analysis.heatmaps import block_heatmap
from mathneuro.groups import Place
from mathneuro.report import wording
from mathneuro.report.cells import Series
from mathneuro.report.style import samples_places

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANGE = "Bands: lowest and highest pair. Dotted: what chance would give."
KEPT = "Selected share of each weight, divided by the proportion"


def consistency_figures(found: Consistency, name: str) -> Iterator[tuple[str, "Figure"]]:
    """Draw one figure after the other, with the name of its file without an ending."""
    repeats = agreements(found.pairs, "repeats")
    caption = f"{SHARE} {RANGE}"
    if repeats:
        panels: dict[str, dict[Series, list[Point]]] = {}
        for (series, proportion, number, _), each in repeats.items():
            lines = panels.setdefault(wording.samples(number), {})
            lines.setdefault(series, []).append(Point(proportion, each.share, each.chance))
        ordered = {wording.samples(number): panels[wording.samples(number)]
                   for number in found.numbers if wording.samples(number) in panels}  # fmt: skip
        title = f"{name}: agreement between repeats, by proportion"
        yield "repeats_by_proportion", agreement_curves(ordered, title, caption)
    most = found.numbers[-1]
    if len(found.numbers) > 1:
        title = f"{name}: agreement between repeats, by number of texts"
        if repeats:
            yield "repeats_by_samples", _by_samples(repeats, title, caption)
        title = f"{name}: agreement with {wording.samples(most)}, by number of texts"
        to_most = [each for each in found.pairs if each.second.num_samples == most]
        largest = agreements(to_most, "samples")
        if largest:
            caption = f"{caption} In one repeat, whose draws share texts."
            yield "largest_by_samples", _by_samples(largest, title, caption)
    mine = [each for each in found.located if each.num_samples == most]
    for number, series in enumerate(dict.fromkeys(each.series for each in mine), 1):
        title = f"{name}: where the selections of {series} lie, {wording.samples(most)}"
        cells = _cells([each for each in mine if each.series == series])
        caption = f"{KEPT}, mean over repeats. Grey: there is no such weight."
        if cells:
            yield f"location_{number}", block_heatmap(cells, title, caption, percents=False)
    removed = _removed(mine)
    if removed:
        title = f"{name}: what calibration removed of the top for math, {wording.samples(most)}"
        caption = "Mean over repeats. The top of each weight is as large as the proportion says."
        yield "removed", removed_curves(removed, title, caption)


def _by_samples(found: Mapping[Key, Agreement], title: str, caption: str) -> "Figure":
    """Draw agreement against the number of texts, one panel a proportion."""
    places = samples_places(key[2] for key in found)
    panels: dict[str, dict[Series, list[Point]]] = {}
    for (series, proportion, number, _), each in sorted(found.items(), key=lambda item: item[0][1]):
        lines = panels.setdefault(f"proportion {proportion:g}", {})
        lines.setdefault(series, []).append(Point(places[number], each.share, each.chance))
    for lines in panels.values():
        for points in lines.values():
            points.sort(key=lambda point: point.place)
    return agreement_curves(panels, title, caption, places)


def _cells(found: Sequence[Located]) -> dict[str, dict[Place, float]]:
    panels: dict[str, dict[Place, float]] = {}
    for each in found:
        if each.place.level == "cell" and each.proportion > 0:
            values = panels.setdefault(f"proportion {each.proportion:g}", {})
            values[each.place] = each.of_place.value / each.proportion
    return panels


def _removed(found: Sequence[Located]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return the lines of what calibration removed: the whole and each projection."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for each in found:
        if each.removed is None or math.isnan(each.removed.value):
            continue
        if each.place.level in ("whole", "projection"):
            lines = panels.setdefault(str(each.series), {})
            label = each.place.projection or "whole model"
            lines.setdefault(label, []).append((each.proportion, each.removed.value))
    return panels
