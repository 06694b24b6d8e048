"""Screening misses no parameter, against the scores of all of them."""

import itertools
import math

import pytest
import torch

from mathneuro.importance import scores
from mathneuro.screening import screen

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SCALES = (1e-320, 1e-200, 1e-38, 1e-20, 1.0, 1e20, 1e38, 1e200)


@pytest.mark.parametrize("sign", ["positive", "negative", "either"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_score_that_reaches_the_value_is_missed(dtype: torch.dtype, sign: str) -> None:
    """At scores themselves and next to them, however large or small; their scores are exact."""
    signs = {
        "positive": torch.ones(13),
        "negative": -torch.ones(13),
        "either": torch.tensor([1.0, -1.0, 0.0]).repeat(5)[:13],
    }[sign].double()
    checked = 0
    for weight_scale, scale in itertools.product(SCALES, SCALES):
        weight = (torch.randn(9, 13, dtype=torch.float64) * weight_scale).to(dtype)
        if not bool(weight.isfinite().all()):
            continue
        vector = torch.rand(13).double() * scale * signs
        exact = scores(weight, vector).flatten()
        for value in exact[::8].tolist():
            below, above = (math.nextafter(value, side) for side in (-math.inf, math.inf))
            for limit in (below, value, above):
                found = list(screen(weight, vector, limit))
                positions = torch.cat([each.positions for each in found])
                reached = (exact >= limit).nonzero().flatten()
                assert set(reached.tolist()) <= set(positions.tolist())
                had = torch.cat([each.scores(vector) for each in found])
                assert torch.equal(had, exact[positions])
                checked += len(reached)
    assert checked > 1000


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_few_others_are_found(dtype: torch.dtype) -> None:
    """Of ordinary numbers hardly any is too near to the value to tell."""
    weight, vector = torch.randn(600, 500).to(dtype), torch.rand(500).double()
    exact = scores(weight, vector)
    value = float(exact.flatten().kthvalue(270_000).values)
    found = sum(len(each.positions) for each in screen(weight, vector, value))
    reached = int((exact >= value).sum())
    assert reached <= found < 1.001 * reached
