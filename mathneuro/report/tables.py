"""Tables of the summary: one a factor and number of texts."""

from collections.abc import Sequence

from mathneuro.report import wording
from mathneuro.report.cells import Cell, all_series, by_panel
from mathneuro.report.comparing import adjusted_p_values
from mathneuro.report.reading import Study
from mathneuro.report.roles import Roles

SIGNIFICANT = 0.05
"""Adjusted p-values below this are marked."""

EVERY, SOME, NONE = "●", "○", "~"
"""Marks of changes: significant in every repeat, in some, in none."""


def result_tables(study: Study, found: Sequence[Cell], roles: Roles) -> list[str]:
    """Lay out math and the rest against method, calibration sets and proportion.

    Args:
        study: The sweep.
        found: Its cells.
        roles: Which scores stand for what.

    Returns:
        Lines of Markdown.
    """
    kinds = {"math": roles.math, "others": roles.others}
    kinds = {name: labels for name, labels in kinds.items() if labels}
    held_out = {label: (label,) for label in roles.perplexities}
    p_values = {
        name: adjusted_p_values(study, labels) for name, labels in (kinds | held_out).items()
    }
    lines = []
    for num_samples, factor, panel in by_panel(found):
        lines += [f"### Factor {factor:g}, {wording.samples(num_samples)}", ""]
        header = ["method", "calibration", "proportion", "repeats", "selected"]
        for name, labels in kinds.items():
            header += [f"{name}: {wording.scores_name(labels)}", f"change of {name}"]
        header += [f"change of {label}" for label in held_out]
        table = []
        for series in all_series(panel):
            for cell in (each for each in panel if each.series == series):
                row = [*_setting_cells(study, cell)]
                for name, labels in kinds.items():
                    row.append(wording.level(labels, cell.level(labels)))
                    row.append(_change(study, cell, labels, p_values[name]))
                row += [
                    _change(study, cell, labels, p_values[name])
                    for name, labels in held_out.items()
                ]
                table.append(row)
        lines += [*markdown_table(header, table), ""]
    return lines


def baseline_table(study: Study, roles: Roles) -> list[str]:
    """Lay out every score of the model as it was found."""
    if study.before is None:
        return [
            "The model as it was found is not measured yet, so that nothing can be compared with "
            "it: changes are missing below."
        ]
    table = [
        [label, {"math": "math", "other": "others"}.get(roles.of(label), ""),
         wording.score(label, score), f"{score.count:,}"]
        for label, score in study.before.scores.rows().items()
    ]  # fmt: skip
    return markdown_table(["score", "stands for", "value ± standard error", "n"], table)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Lay out a table as lines of Markdown.

    Example:
        >>> print("\n".join(markdown_table(["a", "b"], [["1", "x|y"]])))
        | a | b |
        |---|---|
        | 1 | x\|y |
    """
    lines = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
        for row in (header, *rows)
    ]
    return [lines[0], "|---" * len(header) + "|", *lines[1:]]


def reading_notes(found: Sequence[Cell], roles: Roles) -> list[str]:
    """Explain intervals and marks; only those that occur."""
    single = any(len(cell.repeats) == 1 for cell in found)
    several = any(len(cell.repeats) > 1 for cell in found)
    lines = []
    if several:
        lines.append(
            "- `math` and `others` are means over the repeats; the brackets hold the 95 % interval "
            "of Student's t over the repeats: how far another draw of texts might move the mean. "
            "Few repeats that agree to the digit leave it no width, which is no proof that others "
            "would."
        )
    if single:
        lines.append(
            "- Where there is one repeat, the brackets after `math` and `others` hold the 95 % "
            "interval over questions or texts instead."
        )
    lines += [
        "- A change is against the model as it was found, paired question by question (averaged "
        "over the repeats first); its brackets hold the 95 % interval over questions or texts. "
        "The change of a perplexity is a ratio: x 1 is none.",
        f"- {EVERY} the change of every repeat is significant, {SOME} of some repeats, {NONE} of "
        f"none (p < {SIGNIFICANT} after Benjamini and Hochberg's adjustment for all settings). "
        f"Read a change with {NONE} as none that can be told from noise. Nothing after a change: "
        "not tested.",
        "- `selected` is the share of all parameters of the model.",
    ]
    return lines


def _setting_cells(study: Study, cell: Cell) -> list[str]:
    counts = [result.parameters for result in cell.repeats]
    share = sum(counts) / len(counts) / study.total if study.total else 0.0
    done = len(cell.repeats)
    return [
        cell.series.method,
        "+".join(cell.series.calibration),
        f"{cell.proportion:g}",
        f"{done}" if done >= study.repeats else f"{done} of {study.repeats}",
        f"{100 * share:.3g} %",
    ]


def _change(
    study: Study, cell: Cell, labels: Sequence[str], p_values: dict[str, float | None]
) -> str:
    """Write the change of one cell with its mark."""
    if study.before is None:
        return ""
    if all(result.is_unedited for result in cell.repeats):
        return "unchanged model"
    shown = wording.change(labels, cell.change(study.before, labels))
    found = [p_values[result.name] for result in cell.repeats if not result.is_unedited]
    known = [value < SIGNIFICANT for value in found if value is not None]
    if not shown or not known:
        return shown
    is_every = all(known) and len(known) == len(cell.repeats)
    return f"{shown} {EVERY if is_every else SOME if any(known) else NONE}"
