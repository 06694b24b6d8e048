"""Rising positions as the gaps between them: a byte or two each instead of four or eight."""

import torch
from torch import Tensor

TYPES = (torch.uint8, torch.uint16)
"""Types of encoded gaps. The largest number of a type says that the gap goes on in the next one."""


def encode(positions: Tensor) -> Tensor:
    """Write rising positions as gaps, in the smaller of the two types.

    Args:
        positions: Positions of 0 or more, each above the one before: int64 of shape ``[n]``.

    Returns:
        Gaps, uint8 or uint16 of shape ``[n or more]``. The first is counted from -1. A gap is the
        sum of all numbers up to the next that is not the largest of the type.

    Raises:
        ValueError: If the positions do not rise.

    Example:
        >>> encode(torch.tensor([0, 3, 300]))
        tensor([  1,   3, 255,  42], dtype=torch.uint8)
    """
    gaps = positions.diff(prepend=positions.new_tensor([-1]))
    if bool((gaps < 1).any()):
        raise ValueError("Expected positions of 0 or more that rise.")
    return _encode(gaps, min(TYPES, key=lambda kind: _size(gaps, kind)))


def decode(encoded: Tensor) -> Tensor:
    """Read what `encode` wrote.

    Args:
        encoded: Gaps, ``[n]``.

    Returns:
        Positions, int64 in rising order.

    Raises:
        ValueError: If it is not what `encode` writes: another type or shape, a gap of 0, or a gap
            that does not end.

    Example:
        >>> decode(torch.tensor([1, 3, 255, 42], dtype=torch.uint8))
        tensor([  0,   3, 300])
    """
    if encoded.dtype not in TYPES or encoded.dim() != 1:
        raise ValueError(f"they are {encoded.dtype} of shape {list(encoded.shape)}")
    numbers = encoded.to(torch.int64)
    ends = numbers != torch.iinfo(encoded.dtype).max
    if numbers.numel() and not bool(ends[-1]):
        raise ValueError("the last one does not end")
    positions = numbers.cumsum(0)[ends] - 1
    if bool((positions.diff(prepend=positions.new_tensor([-1])) < 1).any()):
        raise ValueError("one of them is 0")
    return positions


def _size(gaps: Tensor, kind: torch.dtype) -> int:
    """Return how many bytes the gaps take in a type."""
    return (len(gaps) + int(_continued(gaps, kind).sum())) * kind.itemsize


def _continued(gaps: Tensor, kind: torch.dtype) -> Tensor:
    """Return how many numbers each gap takes before the one that ends it."""
    return gaps.div(torch.iinfo(kind).max, rounding_mode="floor")


def _encode(gaps: Tensor, kind: torch.dtype) -> Tensor:
    largest, more = torch.iinfo(kind).max, _continued(gaps, kind)
    ends = (more + 1).cumsum(0) - 1
    encoded = torch.full((int(ends[-1]) + 1 if len(ends) else 0,), largest, dtype=torch.int32)
    encoded[ends] = (gaps - more * largest).to(torch.int32)
    return encoded.to(kind)
