"""Which weights take part."""

import pytest
import torch
from torch import nn

from mathneuro.errors import InputError
from mathneuro.layers import find_linear_weights
from mathneuro.storage import Rows, Stored, stored_parameters
from mathneuro.weights import Weight, find_stored
from tests.families import FAMILIES


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
    with pytest.raises(InputError, match=r"said: a weight of Conv1d, which is no linear layer"):
        find_linear_weights(nn.Sequential(nn.Conv1d(2, 2, 2)))


def test_packed_weights_in_buffers_are_refused() -> None:
    """No parameter tells of them."""
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].register_buffer("qweight", torch.zeros(2, 2, dtype=torch.int32))
    with pytest.raises(InputError, match=r"0\.qweight holds packed weights .* not quantised"):
        find_linear_weights(model)


def test_eight_bit_floats_are_refused() -> None:
    """They are a code for other numbers, with a scale beside them."""
    linear = nn.Linear(2, 2)
    linear.weight = nn.Parameter(linear.weight.detach().to(torch.float8_e4m3fn))
    with pytest.raises(InputError, match="float8"):
        find_linear_weights(nn.Sequential(linear))


def test_experts_are_one_weight_each() -> None:
    """Named by the parameter and their number; views of the parameter's own numbers."""
    model = FAMILIES["GPT-OSS"].build()
    weights = find_linear_weights(model).weights
    name = "model.layers.1.mlp.experts.gate_up_proj"
    mine = weights[f"{name}.3"]
    assert (mine.parameter_name, mine.out_features, mine.in_features) == (name, 48, 16)
    assert (mine.stored.shape, mine.matrix.shape, mine.numel) == ((16, 48), (48, 16), 768)
    assert mine.stored.data_ptr() == model.get_parameter(name)[3].data_ptr()
    found = find_stored(stored_parameters(model), mine.name)
    assert found is not None
    assert found.shape == mine.stored.shape
    everything = torch.arange(mine.numel)
    assert torch.equal(found.take(everything), mine.stored.flatten())


@pytest.mark.parametrize("name", ["a.4", "a.-1", "a.x", "b.0", "a.1.0", "c.0"])
def test_names_of_no_matrix_find_nothing(name: str) -> None:
    """Beyond the last expert, of no parameter, or of one that has no experts."""
    tensors = {"a": torch.zeros(4, 2, 2), "c": torch.zeros(2, 2)}
    parameters = {key: Stored(each.shape, (Rows(each),)) for key, each in tensors.items()}
    assert find_stored(parameters, name) is None


def test_positions_follow_the_way_a_matrix_is_stored() -> None:
    """The same numbers by either way of counting."""
    module = nn.Module()
    module.weight = nn.Parameter(torch.rand(5, 3))
    weight = Weight("weight", module, transposed=True)
    positions = torch.tensor([0, 4, 5, 7, 13])
    stored = weight.stored_positions(positions)
    assert stored.tolist() == sorted(stored.tolist())
    values = weight.stored.flatten()[stored]
    assert set(values.tolist()) == set(weight.matrix.flatten()[positions].tolist())


def test_patterns_choose_weights() -> None:
    """Those that are not included, and those that are excluded, are left alone and named."""
    model = FAMILIES["Mixtral"].build()
    everything = find_linear_weights(model)
    chosen = find_linear_weights(model, ["model.layers.0.*", "lm_head.weight"], ["*.experts.*.3"])
    assert "lm_head.weight" in chosen.weights
    assert "model.layers.0.mlp.experts.gate_up_proj.2" in chosen.weights
    assert "model.layers.0.mlp.experts.gate_up_proj.3" not in chosen.weights
    assert not any("layers.1" in name for name in chosen.weights)
    assert chosen.total == everything.total
    assert {"excluded by *.experts.*.3", "not among the included"} < chosen.reasons().keys()
    assert not chosen.not_covered()


@pytest.mark.parametrize(
    ("include", "exclude", "message"),
    [
        (
            ["*.q_project.*"],
            [],
            r"model\.include: got '\*\.q_project\.\*'.*self_attn\.q_proj\.weight",
        ),
        (None, ["lm_heads"], r"model\.exclude: got 'lm_heads'.*close to it are lm_head\.weight"),
        ([], [], "no weight is left"),
        (["lm_head.weight"], ["lm_*"], "no weight is left"),
    ],
)
def test_patterns_that_make_no_sense_are_one_sentence(
    include: list[str] | None, exclude: list[str], message: str
) -> None:
    """With names that are close to what was meant."""
    with pytest.raises(InputError, match=message):
        find_linear_weights(FAMILIES["Qwen2"].build(), include, exclude)
