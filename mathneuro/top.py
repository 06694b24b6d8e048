"""Which parameters have the highest scores: one pass over a weight once cutoffs are known."""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from mathneuro.cutoffs import Cutoff
from mathneuro.kernels import true_positions
from mathneuro.screening import screen


def find_tops(
    weight: Tensor, vectors: Sequence[Tensor], cutoffs: Sequence[Sequence[Cutoff]]
) -> list[Tensor]:
    """Find the parameters that are in a weight's top for one set of texts, and for no other.

    Args:
        weight: Weight of shape ``[out, in]``.
        vectors: ``a`` of that set and of each other one, of shape ``[in]``, float64.
        cutoffs: For each top that is wanted, where it ends for that set and for each other one, as
            `find_cutoffs` found it.

    Returns:
        For each top that is wanted their flat positions, int64 in rising order.

    Example:
        >>> weight, ones = torch.tensor([[1.0, -3.0], [3.0, 2.0]]), torch.ones(2).double()
        >>> find_tops(weight, [ones, ones], [[Cutoff(2.0, last=3), Cutoff(3.0, last=1)]])
        [tensor([2, 3])]
    """
    found: list[list[Tensor]] = [[] for _ in cutoffs]
    lowest = min(first.value for first, *_ in cutoffs)
    for screened in screen(weight, vectors[0], lowest):
        scores = [screened.scores(vector) for vector in vectors]
        for positions, ends in zip(found, cutoffs, strict=True):
            inside, *outside = (
                end.is_reached(each, screened.positions)
                for end, each in zip(ends, scores, strict=True)
            )
            kept = reduce(lambda mask, other: mask & ~other, outside, inside)
            positions.append(screened.positions.index_select(0, true_positions(kept)))
    nothing = torch.empty(0, dtype=torch.int64, device=weight.device)
    return [torch.cat([nothing, *positions]) for positions in found]
