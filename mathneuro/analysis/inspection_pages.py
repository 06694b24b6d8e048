"""Summary, figures and terminal lines of an inspection of edits."""

import math
from collections.abc import Sequence
from pathlib import Path

from mathneuro.analysis.edits import read_edits
from mathneuro.analysis.inspection import (
    JACCARD,
    Inspection,
    inspect_edits,
    lines_table,
    location_table,
    overlaps_table,
)
from mathneuro.analysis.inspection_figures import inspection_figures
from mathneuro.analysis.overlap import Overlap
from mathneuro.analysis.writing import NO_NUMBER, SUMMARY, check_folder, percent, write_analysis
from mathneuro.groups import WHOLE, Level
from mathneuro.report.tables import markdown_table
from mathneuro.report.wording import model_name
from mathneuro.table import aligned

CHANCE = (
    "Chance: in each weight as many parameters as each edit holds there, drawn uniformly and "
    "independently; the brackets hold the central 95 % of what that gives. Edits that were made "
    "alike cluster in the same columns, so that more than chance is what to expect: compare with "
    "other pairs."
)
COLUMNS = (
    "An edit of the method lape holds whole columns: the expected overlap holds, but by chance it "
    "scatters more than its interval says."
)
OVERLAP_HEADER = ("in both", "of the first", "of the second", "Jaccard", "by chance")
"""Of tables of what edits have in common."""

MOST_BLOCKS = 12
"""Blocks that the terminal shows; of more, those with most selected parameters."""


def write_inspection(paths: Sequence[Path], names: Sequence[str] | None, folder: Path) -> list[str]:
    """Inspect edits and write all there is to tell.

    Args:
        paths: Edit files.
        names: What to call them. None: by file or folder.
        folder: Where summary, tables, figures and TensorBoard's page go.

    Returns:
        What to tell on the terminal.

    Raises:
        InputError: If edits cannot be read or compared, or the folder holds something else.
    """
    check_folder(folder)
    found = inspect_edits(read_edits(paths, names))
    tables = {
        "location.csv": location_table(found),
        "rows_and_columns.csv": lines_table(found),
        "overlaps.csv": overlaps_table(found),
    }
    drawn = write_analysis(folder, _summary(found), tables, inspection_figures(found))
    written = [name for name, table in tables.items() if table is not None]
    return [
        *terminal_lines(found),
        f"{folder / SUMMARY}, {', '.join(written)}, {len(drawn)} figures (PNG and SVG) in figures, "
        f"TensorBoard: tensorboard --logdir {folder}",
    ]


def terminal_lines(found: Inspection) -> list[str]:
    """Lay out what matters most, in lines."""
    lines = [
        f"{each.name}: {each.made}, {location[WHOLE].selected:,} of "
        f"{location[WHOLE].parameters:,} parameters ({percent(location[WHOLE].of_place)})"
        for each, location in zip(found.edits, found.location, strict=True)
    ]
    lines += [f"note: {each}" for each in _notes(found)]
    lines += ["", *aligned(_location_rows(found))]
    lines += [""]
    for each, removed in zip(found.edits, found.removed, strict=True):
        if removed is not None:
            lines.append(
                f"{each.name}: the calibration removed {percent(removed[WHOLE].share)} of the top "
                f"{removed[WHOLE].top:,}"
            )
    header = ("", "most selected", "index", "selected", "expected by chance")
    most = [
        (each.name, f"{line.kind} of {line.weight}", str(line.index),
         f"{line.selected:,} of {line.length:,}", f"{line.expected:.3g}")
        for each, kinds in zip(found.edits, found.lines, strict=True)
        for line in (first for first, *_ in filter(None, kinds.values()))
    ]  # fmt: skip
    if most:
        lines += ["", *aligned([header, *most])]
    if found.pairs:
        rows = [
            (found.pair_name(pair), *_overlap_cells(by_place[WHOLE]))
            for pair, by_place in found.pairs.items()
        ]
        lines += ["", *aligned([("", *OVERLAP_HEADER), *rows])]
    return [*lines, ""]


def _location_rows(found: Inspection) -> list[tuple[str, ...]]:
    """Lay out projections and blocks against edits: the share of all selected parameters."""
    header = ("share of", "all", *(each.name for each in found.edits))
    total = found.location[0][WHOLE].parameters
    places = [place for place in found.location[0] if place.level == "projection"]
    blocks = [place for place in found.location[0] if place.level == "block"]
    if len(blocks) > MOST_BLOCKS:
        counts = {place: sum(each[place].selected for each in found.location) for place in blocks}
        most = sorted(blocks, key=lambda place: -counts[place])[:MOST_BLOCKS]
        blocks = [place for place in blocks if place in most]
    return [
        header,
        *(
            (place.projection or f"block {place.block_name}",
             percent(found.location[0][place].parameters / total),
             *(percent(each[place].of_selected) for each in found.location))
            for place in (*places, *blocks)
        ),
    ]  # fmt: skip


