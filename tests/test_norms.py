"""Norms recorded by hooks against a naive loop over texts, tokens and features."""

import contextlib

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.decoder import run_decoder
from mathneuro.errors import InputError
from mathneuro.importance import scores
from mathneuro.layers import Coverage, find_linear_weights
from mathneuro.norms import InputNorms
from mathneuro.suitability import OTHER_HEAD, check_model, head_weight
from mathneuro.weights import Weight
from tests import naive

TEXTS = [[4, 5, 6, 7, 8], [9], [3, 1, 1], [10, 11, 12, 13, 14, 15, 16], [1]]


def padded(texts: list[list[int]], side: str) -> tuple[Tensor, Tensor]:
    """Put texts into one rectangle, padded with token 1, which real texts hold too."""
    width = max(len(text) for text in texts)
    ids, mask = torch.ones(len(texts), width, dtype=torch.int64), torch.zeros(len(texts), width)
    for row, text in enumerate(texts):
        place = slice(width - len(text), width) if side == "left" else slice(0, len(text))
        ids[row, place], mask[row, place] = torch.tensor(text), 1
    return ids, mask.long()


def measured(
    model: PreTrainedModel, batches: list[list[list[int]]], side: str = "right"
) -> dict[str, Tensor]:
    """Measure the importance of all inputs with hooks."""
    return measured_weights(model, find_linear_weights(model), batches, side)


def measured_weights(
    model: PreTrainedModel,
    coverage: Coverage,
    batches: list[list[list[int]]],
    side: str = "right",
) -> dict[str, Tensor]:
    """Measure the importance of the inputs of some weights."""
    head = head_weight(model, coverage)
    norms = InputNorms(coverage.weights)
    with norms.recording(), torch.no_grad():
        for texts in batches:
            ids, mask = padded(texts, side)
            with norms.batch(mask, [str(text) for text in texts]):
                if side == "right":
                    output = run_decoder(model, ids, mask)
                else:
                    positions = (mask.cumsum(1) - 1).clamp_min(0)
                    output = model.get_decoder()(
                        input_ids=ids, attention_mask=mask, position_ids=positions
                    )[0]
                if head is not None:
                    norms.observe(head, output)
    return norms.sums()


@pytest.mark.parametrize("kind", ["tied_llama", "untied_llama", "phi", "opt"])
def test_importance_equals_the_naive_one(kind: str, request: pytest.FixtureRequest) -> None:
    """Texts of one token, pad tokens that are real tokens elsewhere, tied and untied heads."""
    model: PreTrainedModel = request.getfixturevalue(kind)
    found = measured(model, [TEXTS[:3], TEXTS[3:]])
    expected = naive.importance(model, TEXTS, list(found))
    for name, vector in found.items():
        ours = scores(model.get_parameter(name), vector)
        torch.testing.assert_close(ours, expected[name], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["tied_llama", "untied_llama", "phi"])
def test_batches_and_padding_do_not_matter(kind: str, request: pytest.FixtureRequest) -> None:
    """One text a pass, all in one batch, other orders, padding on the left: the same sums."""
    model: PreTrainedModel = request.getfixturevalue(kind)
    alone = measured(model, [[text] for text in TEXTS])
    for batches, side in (
        ([TEXTS], "right"),
        ([TEXTS[::-1]], "left"),
        ([TEXTS[2:], TEXTS[:2]], "left"),
    ):
        for name, vector in measured(model, batches, side).items():
            torch.testing.assert_close(vector, alone[name], rtol=1e-5, atol=1e-6)


def test_every_input_is_computed_once(tied_llama: PreTrainedModel) -> None:
    """Query, key and value share a vector, gate and up another."""
    found = measured(tied_llama, [TEXTS])
    addresses = {name: vector.data_ptr() for name, vector in found.items()}
    block = "model.layers.0"
    attention = {addresses[f"{block}.self_attn.{each}_proj.weight"] for each in "qkv"}
    mlp = {addresses[f"{block}.mlp.{each}_proj.weight"] for each in ("gate", "up")}
    assert len(attention) == len(mlp) == 1
    assert len(set(addresses.values())) == 4 * tied_llama.config.num_hidden_layers


def test_counts_weight_the_norms() -> None:
    """A text that was drawn three times counts three times."""
    linear = nn.Linear(3, 2)
    inputs = torch.randn(2, 4, 3)
    norms = InputNorms({"weight": Weight("weight", linear)})
    mask = torch.ones(2, 4, dtype=torch.int64)
    with norms.recording(), norms.batch(mask, ["a", "b"], torch.tensor([3, 1])):
        linear(inputs)
    expected = 3 * inputs[0].double().norm(dim=0) + inputs[1].double().norm(dim=0)
    torch.testing.assert_close(norms.sums()["weight"], expected, rtol=1e-6, atol=0)
    assert (int(norms.texts), norms.forwarded) == (4, 2)


