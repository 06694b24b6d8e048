"""Which parameters have the highest scores: one pass over a weight once cutoffs are known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from mathneuro.blocks import row_blocks
from mathneuro.cutoffs import Cutoff
from mathneuro.importance import scores
from mathneuro.kernels import mark_between, true_positions
from mathneuro.magnitudes import bits, least_magnitudes

Top = tuple[Tensor, Cutoff]
"""``a`` of a set of texts, of shape ``[in]``, float64, and where the top of a weight's scores ends.

As `find_cutoffs` found it for the same weight and ``a``.
"""


def find_top(weight: Tensor, top: Top, without: Sequence[Top] = ()) -> Tensor:
    """Find the parameters that are in a weight's top for one set of texts, and for no other.

    Args:
        weight: Weight of shape ``[out, in]``.
        top: The top for the set.
        without: The tops for the other sets.

    Returns:
        Their flat positions, int64 in rising order.

    Example:
        >>> weight, ones = torch.tensor([[1.0, -3.0], [3.0, 2.0]]), torch.ones(2).double()
        >>> find_top(weight, (ones, Cutoff(2.0, last=3)), [(ones, Cutoff(3.0, last=1))])
        tensor([2, 3])
    """
    tops = [top, *without]
    mask = torch.empty(weight.shape, dtype=torch.bool, device=weight.device)
    if all(bool((vector >= 0).all()) for vector, _ in tops):
        _mark_by_magnitude(weight, tops, mask)
    else:
        # What a method makes of importance, such as a difference, may be negative. Then scores do
        # not rise with magnitudes.
        _mark_by_score(weight, tops, mask)
    return true_positions(mask)


@dataclass(frozen=True)
class _Limit:
    """From which magnitude on a parameter of a weight is in a top.

    Attributes:
        weight: The weight, of shape ``[out, in]``.
        top: The top.
        reaching: The magnitudes whose score reaches the cutoff's, bits of shape ``[in]``.
    """

    weight: Tensor
    top: Top
    reaching: Tensor

    @cached_property
    def exceeding(self) -> Tensor:
        """The magnitudes whose score exceeds the cutoff's, bits of shape ``[in]``."""
        vector, cutoff = self.top
        above = math.nextafter(cutoff.value, math.inf)
        return _reaching(self.weight, [(vector, Cutoff(above, cutoff.last))])[0]

    def in_rows(self, rows: slice) -> Tensor:
        """Return the limit of some rows, bits of shape ``[in]`` or ``[rows, in]``."""
        last, width = self.top[1].last, len(self.reaching)
        # Reaching the cutoff's score is enough up to its last position.
        if rows.stop * width <= last + 1:
            return self.reaching
        if rows.start * width > last:
            return self.exceeding
        positions = _positions(self.weight, rows)
        return self.reaching.where(positions <= last, self.exceeding)


def _mark_by_magnitude(weight: Tensor, tops: Sequence[Top], mask: Tensor) -> None:
    """Mark what is in the first top and in no other, by magnitudes alone."""
    inside, *outside = (
        _Limit(weight, each, reaching)
        for each, reaching in zip(tops, _reaching(weight, tops), strict=True)
    )
    numbers = bits(weight)
    none = torch.full_like(inside.reaching, torch.iinfo(numbers.dtype).max)
    for rows in row_blocks(weight):
        upper = reduce(torch.minimum, (limit.in_rows(rows) for limit in outside), none)
        mark_between(numbers[rows], inside.in_rows(rows), upper, mask[rows])


def _reaching(weight: Tensor, tops: Sequence[Top]) -> Tensor:
    """Return the magnitudes whose score reaches each cutoff's, bits of shape ``[tops, in]``."""
    values = torch.tensor([[cutoff.value] for _, cutoff in tops], dtype=torch.float64)
    vectors = torch.stack([vector.cpu() for vector, _ in tops])
    return least_magnitudes(values, vectors, weight.dtype).to(weight.device)


def _mark_by_score(weight: Tensor, tops: Sequence[Top], mask: Tensor) -> None:
    """Mark what is in the first top and in no other, straight from what a cutoff means."""
    for rows in row_blocks(weight):
        inside, *outside = (_in_top(weight, rows, each) for each in tops)
        mask[rows] = reduce(lambda kept, other: kept & ~other, outside, inside)


def _in_top(weight: Tensor, rows: slice, top: Top) -> Tensor:
    """Tell which parameters of some rows are in a top."""
    vector, cutoff = top
    found = scores(weight[rows], vector)
    tied = (found == cutoff.value) & (_positions(weight, rows) <= cutoff.last)
    return (found > cutoff.value) | tied


def _positions(weight: Tensor, rows: slice) -> Tensor:
    """Return the flat positions of some rows, of shape ``[rows, in]``."""
    width = weight.shape[1]
    positions = torch.arange(rows.start * width, rows.stop * width, device=weight.device)
    return positions.view(-1, width)
