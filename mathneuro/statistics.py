"""Whether a change is more than noise: comparisons with 95 % intervals and p-values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mathneuro.errors import InputError
from mathneuro.scores import Score, finite

CONFIDENCE = 0.95
"""Share of intervals that hold the truth, if their assumptions hold."""

SAME = 1e-12
"""Differences that are closer than this share of the largest count as equal (rounding)."""


@dataclass(frozen=True)
class Comparison:
    """How a score changed, and how sure that is.

    Attributes:
        difference: After less before; for perplexities the ratio of after to before. None: unknown.
        standard_error: Of the difference; for perplexities of the logarithm of the ratio. None:
            unknown.
        low: Lower end of the 95 % interval of the difference. None: unknown.
        high: Upper end. None: unknown.
        p_value: Two-sided, of no change at all. None: unknown.
        test: How the p-value was found.
        count: Over how many questions or texts.
    """

    difference: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    p_value: float | None
    test: str
    count: int


def compare_perplexity(
    before_losses: Sequence[float], after_losses: Sequence[float], tokens: Sequence[float]
) -> Comparison:
    """Compare two perplexities of the same texts, as a ratio.

    The ratio is ``exp(sum(after - before) / sum(tokens))``. Texts, not tokens, are independent: the
    standard error of its logarithm is that of a ratio of two sums over texts (Cochran, "Sampling
    Techniques", 1977, section 6.3), and interval and p-value are those of Student's t with one
    degree of freedom less than there are texts.

    Args:
        before_losses: Summed loss of each text in nats.
        after_losses: The same of the changed model.
        tokens: Predicted tokens of each text.

    Raises:
        InputError: If the numbers of texts differ, or no token was predicted.

    Example:
        >>> change = compare_perplexity([2.0, 4.0], [4.0, 5.0], [1, 2])
        >>> round(change.difference, 3), round(change.standard_error, 3), change.count
        (2.718, 0.667, 2)
    """
    check_lengths("losses", before_losses, after_losses)
    check_lengths("tokens", before_losses, tokens)
    weights = np.asarray(tokens, dtype=np.float64)
    if not weights.sum() > 0:
        raise InputError("tokens: none was predicted, but some were expected; give longer texts")
    changes = np.asarray(after_losses, np.float64) - np.asarray(before_losses, np.float64)
    count = len(changes)
    if not np.isfinite(changes).all():
        return unknown("a loss is no number", count)
    logarithm = float(changes.sum() / weights.sum())
    if count < 2:
        return Comparison(exponential(logarithm), None, None, None, None, "one text", 1)
    residuals = changes - logarithm * weights
    if np.abs(residuals).max() <= SAME * np.abs(changes).max():
        return without_spread(exponential(logarithm), logarithm == 0, count)
    from scipy import stats

    error = math.sqrt(count / (count - 1) * float(residuals @ residuals)) / float(weights.sum())
    half = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
    p_value = 2 * float(stats.t.sf(abs(logarithm) / error, count - 1))
    low, high = exponential(logarithm - half), exponential(logarithm + half)
    return Comparison(exponential(logarithm), error, low, high, p_value, "paired t of logs", count)


def compare_unpaired(before: Score, after: Score, ratio: bool = False) -> Comparison:
    """Compare two scores of which only value and standard error are known.

    The two are taken as independent, which is cautious for scores on the same questions.

    Args:
        before: The score of the model as it was found.
        after: The same of the changed model.
        ratio: Whether to compare by the ratio, on the logarithmic scale, as perplexities.

    Example:
        >>> change = compare_unpaired(Score(0.5, 0.03, 300), Score(0.4, 0.04, 300))
        >>> round(change.difference, 3), round(change.standard_error, 3), round(change.p_value, 4)
        (-0.1, 0.05, 0.0455)
    """
    values, count = (before.value, after.value), min(before.count, after.count)
    if not all(map(math.isfinite, values)) or (ratio and min(values) <= 0):
        return unknown("a score is no number", count)
    change = math.log(after.value / before.value) if ratio else after.value - before.value
    shown = exponential(change) if ratio else change
    if before.standard_error is None or after.standard_error is None:
        return Comparison(shown, None, None, None, None, "unknown standard error", count)
    errors = [score.standard_error or 0.0 for score in (before, after)]
    if ratio:
        errors = [error / value for error, value in zip(errors, values, strict=True)]
    error = math.hypot(*errors)
    if error == 0:
        return without_spread(shown, change == 0, count)
    from scipy import stats

    half = error * float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    ends = (change - half, change + half)
    low, high = map(exponential, ends) if ratio else ends
    p_value = 2 * float(stats.norm.sf(abs(change) / error))
    return Comparison(shown, error, low, high, p_value, "unpaired z", count)


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for their number, so that few of those called significant are false.

    Benjamini and Hochberg (1995): of all p-values below 0.05 afterwards, 5 % are expected to be
    false discoveries. What is unknown stays unknown and does not count.

    Example:
        >>> adjusted([0.01, None, 0.04])
        [0.02, None, 0.04]
    """
    known = [value for value in p_values if value is not None]
    if not known:
        return [None for _ in p_values]
    from scipy import stats

    found = iter(stats.false_discovery_control(known).tolist())
    return [None if value is None else next(found) for value in p_values]


def exponential(value: float) -> float | None:
    """Return e to the power of a value, or None if no float holds that."""
    try:
        return finite(math.exp(value))
    except OverflowError:
        return None


def check_lengths(name: str, first: Sequence[float], second: Sequence[float]) -> None:
    """Refuse to pair lists of different lengths, or without anything in them."""
    if len(first) != len(second) or not len(first):
        raise InputError(
            f"{name}: got {len(first)} and {len(second)}, but a paired comparison needs as many of "
            "both, and at least one; compare scores of the same questions or texts"
        )


def unknown(why: str, count: int) -> Comparison:
    """Return a comparison of which nothing is known, and why."""
    return Comparison(None, None, None, None, None, f"unknown: {why}", count)


def without_spread(difference: float | None, is_nothing: bool, count: int) -> Comparison:
    """Return a comparison all of whose differences are equal, so that their spread is unknown."""
    p_value = 1.0 if is_nothing else None
    return Comparison(difference, None, None, None, p_value, "all differences equal", count)
