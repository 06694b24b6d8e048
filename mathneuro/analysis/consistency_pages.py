"""Summary, figures and terminal lines of how stable the selections of a sweep are."""

import math
from collections.abc import Callable, Mapping, Sequence

from mathneuro.analysis.agreement import SHARE, Agreement, Key, agreement_table, agreements
from mathneuro.analysis.consistency import (
    AS_MATHNEURO,
    SAME_EVERYWHERE,
    Consistency,
    Located,
    Plan,
    find_consistency,
    location_table,
)
from mathneuro.analysis.consistency_figures import consistency_figures
from mathneuro.analysis.ranges import NO_RANGE, Range
from mathneuro.analysis.writing import (
    NO_NUMBER,
    SUMMARY,
    number_of_texts,
    percent,
    percents,
    write_analysis,
)
from mathneuro.module import CausalLanguageModel
from mathneuro.report import wording
from mathneuro.report.tables import markdown_table
from mathneuro.study import Study
from mathneuro.table import aligned
from mathneuro.terminal import counted

FOLDER = "consistency"
"""Folder, in that of the sweep, that all files go to."""

CHANCE = (
    "Chance: in each weight as many parameters as each selection holds there, drawn uniformly and "
    "independently."
)


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
    drawn = write_analysis(folder, _summary(found, name), tables, consistency_figures(found, name))
    return [
        *terminal_lines(found),
        f"{folder / SUMMARY}, {', '.join(tables)}, {len(drawn)} figures (PNG and SVG) in figures, "
        f"TensorBoard: tensorboard --logdir {folder}",
    ]


def terminal_lines(found: Consistency) -> list[str]:
    """Lay out what matters most, in lines."""
    lines = [f"note: {each}" for each in _notes(found)]
    repeats = agreements(found.pairs, "repeats")
    if repeats:
        numbers = found.numbers
        header = (
            "in common between repeats", "proportion", *map(wording.samples, numbers),
            f"by chance, {wording.samples(numbers[-1])}",
        )  # fmt: skip
        rows = []
        for series, proportion in dict.fromkeys(key[:2] for key in repeats):
            mine = [repeats.get((series, proportion, each, each)) for each in numbers]
            chance = NO_NUMBER if mine[-1] is None else percent(mine[-1].chance.value)
            shares = [NO_NUMBER if each is None else percents(each.share) for each in mine]
            rows.append((str(series), f"{proportion:g}", *shares, chance))
        lines += [*aligned([header, *rows]), ""]
    most = found.numbers[-1]
    removed = [
        each
        for each in found.located
        if each.removed is not None and each.place.level == "whole" and each.num_samples == most
    ]
    for series in dict.fromkeys(each.series for each in removed):
        told = ", ".join(
            f"{percent(each.removed.value)} at {each.proportion:g}"
            for each in removed
            if each.series == series and each.removed and not math.isnan(each.removed.value)
        )
        lines.append(f"{series}: of the top for math the calibration removed {told or 'nothing'}")
    return [*lines, ""]


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
    lines += [*_agreement_table(agreements(found.pairs, "repeats")), ""]
    if len(found.numbers) > 1:
        lines += [
            "## Between numbers of texts", "",
            "In one repeat, whose draws share texts, since their generators begin alike. `random` "
            "is left out: it looks at no text.", "",
            *_agreement_table(agreements(found.pairs, "samples")), "",
        ]  # fmt: skip
    left = sorted({each.method for each in found.settings} & SAME_EVERYWHERE)
    as_mathneuro = sorted({each.method for each in found.settings} & AS_MATHNEURO)
    lines += ["## Where the selections lie", ""]
    lines += [f"`{each}` selects the same share of every weight, by definition." for each in left]
    lines += [f"`{each}` selects as much of every weight as `mathneuro`." for each in as_mathneuro]
    lines += [""]
    most = found.numbers[-1]
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
        texts = dict.fromkeys(str(number_of_texts(number)) for number in (first, second))
        rows.append((
            str(series), " and ".join(texts), f"{proportion:g}", str(each.pairs),
            f"{each.selected:,.0f}", percents(each.share), percent(each.deviation),
            percents(each.chance), f"{each.jaccard:.3g}", f"{each.jaccard_by_chance:.3g}",
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
    removed = _by_proportion(found, header, lambda each: each.removed or NO_RANGE)
    return [*lines, *removed, ""]


def _by_proportion(
    found: Sequence[Located],
    header: Sequence[str],
    number: Callable[[Located], Range],
) -> list[str]:
    rows: dict[str, list[str]] = {}
    for each in found:
        place = each.place
        name = place.projection or (f"block {place.block_name}" if place.block_name else "whole")
        rows.setdefault(name, []).append(percent(number(each).value))
    return markdown_table(header, [(name, *cells) for name, cells in rows.items()])
