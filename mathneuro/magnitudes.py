"""Which magnitude a weight needs for a score: scores backwards, exactly."""

import torch
from torch import Tensor

from mathneuro.importance import scores

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integer type as wide as a floating-point one, by its bytes."""

SMALLEST = 1e-290
"""Scores below it may have lost digits, so that no quotient tells what they come from."""


def bits(numbers: Tensor) -> Tensor:
    """Return floating-point numbers as the integers that have the same bits: the same memory.

    Those of magnitudes are ordered as the magnitudes are, and NaN is above Inf.

    Example:
        >>> bits(torch.tensor([0.0, 1e-45, 1.0]))
        tensor([         0,          1, 1065353216], dtype=torch.int32)
    """
    return numbers.detach().view(INTEGERS[numbers.element_size()])


def least_magnitudes(values: Tensor, input_importance: Tensor, dtype: torch.dtype) -> Tensor:
    """Find the smallest magnitude whose score is at least a value, input by input.

    A score never falls as the magnitude rises, rounding included. So comparing a magnitude with
    this one is the same as comparing its score with the value, but much cheaper.

    Args:
        values: The values, none of them negative, float64 of shape ``[..., 1]``.
        input_importance: ``a`` of shape ``[..., in]``, float64, not negative.
        dtype: Type of the weight.

    Returns:
        Bits of shape ``[..., in]``; those of Inf where no number is enough.

    Example:
        >>> importance = torch.tensor([0.5, 0.0], dtype=torch.float64)
        >>> value = torch.tensor([1.0], dtype=torch.float64)
        >>> least_magnitudes(value, importance, torch.float32).view(torch.float32)
        tensor([2., inf])
    """
    if dtype == torch.float64 or bool((values < SMALLEST).any()):
        return _least_by_bisection(values, input_importance, dtype)
    # The quotient is known to many more digits than the type has, so that the answer is the number
    # next to it, above or below.
    quotient = (values / input_importance).to(dtype)
    return bits(quotient) + (scores(quotient, input_importance) < values)


def _least_by_bisection(values: Tensor, input_importance: Tensor, dtype: torch.dtype) -> Tensor:
    shape = torch.broadcast_shapes(values.shape, input_importance.shape)
    low = torch.zeros(shape, dtype=INTEGERS[dtype.itemsize])
    high = torch.full_like(low, int(bits(torch.tensor(torch.inf, dtype=dtype))))
    while bool((low < high).any()):
        middle = low + (high - low) // 2
        enough = scores(middle.view(dtype), input_importance) >= values
        low, high = low.where(enough, middle + 1), high.where(~enough, middle)
    return high
