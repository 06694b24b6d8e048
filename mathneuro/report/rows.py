"""One row a setting and score, for programs that read tables."""

import csv
import io
import math
from dataclasses import dataclass

from mathneuro.finished import Result
from mathneuro.report.comparing import adjusted_p_values, compare, same_models
from mathneuro.report.reading import Study
from mathneuro.report.roles import Roles, all_labels
from mathneuro.scores import Score, is_perplexity
from mathneuro.statistics import Comparison

COLUMNS = (
    "setting", "method", "calibration", "num_samples", "repeat", "proportion", "factor",
    "selected_parameters", "selected_share", "score", "role", "n", "value", "standard_error",
    "before", "change", "difference", "difference_low", "difference_high", "p_value", "p_adjusted",
    "test", "same_as",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One score of one setting.

    Attributes:
        result: The setting.
        label: The score's label.
        score: The score.
        before: That of the model as it was found. None: not measured.
        comparison: Of the two. None: there is nothing to compare.
        adjusted: The p-value, adjusted for the number of settings. None: unknown.
        same_as: Name of the setting whose model this one's is; empty: it is its own.
    """

    result: Result
    label: str
    score: Score
    before: Score | None
    comparison: Comparison | None
    adjusted: float | None
    same_as: str


def rows(study: Study) -> list[Row]:
    """Compare every score of every finished setting with the model as it was found."""
    labels, same = all_labels(study), same_models(study)
    adjusted = {label: adjusted_p_values(study, [label]) for label in labels}
    before = study.before
    found = []
    for result in study.results.values():
        scores = result.scores.rows()
        for label in labels:
            if label not in scores:
                continue
            is_edited = before is not None and result.setting is not None
            found.append(
                Row(
                    result=result,
                    label=label,
                    score=scores[label],
                    before=None if before is None else before.scores.rows().get(label),
                    comparison=compare(before, [result], label) if before and is_edited else None,
                    adjusted=adjusted[label].get(result.name),
                    same_as=same.get(result.name, ""),
                )
            )
    return found


def as_csv(found: list[Row], study: Study, roles: Roles) -> str:
    """Write rows as CSV; what is unknown or does not apply is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in found:
        cells = _cells(row, study, roles)
        writer.writerow([_shown(cells[name]) for name in COLUMNS])
    return text.getvalue()


def _cells(row: Row, study: Study, roles: Roles) -> dict[str, str | float | None]:
    """Return the cells of a row by column."""
    setting, comparison = row.result.setting, row.comparison
    cells: dict[str, str | float | None] = {
        "setting": row.result.name,
        "method": "none",
        "calibration": None, "num_samples": None, "repeat": None, "proportion": None,
        "factor": None,
        "selected_parameters": row.result.parameters,
        "selected_share": row.result.parameters / study.total if study.total else None,
        "score": row.label,
        "role": roles.of(row.label),
        "n": row.score.count,
        "value": row.score.value,
        "standard_error": row.score.standard_error,
        "before": None if row.before is None else row.before.value,
        "change": "ratio" if is_perplexity(row.label) else "difference",
        "difference": None, "difference_low": None, "difference_high": None, "p_value": None,
        "p_adjusted": row.adjusted,
        "test": None,
        "same_as": row.same_as,
    }  # fmt: skip
    if setting is not None:
        cells |= {
            "method": setting.method,
            "calibration": "+".join(setting.calibration),
            "num_samples": "all" if setting.num_samples is None else setting.num_samples,
            "repeat": setting.repeat,
            "proportion": setting.proportion,
            "factor": setting.factor,
        }
    if comparison is not None:
        cells |= {
            "difference": comparison.difference,
            "difference_low": comparison.low,
            "difference_high": comparison.high,
            "p_value": comparison.p_value,
            "test": comparison.test,
        }
    return cells


def _shown(value: str | float | None) -> str:
    """Write a cell; numbers in full."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return str(value)
