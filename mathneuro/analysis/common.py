"""How many positions selections of one weight have in common, for many pairs of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

WORD = 64
"""Positions that are compared at once."""

Bits = NDArray[np.uint64]


def positions_in_common(
    positions: Sequence[Tensor], parameters: int, pairs: Sequence[tuple[int, int]]
) -> list[int]:
    """Count the positions that two selections of a weight have in common, pair by pair.

    Each selection takes one bit a parameter for it.

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
    """
    needed = {index for pair in pairs for index in pair}
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
