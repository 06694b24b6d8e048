"""Comparisons of outcomes on the same questions, question by question."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mathneuro.errors import InputError
from mathneuro.statistics import (
    CONFIDENCE,
    SAME,
    Comparison,
    check_lengths,
    unknown,
    without_spread,
)


def compare_questions(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare two states of a model on the same questions, question by question.

    If every outcome is 0 or 1, the p-value is McNemar's, exact, and the interval that of Agresti
    and Min (2005), "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24, 729-740: the Wald interval after adding 0.5 to each of the four
    cells, cut at -1 and 1. It has a width even if no question changed. Other outcomes get the
    paired t test. If all of their differences are equal, nothing is known about their spread:
    there is no interval, and a p-value (1) only if nothing changed.

    Args:
        before: One outcome a question.
        after: The outcomes of the same questions in the same order.

    Raises:
        InputError: If there is no question, or the numbers of questions differ.

    Example:
        >>> change = compare_questions([1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1])
        >>> change.difference, change.p_value, change.test
        (-0.6666666666666666, 0.125, 'exact McNemar')
    """
    check_lengths("outcomes", before, after)
    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return unknown("an outcome is no number", len(first))
    if np.isin(first, (0, 1)).all() and np.isin(second, (0, 1)).all():
        return _compare_binary(first, second)
    differences = second - first
    count, mean = len(differences), float(differences.mean())
    if count < 2:
        return Comparison(mean, None, None, None, None, "one question", 1)
    if np.ptp(differences) <= SAME * np.abs(differences).max():
        return without_spread(mean, mean == 0, count)
    from scipy import stats

    test = stats.ttest_rel(second, first)
    low, high = test.confidence_interval(CONFIDENCE)
    error = float(differences.std(ddof=1)) / math.sqrt(count)
    return Comparison(mean, error, float(low), float(high), float(test.pvalue), "paired t", count)


def compare_repeats(before: Sequence[float], repeats: Sequence[Sequence[float]]) -> Comparison:
    """Compare the mean of several changed models with one, question by question.

    The outcomes of a question are averaged over the repeats first: questions are the units, however
    many repeats answered them. If every outcome is 0 or 1, the interval is that of
    `compare_questions` for such outcomes, whose added pairs keep it from shrinking to nothing where
    the repeats hardly ever change an answer; for a single repeat the two are the same.

    Args:
        before: One outcome a question.
        repeats: The outcomes of each changed model on the same questions.

    Raises:
        InputError: If there is no repeat or no question, or the numbers of questions differ.

    Example:
        >>> change = compare_repeats([1, 1, 0, 1], [[0, 1, 0, 1], [0, 0, 0, 1]])
        >>> change.difference, round(change.low, 3), round(change.high, 3)
        (-0.375, -0.697, 0.197)
    """
    if not repeats:
        raise InputError("repeats: got none, but at least one is needed; give a repeat")
    for each in repeats:
        check_lengths("outcomes", before, each)
    means = np.asarray(repeats, dtype=np.float64).mean(axis=0)
    found = compare_questions(before, means.tolist())
    if not all(np.isin(each, (0, 1)).all() for each in (before, *repeats)):
        return found
    low, high = _adjusted_interval(means - np.asarray(before, dtype=np.float64))
    return replace(found, low=low, high=high)


def _compare_binary(before: NDArray[np.float64], after: NDArray[np.float64]) -> Comparison:
    """Compare outcomes that are all 0 or 1."""
    from scipy import stats

    count = len(before)
    gained, lost = int((after > before).sum()), int((after < before).sum())
    p_value = float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    differences = after - before
    low, high = _adjusted_interval(differences)
    error = float(differences.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return Comparison(float(differences.mean()), error, low, high, p_value, "exact McNemar", count)


def _adjusted_interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Return the interval of Agresti and Min, also for differences between -1 and 1.

    Half a pair more in each of the four cells is two more pairs, whose differences add up to 0 and
    the squares of their differences to 1.
    """
    from scipy import stats

    total, gain = len(differences) + 2, float(differences.sum())
    spread = math.sqrt(float(differences @ differences) + 1 - gain**2 / total)
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * spread / total
    return max(-1.0, gain / total - half), min(1.0, gain / total + half)
