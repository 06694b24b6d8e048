"""Numbers with 95 % intervals, and means of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mathneuro.errors import InputError
from mathneuro.scores import Score
from mathneuro.statistics import CONFIDENCE, exponential


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Attributes:
        value: The number; NaN if there is none.
        low: Lower end. None: unknown.
        high: Upper end. None: unknown.
    """

    value: float
    low: float | None = None
    high: float | None = None


def mean_over_repeats(
    values: Sequence[float], geometric: bool = False, share: bool = False
) -> Estimate:
    """Average over repeats, with the 95 % interval of Student's t.

    The interval tells how much another draw of texts might change the mean, on the same questions.

    Args:
        values: One score a repeat. A single one has no interval.
        geometric: Whether to average logarithms, as for perplexities; then all must be above 0.
        share: Whether the values are shares of questions, so that the interval ends at 0 and 1.

    Raises:
        InputError: If there is no value.

    Example:
        >>> mean = mean_over_repeats([0.2, 0.3, 0.4])
        >>> round(mean.value, 3), round(mean.low, 3), round(mean.high, 3)
        (0.3, 0.052, 0.548)
    """
    if not values:
        raise InputError("values: got none, but the mean needs at least one; give a repeat")
    if geometric:
        mean = mean_over_repeats([_logarithm(value) for value in values])
        return _exponential(mean)
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        return Estimate(math.nan)
    average = float(array.mean())
    if len(array) < 2:
        return Estimate(average)
    from scipy import stats

    error = float(array.std(ddof=1)) / math.sqrt(len(array))
    half = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(array) - 1))
    low, high = average - half, average + half
    return Estimate(average, *((max(0.0, low), min(1.0, high)) if share else (low, high)))


def score_estimate(score: Score, outcomes: Sequence[float] | None, ratio: bool = False) -> Estimate:
    """Give a score its 95 % interval over questions or texts.

    Args:
        score: The score.
        outcomes: One outcome a question, if known. If each is 0 or 1, the interval is Wilson's,
            which has a width even if all answers are right; otherwise the normal one.
        ratio: Whether the interval is symmetric on the logarithmic scale, as for perplexities.

    Example:
        >>> found = score_estimate(Score(1.0, 0.0, 100), [1.0] * 100)
        >>> found.value, round(found.low, 3), found.high
        (1.0, 0.963, 1.0)
    """
    from scipy import stats

    if outcomes and not ratio and np.isin(outcomes, (0, 1)).all():
        right = int(np.asarray(outcomes).sum())
        ends = stats.binomtest(right, len(outcomes)).proportion_ci(CONFIDENCE, "wilson")
        return Estimate(score.value, float(ends.low), float(ends.high))
    if score.standard_error is None or not math.isfinite(score.value):
        return Estimate(score.value)
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * score.standard_error
    if not ratio:
        return Estimate(score.value, score.value - half, score.value + half)
    if score.value <= 0:
        return Estimate(score.value)
    middle, half = math.log(score.value), half / score.value
    return Estimate(score.value, exponential(middle - half), exponential(middle + half))


def average(estimates: Sequence[Estimate], geometric: bool = False) -> Estimate:
    """Average independent numbers, such as the scores of several tasks, with its 95 % interval.

    The interval is put together from theirs (Zou and Donner 2008, "Construction of confidence
    limits about effect measures: a general approach", Statistics in Medicine 27, 1693-1702), so
    that it may be lopsided as they are.

    Args:
        estimates: The numbers. If one is unknown, so is the mean.
        geometric: Whether to average logarithms, as for perplexities and their ratios.

    Example:
        >>> average([Estimate(0.2, 0.17, 0.24), Estimate(0.4, 0.36, 0.43)])
        Estimate(value=0.30000000000000004, low=0.275, high=0.325)
    """
    if not estimates:
        return Estimate(math.nan)
    if len(estimates) == 1:
        return estimates[0]
    if geometric:
        logarithms = [
            Estimate(_logarithm(each.value), *(_known_log(end) for end in (each.low, each.high)))
            for each in estimates
        ]
        return _exponential(average(logarithms))
    count = len(estimates)
    mean = sum(each.value for each in estimates) / count
    below = [each.value - each.low for each in estimates if each.low is not None]
    above = [each.high - each.value for each in estimates if each.high is not None]
    return Estimate(
        mean,
        mean - math.hypot(*below) / count if len(below) == count else None,
        mean + math.hypot(*above) / count if len(above) == count else None,
    )


def _logarithm(value: float) -> float:
    """Return the natural logarithm, NaN where there is none."""
    return math.log(value) if value > 0 else math.nan


def _known_log(value: float | None) -> float | None:
    return math.log(value) if value is not None and value > 0 else None


def _exponential(estimate: Estimate) -> Estimate:
    """Take a number from the logarithmic scale back."""
    value = exponential(estimate.value)
    low, high = (None if end is None else exponential(end) for end in (estimate.low, estimate.high))
    return Estimate(math.nan if value is None else value, low, high)
