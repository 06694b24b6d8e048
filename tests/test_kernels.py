"""What is computed otherwise on the CPU gives the same."""

import pytest
import torch

from mathneuro.kernels import _find_highest_by_topk, find_highest


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
