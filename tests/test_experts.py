"""Experts: our forward pass against transformers' own, and what is heard of their inputs."""

import contextlib
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS, use_experts_implementation

from mathneuro.errors import InputError
from mathneuro.experts import IMPLEMENTATION, compute_experts, is_experts, listening
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.methods import select
from mathneuro.norms import NOT_RUN, InputNorms
from mathneuro.suitability import OTHER_EXPERTS, OTHER_ROUTER, check_model
from mathneuro.weights import Weight
from tests.families import FAMILIES
from tests.test_norms import TEXTS, measured_weights

MIXTURES = ("Qwen3-MoE", "Mixtral", "GPT-OSS", "DeepSeek-V3", "Granite 4 hybrid", "Qwen3-Next")


def make_experts(**flags: bool) -> nn.Module:
    """Build four experts, and their own forward pass, with other flags than the families have."""
    gate, transposed = flags.get("has_gate", True), flags.get("is_transposed", False)
    name, width = ("gate_up_proj", 24) if gate else ("up_proj", 12)

    class Experts(nn.Module):
        def __init__(self, config: PreTrainedConfig) -> None:
            super().__init__()
            up, down = (4, width, 8), (4, 8, 12)
            turned = [(a, c, b) if transposed else (a, b, c) for a, b, c in (up, down)]
            setattr(self, name, nn.Parameter(torch.randn(turned[0])))
            self.down_proj = nn.Parameter(torch.randn(turned[1]))
            setattr(self, f"{name}_bias", nn.Parameter(torch.randn(4, width)))
            self.down_proj_bias = nn.Parameter(torch.randn(4, 8))
            self.act_fn = nn.GELU()
            self.post_expert_norm = nn.LayerNorm(8)
            self.num_experts = 4

        def forward(self, states: Tensor, index: Tensor, weights: Tensor) -> Tensor:
            raise AssertionError("one of transformers' implementations runs instead")

    built: nn.Module = use_experts_implementation(**flags)(Experts)(PreTrainedConfig())  # type: ignore[arg-type]
    return built


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"has_gate": False},
        {"is_transposed": True, "has_bias": True},
        {"has_post_expert_norm": True, "has_bias": True},
    ],
)
@pytest.mark.parametrize("own", ["batched_mm", "grouped_mm"])
def test_all_kinds_of_experts_are_computed(flags: dict[str, bool], own: str) -> None:
    """With and without gate, bias and norm, stored either way: as transformers computes them."""
    experts = make_experts(**flags)
    assert is_experts(experts)
    states = torch.randn(7, 8)
    index = torch.stack([torch.randperm(3)[:2] for _ in range(7)])
    weights = torch.rand(7, 2)
    experts.config._experts_implementation = own  # type: ignore[union-attr]
    with torch.no_grad():
        expected = experts(states, index, weights)
        found = compute_experts(experts, states, index, weights)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("own", ["eager", "grouped_mm"])
def test_families_compute_the_same_while_they_are_listened_to(name: str, own: str) -> None:
    """Up to float32's rounding; afterwards the model has its own implementation again."""
    model = FAMILIES[name].build()
    model.set_experts_implementation(own)
    coverage = find_linear_weights(model)
    ids = torch.tensor([[3, 4, 5, 6, 7, 8]])
    norms = InputNorms(coverage.weights)
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        with norms.recording():
            assert model.config._experts_implementation == IMPLEMENTATION
            found = model(input_ids=ids).logits
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert model.config._experts_implementation == own


def test_the_implementation_is_restored_after_an_exception() -> None:
    """Also when recordings are nested."""
    model = FAMILIES["Mixtral"].build()
    before = model.config._experts_implementation
    weights = find_linear_weights(model).weights
    with contextlib.suppress(RuntimeError), InputNorms(weights).recording():
        with InputNorms(weights).recording():
            assert model.config._experts_implementation == IMPLEMENTATION
        assert model.config._experts_implementation == IMPLEMENTATION
        raise RuntimeError("stop")
    assert model.config._experts_implementation == before


