"""Parameters that may have high scores: most others are ruled out in single precision."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mathneuro.blocks import row_blocks
from mathneuro.kernels import columns_of, positions_not_below

SLACK = 2.0**-20
"""A share of a score that is more than single precision may lose of it."""

SMALLEST = 1e-30
"""Of scores nearer to 0 single precision may lose all digits."""

TINY = torch.finfo(torch.float32).tiny
"""The smallest number that single precision holds with all digits."""


@dataclass(frozen=True)
class Screened:
    """Some parameters of a weight.

    Attributes:
        positions: Their flat positions, int64 in rising order.
        columns: The columns they are in, int64.
        magnitudes: Their magnitudes, float64.
    """

    positions: Tensor
    columns: Tensor
    magnitudes: Tensor

    def scores(self, input_importance: Tensor) -> Tensor:
        """Return their scores, exactly as `mathneuro.importance.scores` has them."""
        vector = input_importance.detach().to(self.columns.device)
        return self.magnitudes * vector.index_select(0, self.columns)


def screen(weight: Tensor, input_importance: Tensor, value: float) -> Iterator[Screened]:
    """Go through the parameters of a weight whose score may reach a value.

    Args:
        weight: Weight of shape ``[out, in]``, finite.
        input_importance: ``a`` of shape ``[in]``, float64, finite.
        value: The value.

    Yields:
        Of each block of rows all parameters whose score does, and few others.

    Example:
        >>> importance = torch.tensor([3.0, 0.5], dtype=torch.float64)
        >>> [found] = screen(torch.tensor([[1.0, -2.0], [0.2, 4.0]]), importance, 2.0)
        >>> found.positions, found.scores(importance)
        (tensor([0, 3]), tensor([3., 2.], dtype=torch.float64))
    """
    dtype = torch.promote_types(weight.dtype, torch.float32)
    exact = input_importance.detach().to(weight.device)
    raised = (exact + exact.abs() * SLACK + TINY).to(dtype)
    lowered = -SMALLEST if abs(value) < SMALLEST else value * (1 - math.copysign(SLACK, value))
    for rows in row_blocks(weight):
        magnitudes = weight[rows].detach().to(dtype).abs()
        # Single precision may make a NaN of what is a number, so NaN is not ruled out.
        positions = positions_not_below(magnitudes * raised, lowered)
        yield Screened(
            positions + rows.start * weight.shape[1],
            columns_of(positions, weight.shape[1]),
            magnitudes.flatten().index_select(0, positions).double(),
        )
