"""Student's t by numerical integration, and other help for tests of comparisons."""

import math

import numpy as np

from mathneuro.statistics import Comparison

NORMAL = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


def student_p(statistic: float, freedom: int) -> float:
    """Integrate Student's density numerically over both tails."""
    x = np.linspace(0, abs(statistic), 200_001)
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    density = scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)
    return float(1 - 2 * np.trapezoid(density, x))


def ends(comparison: Comparison) -> tuple[float, float]:
    """Return the interval, which must be known."""
    assert comparison.low is not None
    assert comparison.high is not None
    return comparison.low, comparison.high
