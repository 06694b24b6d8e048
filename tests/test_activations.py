"""Counts of activations against plain hooks and loops, in every family."""

import contextlib
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.activations import ActivationCounts
from mathneuro.decoder import run_decoder
from mathneuro.errors import InputError
from mathneuro.importance import Importance, holds_activations
from mathneuro.layers import find_linear_weights
from mathneuro.neurons import Neurons, find_neurons
from mathneuro.norms import InputNorms
from mathneuro.suitability import check_model
from mathneuro.weights import Weight
from tests import naive_lape
from tests.families import FAMILIES
from tests.test_experts import make_experts
from tests.test_neurons import WITH
from tests.test_norms import TEXTS, padded


def counted(
    model: PreTrainedModel,
    neurons: dict[str, Neurons],
    batches: list[list[list[int]]],
    drawn: dict[int, list[int]] | None = None,
) -> ActivationCounts:
    """Count over batches of texts, together with the norms, as identification does.

    Args:
        model: The model.
        neurons: Its neurons.
        batches: The texts.
        drawn: How often each draw drew the text of that first token; None: one draw, each once.
    """
    found = ActivationCounts(neurons, None if drawn is None else 2)
    norms = InputNorms({name: each.projection for name, each in neurons.items()})
    with norms.recording(), found.recording(), torch.no_grad():
        for texts in batches:
            ids, mask = padded(texts, "right")
            counts = None
            if drawn is not None:
                counts = torch.tensor([drawn[text[0]] for text in texts]).T
            with norms.batch(mask, ["a"] * len(texts)), found.batch(mask, counts):
                run_decoder(model, ids, mask)
    assert norms.sums()
    return found


@pytest.mark.parametrize("name", WITH)
def test_counts_equal_the_naive_ones(name: str) -> None:
    """In padded batches, alone, and for draws in which texts count several times or not at all."""
    model = FAMILIES[name].build()
    coverage = check_model(model, find_linear_weights(model))
    neurons = find_neurons(model, coverage).neurons
    expected = naive_lape.counts(model, TEXTS, list(neurons))
    for batches in ([TEXTS[:3], TEXTS[3:]], [[text] for text in TEXTS[::-1]]):
        found = counted(model, neurons, batches)
        assert {key: each.tolist() for key, each in found.counts().items()} == expected
        assert int(found.tokens) == sum(map(len, TEXTS))
    drawn = {4: [3, 0], 9: [1, 0], 3: [0, 2], 10: [1, 1], 1: [0, 5]}
    found = counted(model, neurons, [TEXTS[1:], TEXTS[:1]], drawn)
    for draw in range(2):
        texts = [text for text in TEXTS for _ in range(drawn[text[0]][draw])]
        again = naive_lape.counts(model, texts, list(neurons))
        assert {key: each[draw].tolist() for key, each in found.counts().items()} == again
        assert int(found.tokens[draw]) == sum(map(len, texts))


def test_padding_never_counts() -> None:
    """Not even a NaN; nor does a NaN make a neuron active."""
    relu, linear = nn.ReLU(), nn.Linear(2, 1)
    found = ActivationCounts({"weight": Neurons(relu, Weight("weight", linear))})
    states = torch.tensor([[[1.0, -1.0], [2.0, 0.0]], [[1.0, 1.0], [float("nan"), 9.0]]])
    mask = torch.tensor([[1, 1], [1, 0]])
    with found.recording(), found.batch(mask), torch.no_grad():
        linear(relu(states))
    assert found.counts()["weight"].tolist() == [3, 1]
    assert int(found.tokens) == 3


