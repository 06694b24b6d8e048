"""Neurons, found in every family by what modules do."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.activation_functions import experts_activation, is_activation
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.loading import weight_hash
from mathneuro.methods import select
from mathneuro.mlps import OTHER, OWN_EXPERTS, TWICE
from mathneuro.neurons import OWN_GATE, SHARED, NeuronCoverage, find_neurons
from mathneuro.suitability import check_model
from tests.families import FAMILIES
from tests.naive_lape import activation_before
from tests.test_experts import make_experts
from tests.test_families import logits

WITHOUT = ("GPT-OSS", "Mamba")
"""Families in which no neuron can be found."""

WITH = [name for name in FAMILIES if name not in WITHOUT]


def found(model: PreTrainedModel, **patterns: list[str]) -> NeuronCoverage:
    """Find the neurons of a language model."""
    coverage = check_model(model, find_linear_weights(model, **patterns))
    return find_neurons(model, coverage)


def output_projections(model: PreTrainedModel) -> set[str]:
    """Name the weights that read neurons, by what families call them."""
    known = ("down_proj", "fc2", "dense_4h_to_h", "output_linear")
    names = set()
    for name in find_linear_weights(model).weights:
        parts = name.removesuffix(".weight").split(".")
        last = parts[-2] if parts[-1].isdecimal() else parts[-1]
        if last in known or (last in ("c_proj", "Wo") and parts[-2] == "mlp"):
            names.add(name)
    return names


@pytest.mark.parametrize("name", WITH)
def test_all_neurons_of_a_family_are_found(name: str) -> None:
    """Gated and plain, with fused gates, transposed, of experts; nothing is left on the model."""
    model = FAMILIES[name].build()
    neurons = found(model)
    assert set(neurons.neurons) == output_projections(model)
    assert neurons.count + sum(each.neurons for each in neurons.left_out) == neurons.total
    for projection, each in neurons.neurons.items():
        assert each.activation is activation_before(model, projection)[1]
    assert {each.reason for each in neurons.left_out} == (
        {OWN_EXPERTS} if name == "Llama 4" else set()
    )
    hooks = [each._forward_hooks or each._forward_pre_hooks for each in model.modules()]
    assert not any(hooks)


@pytest.mark.parametrize("name", WITH)
def test_scaling_a_column_is_scaling_the_activation(name: str) -> None:
    """The same logits; afterwards every weight is what it was, bit for bit."""
    model = FAMILIES[name].build()
    neurons = found(model).neurons
    some = {key: torch.arange(each.count) % 13 == 1 for key, each in neurons.items()}
    counts = {key: each.long() for key, each in some.items()}
    nothing = {key: torch.zeros_like(each) for key, each in counts.items()}
    importance = Importance(
        {"math": {}, "language": {}},
        {},
        activations={"math": counts, "language": nothing},
        tokens={"math": 1, "language": 1},
    )
    weights = find_linear_weights(model).weights
    selection = select(weights, importance, "lape", 0.5)
    assert selection.origin["neurons"] == sum(int(each.sum()) for each in some.values())
    assert selection.origin["of_neurons"] == sum(each.count for each in neurons.values())
    for key, each in weights.items():
        mask = selection.mask(key).t() if each.transposed else selection.mask(key)
        columns = some.get(key, torch.zeros(each.in_features, dtype=torch.bool))
        assert torch.equal(mask, columns.expand(each.out_features, -1)), key

    def scale(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        return output * torch.where(torch.arange(output.shape[-1]) % 13 == 1, 3.0, 1.0)

    before = weight_hash(model)
    handles = [
        each.register_forward_hook(scale) for each in {n.activation for n in neurons.values()}
    ]
    expected = logits(model)
    for handle in handles:
        handle.remove()
    plain = logits(model)
    with Edit(selection, 3.0).applied(model):
        torch.testing.assert_close(logits(model), expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(plain, expected, rtol=1e-3, atol=1e-3)
    assert weight_hash(model) == before


@pytest.mark.parametrize(
    ("name", "reason"), [("GPT-OSS", OWN_GATE), ("Mamba", "can be found in MambaForCausalLM, but")]
)
def test_a_model_without_neurons_is_refused(name: str, reason: str) -> None:
    """In one sentence with the reason, if there is one."""
    with pytest.raises(InputError, match=r"model: no neuron of an MLP can be found") as raised:
        found(FAMILIES[name].build())
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["Llama, own head", "Mixtral"])
def test_neurons_whose_projection_is_left_alone_are_named(name: str) -> None:
    """With the reason; all others take part."""
    every = found(FAMILIES[name].build())
    for pattern in ("model.layers.1.*", "*.1.mlp.*down_proj.*"):
        neurons = found(FAMILIES[name].build(), exclude=[pattern])
        assert all("layers.0" in each for each in neurons.neurons)
        assert neurons.total == every.total == 2 * neurons.count
        assert all(f"(excluded by {pattern})" in each.reason for each in neurons.left_out)


def test_one_expert_can_be_left_out() -> None:
    """The others of its stack take part."""
    model = FAMILIES["Mixtral"].build()
    neurons = found(model, exclude=["model.layers.0.mlp.experts.down_proj.2"])
    assert len(neurons.neurons) == 7
    assert [(each.name, each.neurons) for each in neurons.left_out] == [
        ("model.layers.0.mlp.experts", 24)
    ]


class Odd(nn.Module):
    """An MLP that goes about its neurons in a way of its own."""

    def __init__(self, way: Callable[["Odd", Tensor], Tensor], activation: nn.Module) -> None:
        super().__init__()
        self.up, self.gate, self.act, self.down = (
            nn.Linear(16, 16), nn.Linear(16, 16), activation, nn.Linear(16, 16),
        )  # fmt: skip
        self.norm, self.drop, self.way = nn.LayerNorm(16), nn.Dropout(), way

    def forward(self, states: Tensor) -> Tensor:
        """Go that way."""
        return self.way(self, states)


def gated(mlp: Odd, states: Tensor) -> Tensor:
    """Gate, with as many neurons as hidden features, so that widths tell nothing."""
    return mlp.down(mlp.drop(mlp.act(mlp.gate(states)) * mlp.up(states)))  # type: ignore[no-any-return]


def by_keyword(mlp: Odd, states: Tensor) -> Tensor:
    """Hand inputs over by name, texts and tokens in one dimension."""
    inner = mlp.act(mlp.up(input=states.reshape(-1, 16)))
    return mlp.down(input=inner).view_as(states)  # type: ignore[no-any-return]


def normed(mlp: Odd, states: Tensor) -> Tensor:
    """Put a norm between the neurons and their projection."""
    return mlp.down(mlp.norm(mlp.act(mlp.up(states))))  # type: ignore[no-any-return]


def shifted(mlp: Odd, states: Tensor) -> Tensor:
    """Add something to the neurons."""
    return mlp.down(mlp.act(mlp.up(states)) + 1)  # type: ignore[no-any-return]


def turned(mlp: Odd, states: Tensor) -> Tensor:
    """Put tokens into another order between the neurons and their projection."""
    return mlp.down(mlp.act(mlp.up(states)).flip(1)).flip(1)  # type: ignore[no-any-return]


def gate_of_a_mixer(mlp: Odd, states: Tensor) -> Tensor:
    """Gate what mixes tokens, as some attentions do."""
    mixed = mlp.up(states).cumsum(dim=1)
    return mlp.down(mlp.act(mlp.gate(states)) * mixed)  # type: ignore[no-any-return]


def twice(mlp: Odd, states: Tensor) -> Tensor:
    """Run the activation function twice."""
    return mlp.down(mlp.act(mlp.gate(states)) * mlp.act(mlp.up(states)))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("way", "activation", "reason"),
    [
        (gated, nn.SiLU(), None),
        (gated, nn.ReLU(inplace=True), None),
        (gated, nn.PReLU(), None),
        (by_keyword, nn.GELU(), None),
        (normed, nn.GELU(), OTHER),
        (shifted, nn.GELU(), OTHER),
        (turned, nn.GELU(), OTHER),
        (gate_of_a_mixer, nn.Sigmoid(), OTHER),
        (twice, nn.SiLU(), TWICE),
    ],
)
def test_odd_mlps(
    way: Callable[[Odd, Tensor], Tensor], activation: nn.Module, reason: str | None
) -> None:
    """They are found, or left out with the reason; the other MLP is found in any case."""
    model = FAMILIES["Llama, own head"].build()
    torch.manual_seed(1)
    odd = Odd(way, activation).requires_grad_(False)
    odd.train(False)
    model.model.layers[1].mlp = odd
    neurons = found(model)
    assert ("model.layers.1.mlp.down.weight" in neurons.neurons) == (reason is None)
    assert "model.layers.0.mlp.down_proj.weight" in neurons.neurons
    assert [each.reason for each in neurons.left_out] == ([] if reason is None else [reason])


def test_a_shared_activation_function_is_left_out() -> None:
    """Its hook would not tell which MLP runs."""
    model = FAMILIES["Llama, own head"].build()
    model.model.layers[1].mlp.act_fn = model.model.layers[0].mlp.act_fn
    with pytest.raises(InputError, match=SHARED):
        found(model)


def test_a_part_that_does_not_run_alone_is_told() -> None:
    """In one sentence."""
    calls = []

    def once(mlp: Odd, states: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("not again\nplease")
        return gated(mlp, states)

    model = FAMILIES["Llama, own head"].build()
    model.model.layers[1].mlp = Odd(once, nn.SiLU()).requires_grad_(False)
    model.train(False)
    with pytest.raises(InputError, match=r"trial pass of the MLPs .* \(RuntimeError: not again\)"):
        find_neurons(model, find_linear_weights(model))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.ReLU(), True),
        (nn.Tanh(), True),
        (nn.LeakyReLU(), True),
        (nn.Identity(), False),
        (nn.LayerNorm(8), False),
        (nn.RMSNorm(8), False),
        (nn.Softmax(-1), False),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activation_functions(module: nn.Module, expected: bool, dtype: torch.dtype) -> None:
    """Number by number, and no straight line."""
    assert is_activation(module.to(dtype), torch.zeros(2, 3, 8, dtype=dtype)) == expected


@pytest.mark.parametrize("flags", [{}, {"has_gate": False}, {"is_transposed": True}])
def test_the_activation_of_experts(flags: dict[str, bool]) -> None:
    """Whichever way they are stored, gated or not; not if the gate does something else."""
    experts = make_experts(**flags)
    assert experts_activation(experts) is experts.act_fn
    experts.act_fn = nn.Softmax(-1)
    assert experts_activation(experts) is None
    experts.act_fn = nn.GELU()

    def own_gate(inner: Tensor) -> Tensor:
        return nn.functional.gelu(inner[:, :12]) * inner[:, 12:]

    experts.__dict__["_apply_gate"] = own_gate
    assert (experts_activation(experts) is None) == experts.has_gate