def test_many_draws_are_summed_in_one_pass() -> None:
    """Each as it would be alone: every text weighted by how often that draw drew it."""
    linear = nn.Linear(3, 2)
    counts = torch.tensor([[3, 1, 0], [0, 0, 0], [1, 0, 5], [2, 2, 2]])
    inputs = torch.randn(3, 4, 3)
    mask = torch.ones(3, 4, dtype=torch.int64)
    norms = InputNorms({"weight": Weight("weight", linear)}, draws=4)
    with norms.recording():
        for part in (slice(0, 2), slice(2, 3)):
            with norms.batch(mask[part], ["a"] * len(mask[part]), counts[:, part]):
                linear(inputs[part])
    for draw, drawn in enumerate(counts):
        expected = sum(
            int(count) * text.double().norm(dim=0)
            for count, text in zip(drawn, inputs, strict=True)
        )
        assert isinstance(expected, torch.Tensor)
        torch.testing.assert_close(norms.sums()["weight"][draw], expected, rtol=1e-6, atol=0)
    assert norms.texts.tolist() == [4, 0, 6, 6]
    assert norms.forwarded == 3
    assert InputNorms({"weight": Weight("weight", linear)}, draws=4).sums()["weight"].shape == (
        4,
        3,
    )


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_value_that_is_not_finite_names_module_and_text(
    tied_llama: PreTrainedModel, value: str
) -> None:
    """The run stops instead of building a mask from NaN."""
    with torch.no_grad():
        tied_llama.model.embed_tokens.weight[9] = float(value)
    with pytest.raises(
        InputError, match=r"layers\.0\.self_attn\.q_proj holds NaN or Inf for \[9\]"
    ):
        measured(tied_llama, [TEXTS])


def test_hooks_are_gone_after_an_exception(tied_llama: PreTrainedModel) -> None:
    """The model is left as it was found."""
    norms = InputNorms(find_linear_weights(tied_llama).weights)
    with contextlib.suppress(RuntimeError), norms.recording():
        assert any(module._forward_pre_hooks for module in tied_llama.modules())
        raise RuntimeError("stop")
    assert not any(module._forward_pre_hooks for module in tied_llama.modules())


def test_a_weight_that_never_ran_is_refused(tied_llama: PreTrainedModel) -> None:
    """A part of the model that no text went through has no importance of zero: it has none."""
    weights = find_linear_weights(tied_llama).weights
    norms = InputNorms({**weights, "unused.weight": Weight("unused.weight", nn.Linear(2, 2))})
    ids, mask = padded(TEXTS, "right")
    with norms.recording(), norms.batch(mask, ["a"] * len(TEXTS)):
        run_decoder(tied_llama, ids, mask)
    with pytest.raises(InputError, match=r"unused\.weight"):
        norms.sums()


def test_a_head_that_reads_something_else_is_left_alone(untied_llama: PreTrainedModel) -> None:
    """Identification takes the decoder's output for the head's input, so this must hold."""
    assert "lm_head.weight" in check_model(untied_llama, find_linear_weights(untied_llama)).weights
    untied_llama.lm_head = nn.Sequential(nn.Tanh(), untied_llama.lm_head)
    untied_llama.get_output_embeddings = lambda: untied_llama.lm_head[1]  # type: ignore[method-assign]
    coverage = check_model(untied_llama, find_linear_weights(untied_llama))
    assert "lm_head.1.weight" not in coverage.weights
    assert [(item.name, item.reason) for item in coverage.not_covered()] == [
        ("lm_head.1.weight", OTHER_HEAD)
    ]


def test_a_tensor_that_was_changed_in_place_is_another_input() -> None:
    """Two layers that read one buffer at different times do not share a vector."""
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    norms = InputNorms({"first": Weight("first", first), "second": Weight("second", second)})
    stream = torch.randn(1, 4, 3)
    expected = {"first": stream.double().norm(dim=1)[0]}
    with torch.no_grad(), norms.recording(), norms.batch(torch.ones(1, 4), ["a"]):
        stream += first(stream)
        expected["second"] = stream.double().norm(dim=1)[0]
        second(stream)
    for name, vector in norms.sums().items():
        torch.testing.assert_close(vector, expected[name], rtol=1e-6, atol=0)


def test_a_layer_that_runs_twice_is_refused() -> None:
    """Its importance would be that of one of the two passes."""
    linear = nn.Linear(3, 3)
    norms = InputNorms({"weight": Weight("weight", linear)})
    stream = torch.randn(1, 4, 3)
    with norms.recording(), norms.batch(torch.ones(1, 4), ["a"]):
        linear(stream)
        with pytest.raises(InputError, match="more than once"):
            linear(stream)