def test_experts_count_the_tokens_that_were_routed_to_them() -> None:
    """Of each draw; 0 where there are none; nothing of padding."""
    experts = make_experts()
    names = {f"down_proj.{expert}": expert for expert in range(4)}
    neurons = {
        name: Neurons(experts.act_fn, Weight(name, experts, "down_proj", expert))  # type: ignore[arg-type]
        for name, expert in names.items()
    }
    states = torch.randn(6, 8)
    states[5] = float("nan")
    index = torch.tensor([[0, 1], [0, 2], [1, 2], [2, 0], [2, 1], [0, 3]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    found = ActivationCounts(neurons, draws=2)
    drawn = torch.tensor([[1, 0], [2, 3]])
    with found.recording(), torch.no_grad(), found.batch(mask, drawn):
        experts(states, index, torch.rand(6, 2))
    for name, expert in names.items():
        expected = torch.zeros(2, 12, dtype=torch.int64)
        for token in range(5):
            if expert in index[token]:
                inner = nn.functional.gelu((states[token] @ experts.gate_up_proj[expert].t())[:12])  # type: ignore[index]
                expected += drawn[:, token // 3, None] * (inner > 0)
        assert torch.equal(found.counts()[name], expected)
    assert found.tokens.tolist() == [3, 12]


def mlp() -> tuple[nn.ReLU, ActivationCounts]:
    """Build an activation function and what counts it."""
    relu = nn.ReLU()
    return relu, ActivationCounts({"w": Neurons(relu, Weight("w", nn.Linear(2, 1)))})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], "does not run"),
        ([(1, 3, 2), (1, 3, 2)], "more than once"),
        ([(1, 2, 2)], "every token of every text once"),
    ],
)
def test_what_cannot_be_counted_is_refused(shapes: list[tuple[int, ...]], message: str) -> None:
    """In one sentence."""
    relu, found = mlp()

    def count() -> None:
        with found.recording(), found.batch(torch.ones(1, 3, dtype=torch.int64)):
            for shape in shapes:
                relu(torch.ones(shape))

    with pytest.raises(InputError, match=message):
        count()


def test_hooks_are_gone_after_an_exception() -> None:
    """And nothing is counted outside of batches."""
    relu, found = mlp()
    with contextlib.suppress(RuntimeError), found.recording():
        relu(torch.ones(1, 3, 2))
        assert relu._forward_hooks
        raise RuntimeError("stop")
    assert not relu._forward_hooks
    assert found.counts()["w"].tolist() == [0, 0]


def importance() -> Importance:
    """Make importance with activations."""

    def norms() -> dict[str, Tensor]:
        return {"a.weight": torch.rand(3, dtype=torch.float64)}

    return Importance(
        {"math": norms(), "race": norms()},
        {"math": 2, "race": 2},
        activations={
            "math": {"a.weight": torch.tensor([0, 5, 2])},
            "race": {"a.weight": torch.tensor([7, 0, 1])},
        },
        tokens={"math": 5, "race": 7},
    )


def test_a_file_holds_activations(tmp_path: Path) -> None:
    """All of them, exactly."""
    before = importance()
    before.save(tmp_path / "file.safetensors")
    after = Importance.load(tmp_path / "file.safetensors")
    assert after.tokens == before.tokens
    for name, each in before.activations.items():
        assert after.activations[name].keys() == each.keys()
        assert torch.equal(after.activations[name]["a.weight"], each["a.weight"])
        assert after.sets[name].keys() == {"a.weight"}
        assert after.activations[name]["a.weight"].dtype == torch.int64
    assert holds_activations(tmp_path / "file.safetensors")
    after.check_activations(["a.weight"], tmp_path)
    with pytest.raises(InputError, match=r"set math in .* no activations .* before b\.weight"):
        after.check_activations(["b.weight"], tmp_path)


def test_a_file_without_activations_is_what_it_was(tmp_path: Path) -> None:
    """It states no tokens, and serves every method but lape."""
    path = tmp_path / "old.safetensors"
    Importance({"math": {"a.weight": torch.rand(3, dtype=torch.float64)}}, {"math": 2}).save(path)
    old = Importance.load(path)
    assert (old.activations, old.tokens) == ({}, {})
    assert not holds_activations(path)
    with pytest.raises(InputError, match="which the method lape needs; measure again"):
        old.check_activations(["a.weight"], path)


@pytest.mark.parametrize("wrong", [torch.tensor([8]), torch.tensor([-1]), torch.tensor([0.5])])
def test_impossible_counts_are_refused(wrong: Tensor, tmp_path: Path) -> None:
    """More than there are tokens, fewer than none, or no whole numbers."""
    broken = importance()
    broken.activations["race"]["a.weight"] = wrong
    broken.save(tmp_path / "file.safetensors")
    with pytest.raises(InputError, match=r"holds race/a\.weight/active with values"):
        Importance.load(tmp_path / "file.safetensors")
