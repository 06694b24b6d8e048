"""What is computed otherwise on the CPU gives the same."""

import pytest
import torch

from mathneuro.kernels import (
    _find_highest_by_topk,
    columns_of,
    find_highest,
    positions_not_below,
)


@pytest.mark.parametrize("count", [1, 5, 39, 40])
@pytest.mark.parametrize("kinds", [1, 4, 1000])
def test_partition_and_topk_find_the_same(kinds: int, count: int) -> None:
    """With ties, and if all are the highest."""
    scores = torch.randint(0, kinds, (40,)).double() - 2
    expected = _find_highest_by_topk(scores, count)
    found = find_highest(scores.clone(), count)
    assert found.scores.sort().values.tolist() == expected.scores.sort().values.tolist()
    assert found[1:] == expected[1:]
    assert sorted(scores.tolist(), reverse=True)[:count][-1] == found.lowest


@pytest.mark.parametrize("limit", [-torch.inf, -1.0, 0.0, 1e300, torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_only_what_is_below_a_limit_is_left_out(dtype: torch.dtype, limit: float) -> None:
    """NaN is not, nor is Inf below a limit that the type rounds to it."""
    numbers = torch.tensor([[-torch.inf, -1.0, -0.0], [0.5, torch.inf, torch.nan]], dtype=dtype)
    rounded = torch.tensor(limit, dtype=dtype)
    expected = [number for number, each in enumerate(numbers.flatten()) if not each < rounded]
    assert positions_not_below(numbers, limit).tolist() == expected


@pytest.mark.parametrize("width", [1, 3, 1000])
def test_columns_are_remainders(width: int) -> None:
    """Of positions from 0 on."""
    positions = torch.arange(0, 10**6, 997)
    assert torch.equal(columns_of(positions, width), positions % width)