def _notes(found: Inspection) -> list[str]:
    """Tell what a reader of the overlaps must know."""
    hashes = {str(each.edit.model.get("weight_hash")) for each in found.edits}
    notes = []
    if len(hashes) > 1:
        notes.append(
            f"the edits were made for {len(hashes)} different checkpoints of the same shapes; "
            "positions are compared, whatever the weights"
        )
    if found.pairs and any(each.origin.get("method") == "lape" for each in found.edits):
        notes.append(COLUMNS[0].lower() + COLUMNS[1:])
    return notes


def _summary(found: Inspection) -> list[str]:
    """Write all of it as Markdown."""
    lines = ["# Inspected edits", "", *_edits_table(found), ""]
    lines += [f"- {each}" for each in _notes(found)]
    for number, each in enumerate(found.edits):
        lines += ["", f"## Where {each.name} lies", ""]
        removed = found.removed[number]
        if removed is not None:
            lines += [
                f"The calibration removed {percent(removed[WHOLE].share)} of the top "
                f"{removed[WHOLE].top:,} for math.",
                "",
            ]
        for level in ("projection", "block"):
            lines += [*_location_table(found, number, level), ""]
        for kind, most in found.lines[number].items():
            rows = [
                (line.weight, str(line.index), f"{line.selected:,} of {line.length:,}",
                 percent(line.share), f"{line.expected:.3g}")
                for line in most
            ]  # fmt: skip
            header = (f"most selected {kind}s", "index", "selected", "share", "expected by chance")
            lines += [*markdown_table(header, rows), ""]
    return [*lines, *_overlap_section(found)]


def _edits_table(found: Inspection) -> list[str]:
    header = ("edit", "method", "proportion", "factor", "selected", "share", "model", "weights",
              "file")  # fmt: skip
    rows = [
        (each.name, each.method, each.shown_proportion, each.shown_factor,
         f"{location[WHOLE].selected:,}", percent(location[WHOLE].of_place),
         model_name(str(each.edit.model.get("source", "unknown"))),
         str(each.edit.model.get("weight_hash", "unknown"))[:12], str(each.path))
        for each, location in zip(found.edits, found.location, strict=True)
    ]  # fmt: skip
    return markdown_table(header, rows)


def _location_table(found: Inspection, number: int, level: Level) -> list[str]:
    header = [level, "parameters", "selected", "share of its parameters", "share of the selected"]
    removed = found.removed[number]
    if removed is not None:
        header.append("removed by calibration")
    rows = []
    for place, share in found.location[number].items():
        if place.level == level:
            taken = [] if removed is None else [percent(removed[place].share)]
            rows.append([
                place.block_name or place.projection, f"{share.parameters:,}",
                f"{share.selected:,}", percent(share.of_place), percent(share.of_selected), *taken,
            ])  # fmt: skip
    return markdown_table(header, rows)


def _overlap_section(found: Inspection) -> list[str]:
    """Tell what edits have in common; place by place if there are two."""
    if not found.pairs:
        return []
    lines = ["## What they have in common", "", f"{JACCARD} {CHANCE}", ""]
    rows = [
        (found.pair_name(pair), *_overlap_cells(each[WHOLE])) for pair, each in found.pairs.items()
    ]
    lines += [*markdown_table(("first / second", *OVERLAP_HEADER), rows), ""]
    if len(found.pairs) > 1:
        return [*lines, "By block and projection: `overlaps.csv`, and the figures."]
    (by_place,) = found.pairs.values()
    for level in ("projection", "block"):
        rows = [
            (place.block_name or place.projection, *_overlap_cells(each))
            for place, each in by_place.items()
            if place.level == level
        ]
        lines += [*markdown_table((level, *OVERLAP_HEADER), rows), ""]
    return lines


def _overlap_cells(overlap: Overlap) -> tuple[str, ...]:
    """Return the cells of `OVERLAP_HEADER`; the index with what chance would give."""
    common = (
        f"{overlap.common:,}", percent(overlap.share_of_first), percent(overlap.share_of_second)
    )  # fmt: skip
    chance = overlap.jaccard_by_chance
    if math.isnan(chance.value):
        return (*common, NO_NUMBER, NO_NUMBER)
    ends = f"[{chance.low:.3g}, {chance.high:.3g}]"
    return (*common, f"{overlap.jaccard:.3g}", f"{chance.value:.3g} {ends}")
