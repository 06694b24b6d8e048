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


def mark_between(numbers: Tensor, lower: Tensor, upper: Tensor, mask: Tensor) -> None:
    """Mark the numbers that are, but for their first bit, from a lower limit to below an upper one.

    Args:
        numbers: Integers of shape ``[rows, columns]``. Their first bit is not looked at, which in
            the bits of a floating-point number is its sign.
        lower: Limits of each column or of each number, of the same type.
        upper: The same.
        mask: Where the marks go: bool of shape ``[rows, columns]``.

    Example:
        >>> mask = torch.empty(2, 2, dtype=torch.bool)
        >>> numbers = torch.tensor([[1, 4], [2, 3]])
        >>> mark_between(numbers, torch.tensor([2, 3]), torch.tensor([3, 4]), mask)
        >>> mask
        tensor([[False, False],
                [ True,  True]])
    """
    most = torch.iinfo(numbers.dtype).max
    if numbers.device.type != "cpu":
        magnitudes = numbers & most
        mask.copy_((magnitudes >= lower) & (magnitudes < upper))
        return
    array, marks = numbers.numpy() & most, mask.numpy()
    np.greater_equal(array, lower.numpy(), out=marks)
    marks &= array < upper.numpy()


def true_positions(mask: Tensor) -> Tensor:
    """Return the flat positions at which a mask is true, int64 in rising order.

    Example:
        >>> true_positions(torch.tensor([[True, False], [False, True]]))
        tensor([0, 3])
    """
    if mask.device.type != "cpu":
        return mask.flatten().nonzero().flatten()
    return torch.from_numpy(np.flatnonzero(mask.numpy()))
