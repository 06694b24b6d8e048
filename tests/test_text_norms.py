"""Norms of texts against one text at a time."""

import pytest
import torch

from mathneuro import blocks
from mathneuro.text_norms import Padding, text_norms


@pytest.mark.parametrize("block", [1, 30, 75, 2**17])
@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_what_stands_at_padding_never_counts(
    side: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a NaN, wherever it stands, however many texts are looked at together."""
    lengths = [5, 0, 3, 5, 1, 4, 2]
    inputs, mask = torch.full((7, 5, 6), float("nan")), torch.zeros(7, 5, dtype=torch.int64)
    expected = torch.empty(7, 6)
    for number, length in enumerate(lengths):
        free = 5 - length
        start = {"left": free, "right": 0, "both": free // 2}[side]
        inputs[number, start : start + length] = torch.randn(length, 6)
        mask[number, start : start + length] = 1
        expected[number] = inputs[number, start : start + length].double().norm(dim=0)
    monkeypatch.setattr(blocks, "BLOCK", block)
    norms = text_norms(inputs, Padding.find(mask))
    assert norms.dtype == torch.float32
    torch.testing.assert_close(norms, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_texts_in_blocks_have_the_norms_of_all_at_once(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, so that a mask does not depend on the size of a block."""
    inputs = torch.randn(9, 40, 50).to(dtype)
    whole = text_norms(inputs)
    for block in (1, 3 * 40 * 50, 5 * 40 * 50):
        monkeypatch.setattr(blocks, "BLOCK", block)
        assert torch.equal(text_norms(inputs), whole)


def test_a_mask_without_padding_has_none() -> None:
    """So that nothing is set to 0."""
    assert Padding.find(torch.ones(3, 4)) is None


def test_half_precision_inputs_get_float32_norms() -> None:
    """Sums of squares that float16 cannot hold are no problem."""
    norms = text_norms(torch.full((1, 100, 1), 100.0, dtype=torch.float16))
    assert norms.dtype == torch.float32
    assert float(norms) == pytest.approx(1000)
