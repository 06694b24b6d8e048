"""The summary of a sweep, as Markdown."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mathneuro.files import to_json
from mathneuro.report import wording
from mathneuro.report.cells import Cell
from mathneuro.report.reading import Study
from mathneuro.report.roles import Roles
from mathneuro.report.tables import baseline_table, reading_notes, result_tables

NAMED = 5
"""How many names of missing settings are given."""


def summary(
    study: Study, found: Sequence[Cell], roles: Roles, figures: Sequence[tuple[str, Path]]
) -> str:
    """Write what was run and what came out.

    Args:
        study: The sweep.
        found: Its cells.
        roles: Which scores stand for what.
        figures: Title and path of each PNG, relative to the summary.

    Returns:
        Markdown.
    """
    parts = [
        [f"# Sweep of {wording.model_name(study.model)}"],
        [*_what_was_run(study), *_what_stands_for_what(roles)],
        ["## The model as it was found", "", *baseline_table(study, roles)],
    ]
    if found:
        notes = reading_notes(found, roles)
        parts += [["## Settings", "", *notes, "", *result_tables(study, found, roles)]]
    if figures:
        parts.append(["## Figures", "", *_figures(figures)])
    remarks = _remarks(study)
    if remarks:
        parts.append(["## Remarks", "", *remarks])
    parts.append(
        ["## What the scores depend on", "", "```json", to_json(study.matters, indent=2), "```"]
    )
    return "\n\n".join("\n".join(part).strip() for part in parts) + "\n"


def _what_was_run(study: Study) -> list[str]:
    """Name the model, the grid, and what is missing."""
    done, planned = len(study.results), len(study.planned)
    lines = [f"- model: {study.model}, {study.total:,} parameters"]
    if done == planned:
        lines.append(f"- settings: all {planned} are finished, the model as it was found included")
    else:
        missing = [name for name in study.planned if name not in study.results]
        names = ", ".join(missing[:NAMED]) + (", ..." if len(missing) > NAMED else "")
        lines.append(
            f"- settings: **{done} of {planned} are finished**, {len(missing)} are missing: {names}"
        )
    for name, value in study.grid.items():
        if name not in ("math", "others"):
            lines.append(f"- {name.replace('_', ' ')}: {_grid_value(value)}")
    return lines


def _what_stands_for_what(roles: Roles) -> list[str]:
    rest = wording.scores_name(roles.others) if roles.others else "no score"
    return [
        f"- `math` stands for: {wording.math_name(roles)}",
        f"- `others` stands for: {rest}",
    ]


def _figures(figures: Sequence[tuple[str, Path]]) -> list[str]:
    """Show the figures that show all proportions, link the others."""
    lines = []
    for title, path in figures:
        show = "!" if not path.name.startswith("samples") else "- "
        lines += [f"{show}[{title}]({path.as_posix()})", *([""] if show == "!" else [])]
    return lines


def _remarks(study: Study) -> list[str]:
    """Collect what the reader of the scores must know."""
    notes = Counter(note for result in study.results.values() for note in result.scores.notes)
    lines = [
        f"- {note} ({count:,} setting{'' if count == 1 else 's'})"
        for note, count in notes.most_common()
    ]
    places = Counter(f"{result.device} on {result.host}" for result in study.results.values())
    if len(places) > 1:
        each = ", ".join(f"{place}: {count:,}" for place, count in places.most_common())
        lines.append(
            f"- The settings were measured in {len(places)} places, whose rounding may differ "
            f"({each})."
        )
    return lines


def _grid_value(value: Any) -> str:  # noqa: ANN401
    """Write one axis of the grid.

    Example:
        >>> _grid_value([["race"], ["mmlu", "race"]]), _grid_value([None, 5]), _grid_value(3)
        ('race, mmlu+race', 'all, 5', '3')
    """
    if isinstance(value, list):
        return ", ".join("+".join(each) if isinstance(each, list) else _grid_value(each)
                         for each in value)  # fmt: skip
    if value is None:
        return "all"
    return f"{value:g}" if isinstance(value, float) else str(value)
