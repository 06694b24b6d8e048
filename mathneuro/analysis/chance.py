"""How much two selections would have in common by chance.

By chance means: in each weight as many parameters as each selection has there are drawn, uniformly
and independently of the other selection and of other weights. What the two then have in common in
a weight is hypergeometric (Johnson, Kemp and Kotz, "Univariate Discrete Distributions", 2005,
chapter 6), and what they have in common in several weights is the sum of independent ones.

There is no p-value, on purpose. Scores of one column share the importance of its input, so that
real selections cluster in columns: a test against uniform draws would find that, and nothing more.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mathneuro.statistics import CONFIDENCE

EXACT = 2500.0
"""Up to this variance the distribution is computed, above it approximated."""

NEGLIGIBLE = 1e-30
"""Probabilities at the ends of a distribution below this are left out."""

REACH = 12
"""Standard deviations, and numbers besides, around the mean that hold all but nothing."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Sizes:
    """How much two selections hold of one weight.

    Attributes:
        parameters: How many parameters the weight has.
        first: How many of them the first selection holds.
        second: How many the second one holds.
    """

    parameters: int
    first: int
    second: int


@dataclass(frozen=True)
class Chance:
    """How many parameters two selections would have in common by chance.

    Attributes:
        mean: The expected number.
        variance: The variance of the number.
        low: Lower end of the central 95 % interval.
        high: Upper end.
        probabilities: Of ``start``, ``start + 1`` and so on. None: the variance is above `EXACT`.
        start: The number that the first probability belongs to.
    """

    mean: float
    variance: float
    low: int
    high: int
    probabilities: Floats | None = None
    start: int = 0


def common_by_chance(weights: Iterable[Sizes]) -> Chance:
    """Find the distribution of the number of parameters that two selections have in common.

    Up to a variance of `EXACT` the distributions of the weights are convolved. Above it the ends of
    the interval are those of the normal distribution with the exact mean, variance and skewness
    (Cornish and Fisher 1938), rounded to the number whose cumulative probability reaches them. A
    hypergeometric number is distributed as a sum of independent ones of 0 or 1 (Vatutin and
    Mikhailov 1982), so that the theorem of Berry and Esseen holds for the sum over weights (its
    constant: Shevtsova 2010): even without the skewness, cumulative probabilities are off by at
    most 0.56 / sqrt(variance), which is 0.011 there.

    Args:
        weights: The sizes of both selections in each weight.

    Example:
        >>> chance = common_by_chance([Sizes(10, 4, 5), Sizes(10, 0, 3)])
        >>> round(chance.mean, 9), chance.low, chance.high
        (2.0, 1, 3)
    """
    sizes = list(weights)
    mean, variance, third = np.sum([_moments(each) for each in sizes] or [(0.0,) * 3], axis=0)
    tail = (1 - CONFIDENCE) / 2
    if variance <= EXACT:
        start, probabilities = _convolved(sizes)
        cumulative = probabilities.cumsum()
        low, high = (start + int(np.searchsorted(cumulative, at)) for at in (tail, 1 - tail))
        return Chance(float(mean), float(variance), low, high, probabilities, start)
    from scipy import stats

    deviation, z = math.sqrt(variance), float(stats.norm.ppf(1 - tail))
    skewness = third / deviation**3
    # A number stands for all that is within a half of it.
    low, high = (
        math.ceil(mean + deviation * (end + skewness * (end * end - 1) / 6) - 0.5)
        for end in (-z, z)
    )
    return Chance(float(mean), float(variance), low, high)


def jaccard(common: float, first: int, second: int) -> float:
    """Return the Jaccard index: the share that is in both, of all that is in either.

    Args:
        common: How many parameters are in both selections.
        first: How many are in the first.
        second: How many are in the second.

    Returns:
        Between 0 and 1; NaN if both selections are empty.

    Example:
        >>> jaccard(2, 3, 4)
        0.4
    """
    either = first + second - common
    return common / either if either else math.nan


def common_share(common: float, first: int, second: int) -> float:
    """Return the share of selected parameters that two selections have in common.

    What is in both is divided by the mean of the two sizes (Dice 1945): by the size itself where
    they are equal, as in the paper's figures of consistency.

    Args:
        common: How many parameters are in both selections.
        first: How many are in the first.
        second: How many are in the second.

    Returns:
        Between 0 and 1; NaN if both selections are empty.

    Example:
        >>> common_share(2, 3, 5)
        0.5
    """
    return 2 * common / (first + second) if first + second else math.nan


def expected_jaccard(chance: Chance, first: int, second: int) -> float:
    """Return the expected Jaccard index of two selections that agree by chance.

    Where the distribution is known, over it; else by the index at the mean and its curvature there
    (the delta method to second order).

    Args:
        chance: How many parameters they have in common by chance.
        first: How many are in the first selection.
        second: How many are in the second.

    Example:
        >>> chance = common_by_chance([Sizes(2, 1, 1)])
        >>> expected_jaccard(chance, 1, 1)
        0.5
    """
    together = first + second
    if not together:
        return math.nan
    if chance.probabilities is not None:
        common = chance.start + np.arange(len(chance.probabilities))
        return float(chance.probabilities @ (common / (together - common)))
    either = together - chance.mean
    return chance.mean / either + chance.variance * together / either**3


def _moments(sizes: Sizes) -> tuple[float, float, float]:
    """Return mean, variance and third central moment of a hypergeometric number."""
    n, a, b = sizes.parameters, sizes.first, sizes.second
    if n == 0:
        return 0.0, 0.0, 0.0
    mean = a * b / n
    if n < 2:
        return mean, 0.0, 0.0
    variance = mean * ((n - a) / n) * ((n - b) / (n - 1))
    third = variance * ((n - 2 * a) / n) * ((n - 2 * b) / (n - 2)) if n > 2 else 0.0
    return mean, variance, third


def _convolved(weights: Iterable[Sizes]) -> tuple[int, Floats]:
    """Return the distribution of the sum: its first number, and probabilities from there on."""
    start, together = 0, np.ones(1)
    for each in weights:
        first, probabilities = _hypergeometric(each)
        start, together = start + first, np.convolve(together, probabilities)
        kept = np.flatnonzero(together > NEGLIGIBLE)
        start, together = start + int(kept[0]), together[kept[0] : kept[-1] + 1]
    return start, together / together.sum()


def _hypergeometric(sizes: Sizes) -> tuple[int, Floats]:
    """Return one weight's distribution: its first number, and probabilities from there on."""
    n, a, b = sizes.parameters, sizes.first, sizes.second
    mean, variance, _ = _moments(sizes)
    reach = REACH * (math.sqrt(variance) + 2)
    low = max(0, a + b - n, math.floor(mean - reach))
    high = min(a, b, math.ceil(mean + reach))
    common = np.arange(low, high, dtype=np.float64)
    # How much more likely one more is: that keeps all digits, whatever the sizes.
    ratios = (a - common) * (b - common) / ((common + 1) * (n - a - b + common + 1))
    logarithms = np.concatenate([[0.0], np.log(ratios).cumsum()])
    probabilities = np.exp(logarithms - logarithms.max())
    return low, probabilities / probabilities.sum()
