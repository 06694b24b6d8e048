"""Numbers between two ends."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Range:
    """A number between two ends: of an interval, or the lowest and highest of several numbers.

    Attributes:
        value: The number; NaN if there is none.
        low: Lower end.
        high: Upper end.
    """

    value: float
    low: float
    high: float


NO_RANGE = Range(math.nan, math.nan, math.nan)
"""What is unknown."""


def mean_range(values: Sequence[float]) -> Range:
    """Return the mean with the lowest and the highest; unknown if one of them is.

    Example:
        >>> mean_range([0.25, 0.75])
        Range(value=0.5, low=0.25, high=0.75)
    """
    array = np.array(values, dtype=np.float64)
    return Range(float(array.mean()), float(array.min()), float(array.max()))
