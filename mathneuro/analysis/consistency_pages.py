"""Summary, figures and terminal lines of how stable the selections of a sweep are."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mathneuro.analysis.agreement import Agreement, Compared, agree, agreement_table
from mathneuro.analysis.consistency import (
    AS_MATHNEURO,
    SAME_EVERYWHERE,
    Consistency,
    Located,
    Plan,
    find_consistency,
    location_table,
)
from mathneuro.analysis.curves import Point, agreement_curves, removed_curves
from mathneuro.analysis.heatmaps import block_heatmap
from mathneuro.analysis.pairs import Kind
from mathneuro.analysis.writing import SUMMARY, percent, write_analysis
from mathneuro.estimates import Estimate
from mathneuro.groups import Place
from mathneuro.module import CausalLanguageModel
from mathneuro.report import wording
from mathneuro.report.cells import Series, samples_order
from mathneuro.report.style import samples_places
from mathneuro.report.tables import markdown_table
from mathneuro.study import Study
from mathneuro.table import aligned
from mathneuro.terminal import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "consistency"
"""Folder, in that of the sweep, that all files go to."""

SHARE = "Share in common: what two selections have in common, divided by the mean of their sizes."
CHANCE = (
    "Chance: in each weight as many parameters as each selection holds there, drawn uniformly and "
    "independently."
)
RANGE = "Bands: lowest and highest pair. Dotted: what chance would give."
KEPT = "Selected share of each weight, divided by the proportion"

Key = tuple[Series, float, int | None, int | None]
"""Series, proportion, and the numbers of texts of the first and the second of a pair."""


def write_consistency(study: Study, plan: Plan, model: CausalLanguageModel) -> list[str]:
    """Find out how stable the selections of a sweep are, and write all there is to tell.

    Args:
        study: The sweep.
        plan: What its folder says.
        model: The model, loaded.

    Returns:
        What to tell on the terminal.

    Raises:
        InputError: If the sweep was that of another model, or a file is damaged or cannot be
            written.
    """
    found = find_consistency(study, plan, model)
    name = wording.model_name(model.source.path)
    folder = study.folder / FOLDER
    tables = {"agreement.csv": agreement_table(found.pairs), "location.csv": location_table(found)}
    drawn = write_analysis(folder, _summary(found, name), tables, _figures(found, name))
    return [
        *terminal_lines(found),
        f"{folder / SUMMARY}, {', '.join(tables)}, {len(drawn)} figures (PNG and SVG) in figures, "
        f"TensorBoard: tensorboard --logdir {folder}",
    ]


def terminal_lines(found: Consistency) -> list[str]:
    """Lay out what matters most, in lines."""
    lines = [f"note: {each}" for each in _notes(found)]
    agreements = _agreements(found.pairs, "repeats")
    if agreements:
        numbers = _numbers(found)
        header = (
            "in common between repeats", "proportion", *map(wording.samples, numbers),
            f"by chance, {wording.samples(numbers[-1])}",
        )  # fmt: skip
        rows = []
        for series, proportion in dict.fromkeys(key[:2] for key in agreements):
            mine = [agreements.get((series, proportion, each, each)) for each in numbers]
            chance = "none" if mine[-1] is None else percent(mine[-1].chance.value)
            rows.append((str(series), f"{proportion:g}", *map(_short, mine), chance))
        lines += [*aligned([header, *rows]), ""]
    most = _numbers(found)[-1]
    removed = [
        each
        for each in found.located
        if each.removed is not None and each.place.level == "whole" and each.num_samples == most
    ]
    for series in dict.fromkeys(each.series for each in removed):
        shares = [each for each in removed if each.series == series]
        told = ", ".join(
            f"{percent(each.removed.value)} at {each.proportion:g}"
            for each in shares
            if each.removed is not None
        )
        lines.append(f"{series}: of the top for math the calibration removed {told}")
    return [*lines, ""]


def _short(agreement: Agreement | None) -> str:
    """Write a mean with the lowest and the highest."""
    if agreement is None:
        return "none"
    low, high = (100 * (end or 0.0) for end in (agreement.share.low, agreement.share.high))
    return f"{percent(agreement.share.value)} [{low:.3g}, {high:.3g}]"


def _notes(found: Consistency) -> list[str]:
    """Tell what is missing."""
    notes = []
    if found.missing:
        notes.append(
            f"{counted(len(found.missing), 'draw')} of the grid left out, whose importance is not "
            f"there yet: {', '.join(found.missing)}"
        )
    if found.uncounted:
        notes.append(
            f"lape left out for {counted(len(found.uncounted), 'draw')} whose importance holds no "
            f"activations: {', '.join(found.uncounted)}"
        )
    return notes


def _agreements(pairs: Iterable[Compared], kind: Kind) -> dict[Key, Agreement]:
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


def _numbers(found: Consistency) -> list[int | None]:
    """Return the numbers of texts that selections were made with, in rising order."""
    return sorted({each.num_samples for each in found.settings}, key=samples_order)


def _summary(found: Consistency, name: str) -> list[str]:
    """Write all of it as Markdown."""
    lines = [
        f"# How stable the selections are: {name}", "",
        f"{SHARE} {CHANCE} Its brackets hold the lowest and the highest end of the pairs' 95 % "
        "intervals; those after a share in common its lowest and highest pair. All pairs are in "
        "`agreement.csv`, which has the Jaccard index and its chance with both.", "",
        *(f"- {each}" for each in _notes(found)), "",
    ]  # fmt: skip
    lines += ["## Between repeats", "", "Other draws of as many texts.", ""]
    lines += [*_agreement_table(_agreements(found.pairs, "repeats")), ""]
    if len(_numbers(found)) > 1:
        lines += [
            "## Between numbers of texts", "",
            "In one repeat, whose draws share texts, since their generators begin alike. `random` "
            "is left out: it looks at no text.", "",
            *_agreement_table(_agreements(found.pairs, "samples")), "",
        ]  # fmt: skip
    left = sorted({each.method for each in found.settings} & SAME_EVERYWHERE)
    as_mathneuro = sorted({each.method for each in found.settings} & AS_MATHNEURO)
    lines += ["## Where the selections lie", ""]
    lines += [f"`{each}` selects the same share of every weight, by definition." for each in left]
    lines += [f"`{each}` selects as much of every weight as `mathneuro`." for each in as_mathneuro]
    lines += [""]
    most = _numbers(found)[-1]
    mine = [
        each
        for each in found.located
        if each.num_samples == most and each.place.level in ("whole", "projection", "block")
    ]
    for series in dict.fromkeys(each.series for each in mine):
        lines += [f"### {series}, {wording.samples(most)}", ""]
        lines += _located_table([each for each in mine if each.series == series])
    return lines


def _agreement_table(found: Mapping[Key, Agreement]) -> list[str]:
    header = ("method", "texts of a set", "proportion", "pairs", "selected", "share in common",
              "deviation", "by chance", "Jaccard", "by chance")  # fmt: skip
    rows = []
    for (series, proportion, first, second), each in found.items():
        texts = dict.fromkeys(
            "all" if number is None else str(number) for number in (first, second)
        )
        chance, ends = each.chance, (each.chance.low or 0.0, each.chance.high or 0.0)
        rows.append((
            str(series), " and ".join(texts), f"{proportion:g}", str(each.pairs),
            f"{each.selected:,.0f}", _short(each), percent(each.deviation),
            f"{percent(chance.value)} [{100 * ends[0]:.3g}, {100 * ends[1]:.3g}]",
            f"{each.jaccard:.3g}", f"{each.jaccard_by_chance:.3g}",
        ))  # fmt: skip
    return markdown_table(header, rows)


def _located_table(found: Sequence[Located]) -> list[str]:
    """Lay out shares of all selected against proportions; what was removed below."""
    proportions = list(dict.fromkeys(each.proportion for each in found))
    header = ("share of the selected", *(f"at {each:g}" for each in proportions))
    lines = [*_by_proportion(found, header, lambda each: each.of_selected), ""]
    if found[0].removed is None:
        return lines
    header = ("removed by calibration", *header[1:])
    removed = _by_proportion(found, header, lambda each: each.removed or Estimate(math.nan))
    return [*lines, *removed, ""]


def _by_proportion(
    found: Sequence[Located],
    header: Sequence[str],
    number: Callable[[Located], Estimate],
) -> list[str]:
    rows: dict[str, list[str]] = {}
    for each in found:
        place = each.place
        name = place.projection or (f"block {place.block_name}" if place.block_name else "whole")
        rows.setdefault(name, []).append(percent(number(each).value))
    return markdown_table(header, [(name, *cells) for name, cells in rows.items()])


def _figures(found: Consistency, name: str) -> Iterator[tuple[str, "Figure"]]:
    """Draw one figure after the other, with the name of its file without an ending."""
    repeats = _agreements(found.pairs, "repeats")
    caption = f"{SHARE} {RANGE}"
    if repeats:
        panels: dict[str, dict[Series, list[Point]]] = {}
        for (series, proportion, number, _), each in repeats.items():
            lines = panels.setdefault(wording.samples(number), {})
            lines.setdefault(series, []).append(Point(proportion, each.share, each.chance))
        ordered = {wording.samples(number): panels[wording.samples(number)]
                   for number in _numbers(found) if wording.samples(number) in panels}  # fmt: skip
        title = f"{name}: agreement between repeats, by proportion"
        yield "repeats_by_proportion", agreement_curves(ordered, title, caption)
    most = _numbers(found)[-1]
    if len(_numbers(found)) > 1:
        title = f"{name}: agreement between repeats, by number of texts"
        if repeats:
            yield "repeats_by_samples", _by_samples(repeats, title, caption)
        title = f"{name}: agreement with {wording.samples(most)}, by number of texts"
        to_most = [each for each in found.pairs if each.second.num_samples == most]
        largest = _agreements(to_most, "samples")
        if largest:
            caption = f"{caption} In one repeat, whose draws share texts."
            yield "largest_by_samples", _by_samples(largest, title, caption)
    mine = [each for each in found.located if each.num_samples == most]
    for number, series in enumerate(dict.fromkeys(each.series for each in mine), 1):
        title = f"{name}: where the selections of {series} lie, {wording.samples(most)}"
        cells = _cells([each for each in mine if each.series == series])
        caption = f"{KEPT}, mean over repeats. Grey: there is no such weight."
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
        if each.removed is not None and each.place.level in ("whole", "projection"):
            lines = panels.setdefault(str(each.series), {})
            label = each.place.projection or "whole model"
            lines.setdefault(label, []).append((each.proportion, each.removed.value))
    return panels