def test_experts_without_a_listener_keep_their_own_implementation() -> None:
    """Those of one layer are listened to; the other layer shares its config with it."""
    model = FAMILIES["Mixtral"].build()
    called = []

    def own(module: nn.Module, states: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        called.append(module)
        return compute_experts(module, states, index, weights)

    ALL_EXPERTS_FUNCTIONS.register("mathneuro_test", own)
    model.set_experts_implementation("mathneuro_test")
    weights = find_linear_weights(model, include=["model.layers.0.*"]).weights
    with InputNorms(weights).recording(), torch.no_grad():
        model(input_ids=torch.tensor([[3, 4]]))
    assert called == [model.model.layers[1].mlp.experts]


def routed_model() -> tuple[nn.Module, dict[str, Weight]]:
    """Four experts whose routing a test decides."""
    experts = make_experts()
    weights = {
        f"{name}.{expert}": Weight(f"{name}.{expert}", experts, name, expert)
        for name in ("gate_up_proj", "down_proj")
        for expert in range(4)
    }
    return experts, weights


def test_an_expert_hears_of_the_tokens_that_were_routed_to_it() -> None:
    """Of each text by itself; 0 where there are none; nothing of padding, not even a NaN."""
    experts, weights = routed_model()
    states = torch.randn(6, 8)
    states[5] = float("nan")
    index = torch.tensor([[0, 1], [0, 2], [1, 2], [2, 0], [2, 1], [0, 3]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    norms = InputNorms(weights, draws=2)
    counts = torch.eye(2, dtype=torch.int64)
    with norms.recording(), torch.no_grad(), norms.batch(mask, ["a", "b"], counts):
        experts(states, index, torch.rand(6, 2))
    sums = norms.sums()
    for expert, (first, second) in enumerate([([0, 1], [3]), ([0, 2], [4]), ([1, 2], [3, 4])]):
        for draw, rows in enumerate((first, second)):
            expected = states[rows].double().norm(dim=0)
            torch.testing.assert_close(
                sums[f"gate_up_proj.{expert}"][draw], expected, rtol=1e-6, atol=0
            )
            inner = (states[rows] @ experts.gate_up_proj[expert].t()).detach()  # type: ignore[index]
            inner = nn.functional.gelu(inner[:, :12]) * inner[:, 12:]
            torch.testing.assert_close(
                sums[f"down_proj.{expert}"][draw], inner.double().norm(dim=0), rtol=1e-5, atol=1e-6
            )
    assert not sums["gate_up_proj.3"].any()
    assert not sums["down_proj.3"].any()


def test_experts_that_run_twice_or_on_some_tokens_are_refused() -> None:
    """Once measuring has begun; the trial pass leaves them alone."""
    experts, weights = routed_model()
    given = torch.randn(3, 8), torch.zeros(3, 1, dtype=torch.int64), torch.ones(3, 1)
    norms = InputNorms(weights)
    with norms.recording(), torch.no_grad(), norms.batch(torch.ones(1, 3), ["a"]):
        experts(*given)
        with pytest.raises(InputError, match="more than once"):
            experts(*given)
    recording = norms.recording(), norms.batch(torch.ones(1, 4), ["a"])
    with (
        torch.no_grad(),
        recording[0],
        recording[1],
        pytest.raises(InputError, match="every token"),
    ):
        experts(*given)


def test_an_expert_that_no_text_reached_ties_to_the_lowest_positions() -> None:
    """All its scores are 0; ``[out, in]`` decides, also where it is stored as ``[in, out]``."""
    experts = make_experts(is_transposed=True)
    weight = Weight("down_proj.3", experts, "down_proj", 3, transposed=True)
    nothing = {"down_proj.3": torch.zeros(12, dtype=torch.float64)}
    importance = Importance({"math": nothing}, {"math": 1})
    selection = select({"down_proj.3": weight}, importance, "wanda", 0.07)
    assert selection.shapes["down_proj.3"] == (12, 8)
    assert selection.mask("down_proj.3").t().flatten().nonzero().flatten().tolist() == list(
        range(6)
    )
    assert selection.positions["down_proj.3"].tolist() == [0, 8, 16, 24, 32, 40]


def mixtral_with(part: str, kind: type[nn.Module]) -> PreTrainedModel:
    """Build a Mixtral one of whose layers has another class for one of its parts."""
    model = FAMILIES["Mixtral"].build()
    getattr(model.model.layers[1].mlp, part).__class__ = kind
    return model


def left_alone(model: PreTrainedModel) -> dict[str, str]:
    """Why weights are not covered, by name."""
    coverage = check_model(model, find_linear_weights(model))
    measured_weights(model, coverage, [TEXTS])
    return {item.name: item.reason for item in coverage.not_covered()}


def test_experts_that_pass_the_registry_by_are_left_alone() -> None:
    """And named, while the rest of the model is treated."""
    kind = type(FAMILIES["Mixtral"].build().model.layers[0].mlp.experts)

    class Bypass(kind):  # type: ignore[misc, valid-type]
        def forward(self, states: Tensor, index: Tensor, weights: Tensor) -> Tensor:
            return compute_experts(self, states, index, weights)

    stacks = [f"model.layers.1.mlp.experts.{name}" for name in ("gate_up_proj", "down_proj")]
    assert left_alone(mixtral_with("experts", Bypass)) == dict.fromkeys(stacks, NOT_RUN)


def test_experts_that_compute_something_else_are_left_alone() -> None:
    """Whatever their flags say."""
    kind = type(FAMILIES["Mixtral"].build().model.layers[0].mlp.experts)

    class Doubled(kind):  # type: ignore[misc, valid-type]
        def forward(self, *given: Tensor) -> Tensor:
            output: Tensor = super().forward(*given)
            return output if self.config._experts_implementation == IMPLEMENTATION else output * 2

    stacks = [f"model.layers.1.mlp.experts.{name}" for name in ("gate_up_proj", "down_proj")]
    assert left_alone(mixtral_with("experts", Doubled)) == dict.fromkeys(stacks, OTHER_EXPERTS)


def test_a_router_that_changes_its_input_first_is_left_alone() -> None:
    """Its norms would be those of something else."""
    kind = type(FAMILIES["Mixtral"].build().model.layers[0].mlp.gate)

    class Scaled(kind):  # type: ignore[misc, valid-type]
        def forward(self, states: Tensor) -> Any:  # noqa: ANN401
            return super().forward(states * 3)

    assert left_alone(mixtral_with("gate", Scaled)) == {
        "model.layers.1.mlp.gate.weight": OTHER_ROUTER
    }


def test_listening_to_nothing_changes_nothing() -> None:
    """Nor does it need transformers."""
    with listening({}):
        pass
