"""Which weights take part."""

import pytest
import torch
from torch import nn

from mathneuro.errors import InputError
from mathneuro.layers import find_linear_weights


def test_weights_of_other_kinds_are_named_as_not_covered() -> None:
    """A convolution's weight is no linear weight, and the user hears of it."""
    model = nn.Sequential(nn.Conv1d(3, 4, 2), nn.Linear(4, 4))
    coverage = find_linear_weights(model)
    missing = coverage.not_covered()
    assert [item.name for item in missing] == ["0.weight"]
    assert missing[0].parameters == 24
    assert "Conv1d" in missing[0].reason
    assert coverage.share == pytest.approx(16 / (16 + 24 + 8))


def test_two_linears_that_share_a_weight_do_not_take_part() -> None:
    """Neither owns it."""
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2), "c": nn.Linear(2, 2)})
    model["b"].weight = model["a"].weight
    coverage = find_linear_weights(model)
    assert list(coverage.weights) == ["c.weight"]
    assert coverage.reasons()["shared by several modules"] == 4


def test_packed_weights_are_refused() -> None:
    """Integers of a quantised layer are no numbers to multiply."""
    linear = nn.Linear(2, 2)
    linear.weight = nn.Parameter(torch.zeros(2, 2, dtype=torch.uint8), requires_grad=False)
    with pytest.raises(InputError, match="not quantised"):
        find_linear_weights(nn.Sequential(linear))


def test_a_model_without_linear_weights_is_refused() -> None:
    """There would be nothing to do."""
    with pytest.raises(InputError, match=r"no weight of a linear .* linear layers$"):
        find_linear_weights(nn.Sequential(nn.Embedding(2, 2)))
    with pytest.raises(InputError, match=r"each a weight of Conv1d, which is no linear layer"):
        find_linear_weights(nn.Sequential(nn.Conv1d(2, 2, 2)))
