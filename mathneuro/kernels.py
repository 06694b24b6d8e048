"""Operations that NumPy does several times as fast as torch where a tensor lies on the CPU."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Highest(NamedTuple):
    """The highest of some scores.

    Attributes:
        scores: They themselves, in any order.
        lowest: The lowest of them.
        next_lower: The highest of all others; -Inf if there are none.
    """

    scores: Tensor
    lowest: float
    next_lower: float


def find_highest(scores: Tensor, count: int) -> Highest:
    """Find the highest scores.

    Args:
        scores: Flat scores, all finite. On the CPU they are put into another order.
        count: How many to find, at least 1.

    Example:
        >>> find_highest(torch.tensor([1.0, 4.0, 2.0, 4.0]), 2)
        Highest(scores=tensor([4., 4.]), lowest=4.0, next_lower=2.0)
    """
    if scores.device.type != "cpu":
        return _find_highest_by_topk(scores, count)
    rest = len(scores) - count
    array = scores.numpy()
    if rest == 0:
        return Highest(scores, float(array.min()), -math.inf)
    array.partition(rest - 1)
    return Highest(scores[rest:], float(array[rest:].min()), float(array[rest - 1]))


def _find_highest_by_topk(scores: Tensor, count: int) -> Highest:
    found = scores.topk(min(count + 1, len(scores))).values
    next_lower = float(found[count]) if len(found) > count else -math.inf
    return Highest(found[:count], float(found[:count].min()), next_lower)


def positions_not_below(numbers: Tensor, limit: float) -> Tensor:
    """Return the flat positions of the numbers that are not below a limit, int64 in rising order.

    Args:
        numbers: Floating-point numbers. NaN is not below anything.
        limit: The limit, which is rounded to their type.

    Example:
        >>> positions_not_below(torch.tensor([[1.0, 3.0], [torch.nan, 2.0]]), 2.0)
        tensor([1, 2, 3])
    """
    rounded = torch.tensor(limit, dtype=numbers.dtype)
    if numbers.device.type != "cpu":
        return true_positions((numbers < rounded).logical_not_())
    return torch.from_numpy(np.flatnonzero(~(numbers.numpy() < rounded.numpy())))


def columns_of(positions: Tensor, width: int) -> Tensor:
    """Return the columns of flat positions in a matrix of so many columns, int64.

    Example:
        >>> columns_of(torch.tensor([1, 5, 6]), 3)
        tensor([1, 2, 0])
    """
    if positions.device.type != "cpu":
        return positions % width
    # NumPy's division is several times as fast as its or torch's remainder.
    array = positions.numpy()
    return torch.from_numpy(array - array // width * width)


def true_positions(mask: Tensor) -> Tensor:
    """Return the flat positions at which a mask is true, int64 in rising order.

    Example:
        >>> true_positions(torch.tensor([[True, False], [False, True]]))
        tensor([0, 3])
    """
    if mask.device.type != "cpu":
        return mask.flatten().nonzero().flatten()
    return torch.from_numpy(np.flatnonzero(mask.numpy()))
