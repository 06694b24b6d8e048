"""Edits: what they change, what they leave, and that nothing of them stays."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.edit import Edit, check_factor
from mathneuro.errors import InputError
from mathneuro.layers import find_linear_weights
from mathneuro.selection import Selection
from mathneuro.weights import Weight


def random_edit(model: PreTrainedModel, factor: float) -> Edit:
    """Choose a fifth of every weight that takes part."""
    weights = find_linear_weights(model).weights
    positions = {
        name: torch.randperm(weight.numel)[: weight.numel // 5].sort().values
        for name, weight in weights.items()
    }
    shapes = {name: tuple(weight.stored.shape) for name, weight in weights.items()}
    return Edit(Selection(positions, shapes, {"method": "any"}), factor, {"weight_hash": "x"})


def state(model: nn.Module) -> dict[str, Tensor]:
    """Copy all weights."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def logits(model: PreTrainedModel) -> Tensor:
    """Run a short text."""
    with torch.no_grad():
        output: Tensor = model(input_ids=torch.tensor([[3, 4, 5, 6]])).logits
    return output


@pytest.mark.parametrize("factor", [0.0, 1.1, -2.0])
@pytest.mark.parametrize("kind", ["tied_llama", "untied_llama", "phi"])
def test_selected_parameters_are_multiplied_and_restored_bit_for_bit(
    kind: str, factor: float, request: pytest.FixtureRequest
) -> None:
    """The others stay as they are; afterwards weights and logits are those from before."""
    model: PreTrainedModel = request.getfixturevalue(kind)
    edit, before, logits_before = random_edit(model, factor), state(model), logits(model)
    with edit.applied(model):
        assert not torch.equal(logits(model), logits_before)
        for name, tensor in model.state_dict().items():
            expected = before[name].clone()
            if name in edit.selection.positions:
                mask = edit.selection.mask(name)
                expected[mask] = expected[mask] * factor
            elif name == "lm_head.weight":
                expected = before["model.embed_tokens.weight"]
            assert torch.equal(tensor, expected), name
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(logits(model), logits_before)


def test_a_tied_head_never_takes_part_and_an_untied_one_does(
    tied_llama: PreTrainedModel, untied_llama: PreTrainedModel
) -> None:
    """Found by storage."""
    tied, untied = find_linear_weights(tied_llama), find_linear_weights(untied_llama)
    assert "lm_head.weight" not in tied.weights
    assert "lm_head.weight" in untied.weights
    assert tied.reasons()["tied to the embedding"] == tied_llama.lm_head.weight.numel()
    assert tied.total == tied_llama.num_parameters()
    assert untied.total == untied_llama.num_parameters()


def test_a_config_that_lies_about_ties_changes_nothing(untied_llama: PreTrainedModel) -> None:
    """Sharing is a matter of storage, not of flags."""
    untied_llama.config.tie_word_embeddings = True
    assert "lm_head.weight" in find_linear_weights(untied_llama).weights


def test_weights_are_restored_after_an_exception(tied_llama: PreTrainedModel) -> None:
    """Also after one."""
    before = state(tied_llama)
    with (
        pytest.raises(RuntimeError, match="stop"),
        random_edit(tied_llama, 0.0).applied(tied_llama),
    ):
        raise RuntimeError("stop")
    assert all(torch.equal(each, before[name]) for name, each in tied_llama.state_dict().items())


def test_weights_that_are_not_contiguous_are_edited_in_place() -> None:
    """A transposed weight is the same weight."""
    linear = nn.Linear(3, 2, bias=False)
    linear.weight = nn.Parameter(torch.arange(6.0).view(3, 2).t())
    edit = Edit(Selection({"weight": torch.tensor([1, 5])}, {"weight": (2, 3)}), 0.0)
    with edit.applied(linear):
        assert linear.weight.tolist() == [[0.0, 0.0, 4.0], [1.0, 3.0, 0.0]]
    assert linear.weight.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]


def test_an_edit_survives_its_file(tied_llama: PreTrainedModel, tmp_path: Path) -> None:
    """Positions, factor, origin and model."""
    edit = random_edit(tied_llama, 1.1)
    edit.save(tmp_path / "edit.safetensors")
    loaded = Edit.load(tmp_path / "edit.safetensors")
    assert (loaded.factor, loaded.model) == (edit.factor, edit.model)
    assert (loaded.selection.shapes, loaded.selection.origin) == (
        edit.selection.shapes,
        edit.selection.origin,
    )
    for name, positions in edit.selection.positions.items():
        assert torch.equal(positions, loaded.selection.positions[name])


def test_files_that_are_no_edits_are_one_sentence(tmp_path: Path) -> None:
    """Missing, damaged, of another kind, or with positions outside of the weight."""
    path = tmp_path / "edit.safetensors"
    with pytest.raises(InputError, match="does not exist"):
        Edit.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="damaged"):
        Edit.load(path)
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match="mathneuro-edit-1"):
        Edit.load(path)
    for positions in ([0, 6], [-1, 2], [3, 3], [4, 2]):
        bad = Edit(Selection({"weight": torch.tensor(positions)}, {"weight": (2, 3)}), 0.0)
        bad.save(path)
        with pytest.raises(InputError, match="not rising positions"):
            Edit.load(path)


def test_another_model_is_refused(tied_llama: PreTrainedModel) -> None:
    """By the hash of its weights, and by names and shapes."""
    edit = random_edit(tied_llama, 0.0)
    with pytest.raises(InputError, match="it was made for"):
        edit.check_model("y")
    with pytest.raises(InputError, match="none of that name"):
        edit.apply(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("dtype", "factor", "fits"),
    [
        (torch.float16, 1e5, False),
        (torch.float16, 100.0, True),
        (torch.bfloat16, 1e5, True),
        (torch.float32, 1e39, False),
    ],
)
def test_a_factor_that_overflows_is_refused(dtype: torch.dtype, factor: float, fits: bool) -> None:
    """Before it makes infinities that nobody notices until evaluation."""
    linear = nn.Linear(4, 4).to(dtype)
    nn.init.constant_(linear.weight, 2.0)
    if fits:
        check_factor(factor, {"weight": Weight("weight", linear)})
    else:
        with pytest.raises(InputError, match="more than"):
            check_factor(factor, {"weight": Weight("weight", linear)})


def test_weights_that_are_not_finite_are_refused() -> None:
    """By name."""
    linear = nn.Linear(2, 2)
    nn.init.constant_(linear.weight, float("nan"))
    with pytest.raises(InputError, match="the weight w holds NaN or Inf"):
        check_factor(0.0, {"w": Weight("w", linear)})
