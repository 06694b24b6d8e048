"""How many positions selections of one weight have in common, for many pairs of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

WORD = 64
"""Positions that are compared at once; and how many times as many parameters as selected positions
a weight may have for that: a file that claims a huge weight takes no more memory than it should.
"""

Bits = NDArray[np.uint64]


def positions_in_common(
    positions: Sequence[Tensor], parameters: int, pairs: Sequence[tuple[int, int]]
) -> list[int]:
    """Count the positions that two selections of a weight have in common, pair by pair.

    Each selection takes one bit a parameter for it, or its positions where they are few.

    Args:
        positions: Flat positions of each selection, int64, each at most once.
        parameters: How many parameters the weight has.
        pairs: Which selections to compare.

    Returns:
        One number a pair.

    Example:
        >>> import torch
        >>> positions = [torch.tensor([0, 2, 5]), torch.tensor([2, 5, 9]), torch.tensor([1])]
        >>> positions_in_common(positions, 10, [(0, 1), (0, 2)])
        [2, 0]
        >>> positions_in_common(positions, 10**15, [(0, 1), (0, 2)])
        [2, 0]
    """
    needed = {index for pair in pairs for index in pair}
    if parameters > WORD * max((len(positions[index]) for index in needed), default=0):
        few = {index: positions[index].cpu().numpy() for index in needed}
        return [
            len(np.intersect1d(few[first], few[second], assume_unique=True))
            for first, second in pairs
        ]
    bits = {index: _bits(positions[index], parameters) for index in needed}
    return [
        int(np.bitwise_count(bits[first] & bits[second]).sum(dtype=np.int64))
        for first, second in pairs
    ]


def _bits(positions: Tensor, parameters: int) -> Bits:
    """Return one bit a parameter, filled up with zeros."""
    mask = np.zeros(-(-parameters // WORD) * WORD, dtype=np.bool_)
    mask[positions.cpu().numpy()] = True
    return np.packbits(mask).view(np.uint64)
