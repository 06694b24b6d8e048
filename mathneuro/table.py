"""The end table: every score before and after, with what is needed to read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mathneuro.changes import changes
from mathneuro.digits import change_text
from mathneuro.scores import Score, Scores, is_perplexity
from mathneuro.statistics import Comparison


@dataclass(frozen=True)
class Row:
    """One line of the table, as text.

    Attributes:
        label: Task and metric, or perplexity and set.
        before: Value and standard error of the model as it was found.
        after: The same of the edited model.
        change: After less before, a perplexity's as a ratio, with its 95 % interval and p-value.
        count: How many questions or texts it is over.
    """

    label: str
    before: str
    after: str
    change: str
    count: str


def table(
    scores: Mapping[str, Scores], changed: Mapping[str, Comparison] | None = None
) -> list[Row]:
    """Lay out all scores.

    Args:
        scores: By state of the model: ``before``, ``after`` or both.
        changed: How each score changed, by label. None: as the outcomes tell, if both are given.

    Returns:
        One row a task and metric, then one a perplexity.

    Example:
        >>> before = Scores(tasks={"sums": {"acc": Score(0.9, 0.03, 100)}})
        >>> after = Scores(tasks={"sums": {"acc": Score(0.2, 0.04, 100)}})
        >>> row = table({"before": before, "after": after})[0]
        >>> row.before, row.after, row.change, row.count
        ('0.900 ± 0.030', '0.200 ± 0.040', '-0.700 [-0.798, -0.602] p < 0.001', 'n = 100')
    """
    columns = {state: each.rows() for state, each in scores.items()}
    labels = list(dict.fromkeys(label for rows in columns.values() for label in rows))
    if changed is None:
        changed = changes(scores["before"], scores["after"]) if len(columns) == 2 else {}
    result = []
    for label in labels:
        before = columns.get("before", {}).get(label)
        after = columns.get("after", {}).get(label)
        known = before or after
        result.append(
            Row(
                label=label,
                before=written(label, before),
                after=written(label, after),
                change=_change(label, changed.get(label)),
                count="" if known is None else f"n = {known.count:,}",
            )
        )
    return result


def cells(
    scores: Mapping[str, Scores], changed: Mapping[str, Comparison] | None = None
) -> list[tuple[str, ...]]:
    """Return the table's cells, the header first; one column of scores if there is one state."""
    rows = table(scores, changed)
    if len(scores) == 1:
        return [("", "score", ""), *((r.label, r.before or r.after, r.count) for r in rows)]
    header = ("", "before", "after", "change", "")
    return [header, *((r.label, r.before, r.after, r.change, r.count) for r in rows)]


def markdown(scores: Mapping[str, Scores], changed: Mapping[str, Comparison] | None = None) -> str:
    """Write the table as Markdown, for TensorBoard and model cards."""
    lines = [f"| {' | '.join(row)} |" for row in cells(scores, changed)]
    return "\n".join([lines[0], "|---" * (lines[0].count("|") - 1) + "|", *lines[1:]])


def plain(scores: Mapping[str, Scores]) -> list[str]:
    """Write the table as lines of text, for the terminal; no cell is ever cut."""
    return aligned(cells(scores))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows of cells as lines of text whose columns stand below one another.

    Example:
        >>> aligned([("a", "b"), ("long", "c")])
        ['a      b', 'long   c']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def written(label: str, score: Score | None) -> str:
    """Write a score with its standard error; nothing if there is none.

    Example:
        >>> written("sums acc", Score(0.35, 0.0338, 200))
        '0.350 ± 0.034'
    """
    if score is None:
        return ""
    pattern = "{:.4g}" if is_perplexity(label) else "{:.3f}"
    value = pattern.format(score.value)
    if score.standard_error is None:
        return value
    error = "{:.2g}" if is_perplexity(label) else "{:.3f}"
    return f"{value} ± {error.format(score.standard_error)}"


def _change(label: str, change: Comparison | None) -> str:
    """Write a change with its 95 % interval and p-value, as far as they are known."""
    if change is None or change.difference is None:
        return ""
    ratio = is_perplexity(label)
    least = 4 if ratio else 3
    text = change_text(change.difference, change.low, change.high, ratio, least)
    if change.p_value is None:
        return text
    return f"{text} {'p < 0.001' if change.p_value < 0.001 else f'p = {change.p_value:.3f}'}"
