"""The least magnitude for a score, against a search through all magnitudes."""

import pytest
import torch

from mathneuro.importance import scores
from mathneuro.magnitudes import bits, least_magnitudes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_it_is_the_first_of_all_magnitudes_that_is_enough(dtype: torch.dtype) -> None:
    """For scores that numbers of the type have, their neighbours, and extremes."""
    infinite = int(bits(torch.tensor(torch.inf, dtype=dtype)))
    every = torch.arange(infinite, dtype=torch.int16).view(dtype)
    importance = torch.tensor([0.0, 1e-322, 1e-30, 0.1, 1 / 3, 1.0, 7.7, 1e30]).double()
    had = scores(
        every[[1, 3, 700, 15000, -1], None].expand(-1, len(importance)), importance
    ).flatten()
    neighbours = [had.nextafter(torch.full_like(had, side)) for side in (0.0, torch.inf)]
    values = torch.cat([had, *neighbours, torch.tensor([0.0, 1e-300, 1e300]).double()])[:, None]
    reached = (
        scores(every[:, None].expand(-1, len(importance)), importance)[None] >= values[:, None]
    )
    expected = torch.where(reached.any(dim=1), reached.int().argmax(dim=1), infinite)
    # Each value alone, so that the smallest of them do not change how the others are looked for.
    found = torch.stack([least_magnitudes(value, importance, dtype) for value in values])
    # No number is enough, be it Inf or NaN that says so.
    assert found.clamp(max=infinite).tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_number_before_it_is_not_enough(dtype: torch.dtype, scale: float) -> None:
    """For scores that numbers of the type have, which rounding could miss."""
    importance = (torch.rand(2000).double() + 0.1) * scale
    for power in (-20, 0, 20):
        weight = torch.randn(2000, dtype=dtype).abs() * 2.0**power + 1e-30
        for value in scores(weight, importance)[:50, None]:
            found = least_magnitudes(value, importance, dtype)
            assert bool((scores(found.view(dtype), importance) >= value).all())
            before = (found - 1).clamp(min=0).view(dtype)
            assert bool(((scores(before, importance) < value) | (found == 0)).all())
