"""How many positions selections of one weight have in common, in little memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

WORD = 64
"""Bits that are compared at once, and bits of a position."""

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Packed:
    """The positions that are selected in one weight.

    Whatever takes less room: one bit a parameter of the weight, or the positions themselves. So a
    file that claims a huge weight takes no more memory than its positions do.

    Attributes:
        count: How many there are.
        positions: Their flat positions. None: they are kept as bits.
        words: One bit a parameter, filled up with zeros. None: they are kept as positions.
    """

    count: int
    positions: Numbers | None = None
    words: Words | None = None


def pack(positions: Tensor, parameters: int) -> Packed:
    """Keep the positions that are selected in a weight.

    Args:
        positions: Flat positions, int64, each at most once.
        parameters: How many parameters the weight has.
    """
    numbers: Numbers = positions.cpu().numpy()
    if parameters > WORD * len(numbers):
        return Packed(len(numbers), positions=numbers)
    mask = np.zeros(-(-parameters // WORD) * WORD, dtype=np.bool_)
    mask[numbers] = True
    return Packed(len(numbers), words=np.packbits(mask, bitorder="little").view(np.uint64))


def number_in_common(first: Packed, second: Packed) -> int:
    """Count the positions that two selections of one weight have in common.

    Example:
        >>> import torch
        >>> one, other = torch.tensor([0, 2, 5]), torch.tensor([2, 5, 9])
        >>> number_in_common(pack(one, 10), pack(other, 10))
        2
        >>> number_in_common(pack(one, 10**15), pack(other, 10**15))
        2
    """
    if first.words is not None and second.words is not None:
        return int(np.bitwise_count(first.words & second.words).sum(dtype=np.int64))
    if first.positions is not None and second.positions is not None:
        return len(np.intersect1d(first.positions, second.positions, assume_unique=True))
    if first.positions is not None and second.words is not None:
        octets = second.words.view(np.uint8)[first.positions // 8]
        return int((octets >> (first.positions % 8).astype(np.uint8) & 1).sum(dtype=np.int64))
    return number_in_common(second, first)
