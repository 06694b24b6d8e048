"""Gaps: every rising list of positions comes back, and nothing else is read."""

import pytest
import torch

from mathneuro.gaps import decode, encode


def naive(positions: list[int], largest: int) -> list[int]:
    """Write gaps one after the other."""
    encoded, last = [], -1
    for position in positions:
        gap = position - last
        while gap >= largest:
            encoded.append(largest)
            gap -= largest
        encoded.append(gap)
        last = position
    return encoded


@pytest.mark.parametrize(
    "positions",
    [
        [],
        [0],
        [254],
        [255],
        [65534],
        [65535, 65536],
        [0, 255, 510, 511, 766, 65536 * 3],
        [2**26],
        list(range(1000)),
        list(range(3, 10**6, 254)),
        list(range(3, 10**6, 255)),
        list(range(3, 10**7, 65535)),
    ],
)
def test_positions_come_back(positions: list[int]) -> None:
    """As the naive loop writes them, in the smaller type."""
    encoded = encode(torch.tensor(positions, dtype=torch.int64))
    assert decode(encoded).tolist() == positions
    small, large = naive(positions, 255), naive(positions, 65535)
    assert encoded.to(torch.int64).tolist() == (small if len(small) <= 2 * len(large) else large)


def test_random_positions_come_back() -> None:
    """Whatever the density."""
    generator = torch.Generator().manual_seed(0)
    for share in (1e-4, 0.01, 0.5, 1.0):
        chosen = torch.rand(200_000, generator=generator) < share
        positions = chosen.nonzero().flatten()
        encoded = encode(positions)
        assert torch.equal(decode(encoded), positions)
        assert encoded.nbytes <= 4 * len(positions)


def test_positions_that_do_not_rise_are_refused() -> None:
    """They cannot be written."""
    for positions in ([3, 3], [4, 2], [-1, 2]):
        with pytest.raises(ValueError, match="that rise"):
            encode(torch.tensor(positions))


@pytest.mark.parametrize(
    "encoded",
    [
        torch.tensor([1, 255], dtype=torch.uint8),
        torch.tensor([1, 0], dtype=torch.uint8),
        torch.tensor([0], dtype=torch.uint8),
        torch.tensor([1, 2], dtype=torch.int32),
        torch.tensor([1.0, 2.0]),
        torch.tensor([[1]], dtype=torch.uint8),
        torch.tensor(3, dtype=torch.uint8),
    ],
)
def test_what_are_no_gaps_is_refused(encoded: torch.Tensor) -> None:
    """Unfinished, empty, or of another kind."""
    with pytest.raises(ValueError, match=r"end|are torch|is 0"):
        decode(encoded)
