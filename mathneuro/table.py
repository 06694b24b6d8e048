"""The end table: every score before and after, with what is needed to read it."""

from collections.abc import Mapping
from dataclasses import dataclass

from mathneuro.scores import Score, Scores


@dataclass(frozen=True)
class Row:
    """One line of the table, as text.

    Attributes:
        label: Task and metric, or perplexity and set.
        before: Value and standard error of the model as it was found.
        after: The same of the edited model.
        change: After less before; a perplexity's is a ratio.
        count: How many questions or texts it is over.
    """

    label: str
    before: str
    after: str
    change: str
    count: str


def table(scores: Mapping[str, Scores]) -> list[Row]:
    """Lay out all scores.

    Args:
        scores: By state of the model: ``before``, ``after`` or both.

    Returns:
        One row a task and metric, then one a perplexity.

    Example:
        >>> before = Scores(tasks={"sums": {"acc": Score(0.9, 0.03, 100)}})
        >>> after = Scores(tasks={"sums": {"acc": Score(0.2, 0.04, 100)}})
        >>> row = table({"before": before, "after": after})[0]
        >>> row.label, row.before, row.after, row.change, row.count
        ('sums acc', '0.900 ± 0.030', '0.200 ± 0.040', '-0.700', 'n = 100')
    """
    columns = {state: each.rows() for state, each in scores.items()}
    labels = list(dict.fromkeys(label for rows in columns.values() for label in rows))
    result = []
    for label in labels:
        before = columns.get("before", {}).get(label)
        after = columns.get("after", {}).get(label)
        known = before or after
        result.append(
            Row(
                label=label,
                before=_score(label, before),
                after=_score(label, after),
                change=_change(label, before, after),
                count="" if known is None else f"n = {known.count:,}",
            )
        )
    return result


def cells(scores: Mapping[str, Scores]) -> list[tuple[str, ...]]:
    """Return the table's cells, the header first; one column of scores if there is one state."""
    rows = table(scores)
    if len(scores) == 1:
        return [("", "score", ""), *((r.label, r.before or r.after, r.count) for r in rows)]
    header = ("", "before", "after", "change", "")
    return [header, *((r.label, r.before, r.after, r.change, r.count) for r in rows)]


def markdown(scores: Mapping[str, Scores]) -> str:
    """Write the table as Markdown, for TensorBoard."""
    lines = [f"| {' | '.join(row)} |" for row in cells(scores)]
    return "\n".join([lines[0], "|---" * (lines[0].count("|") - 1) + "|", *lines[1:]])


def plain(scores: Mapping[str, Scores]) -> list[str]:
    """Write the table as lines of text, for the terminal; no cell is ever cut."""
    rows = cells(scores)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _is_perplexity(label: str) -> bool:
    return label.startswith("perplexity ")


def _score(label: str, score: Score | None) -> str:
    if score is None:
        return ""
    pattern = "{:.4g}" if _is_perplexity(label) else "{:.3f}"
    value = pattern.format(score.value)
    if score.standard_error is None:
        return value
    error = "{:.2g}" if _is_perplexity(label) else "{:.3f}"
    return f"{value} ± {error.format(score.standard_error)}"


def _change(label: str, before: Score | None, after: Score | None) -> str:
    if before is None or after is None:
        return ""
    if _is_perplexity(label):
        return f"x {after.value / before.value:.3g}"
    return f"{after.value - before.value:+.3f}"
