"""Edits: what they change, what they leave, and that nothing of them stays."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.factors import check_factor
from mathneuro.layers import find_linear_weights
from mathneuro.loading import weight_hash
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
    selection = Selection(positions, shapes, {"method": "any"})
    return Edit(selection, factor, {"weight_hash": weight_hash(model)})


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


def test_an_edit_that_names_a_tied_head_is_refused(tied_llama: PreTrainedModel) -> None:
    """It would change the embedding too; one that selects nothing of it changes nothing."""
    head = tied_llama.get_output_embeddings()
    assert isinstance(head, nn.Linear)
    before, shape = head.weight.detach().clone(), tuple(head.weight.shape)
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        edit = Edit(Selection({name: torch.tensor([3])}, {name: shape}), 0.0)
        with (
            pytest.raises(InputError, match=f"^edit: it changes {name}, which is tied to another"),
            edit.applied(tied_llama, check_hash=False),
        ):
            pass
        nothing = Edit(Selection({name: torch.tensor([], dtype=torch.int64)}, {name: shape}), 0.0)
        with nothing.applied(tied_llama, check_hash=False):
            assert torch.equal(head.weight, before)
    assert torch.equal(head.weight, before)


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
    """Missing, damaged, or of another kind."""
    path = tmp_path / "edit.safetensors"
    with pytest.raises(InputError, match="does not exist"):
        Edit.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="damaged"):
        Edit.load(path)
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(InputError, match="mathneuro-edit-3"):
        Edit.load(path)


def test_another_factor_and_factors_of_groups(tied_llama: PreTrainedModel) -> None:
    """The first pattern that matches counts; a new factor for all replaces those of groups."""
    edit, before = random_edit(tied_llama, 0.0), state(tied_llama)
    grouped = edit.with_factors(1.5, {"*.layers.0.*": 0.5, "*.down_proj.*": -1.0})
    with grouped.applied(tied_llama):
        for name in edit.selection.positions:
            first, down = ".layers.0." in name, "down_proj" in name
            factor = 0.5 if first else -1.0 if down else 1.5
            mask, expected = edit.selection.mask(name), before[name].clone()
            expected[mask] = expected[mask] * factor
            assert torch.equal(tied_llama.state_dict()[name], expected), name
    assert all(torch.equal(each, before[name]) for name, each in tied_llama.state_dict().items())
    assert grouped.with_factors(2.0).factors == {}
    assert grouped.with_factors().factors == grouped.factors
    with pytest.raises(InputError, match=r"intervention.factors: got 'q', but no weight"):
        edit.with_factors(None, {"q": 1.0}, "intervention.")
    with pytest.raises(InputError, match="factor: got nan"):
        edit.with_factors(float("nan"))


def test_an_edit_of_another_model_is_refused_unless_asked(
    tied_llama: PreTrainedModel, untied_llama: PreTrainedModel
) -> None:
    """By the hash of the weights; shapes must fit in any case."""
    edit = random_edit(tied_llama, 0.0)
    edit.selection.positions.pop("lm_head.weight", None)
    before = state(untied_llama)
    with pytest.raises(InputError, match="it was made for"), edit.applied(untied_llama):
        pass
    assert all(torch.equal(each, before[name]) for name, each in untied_llama.state_dict().items())
    with edit.applied(untied_llama, check_hash=False):
        assert weight_hash(untied_llama) != weight_hash(tied_llama)


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
