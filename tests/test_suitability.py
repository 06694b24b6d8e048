"""The trial pass: what cannot be measured is left alone and named, the rest is treated."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from mathneuro.errors import InputError
from mathneuro.layers import find_linear_weights
from mathneuro.norms import NOT_ONCE, NOT_RUN, TWICE
from mathneuro.suitability import MIXED, check_model, position_table
from tests.families import FAMILIES
from tests.test_norms import TEXTS, measured_weights

Forward = Callable[[nn.Module, Tensor], Tensor]


class Odd(nn.Module):
    """An MLP that goes about its linear layer in a way of its own."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.odd = nn.Linear(16, 16)
        self.way = forward

    def forward(self, states: Tensor) -> Tensor:
        """Go that way."""
        return self.way(self.odd, states)


def twice(linear: nn.Module, states: Tensor) -> Tensor:
    """Run the layer twice."""
    return linear(linear(states))  # type: ignore[no-any-return]


def bypassed(linear: nn.Module, states: Tensor) -> Tensor:
    """Use the weight without the layer."""
    return functional.linear(states, linear.weight)  # type: ignore[arg-type]


def some_tokens(linear: nn.Module, states: Tensor) -> Tensor:
    """Run the layer on the first tokens alone."""
    return torch.cat([linear(states[:, :2]), states[:, 2:]], dim=1)


def flattened(linear: nn.Module, states: Tensor) -> Tensor:
    """Put texts and tokens into one dimension, which is fine."""
    return linear(states.reshape(-1, 16)).view_as(states)  # type: ignore[no-any-return]


def tokens_first(linear: nn.Module, states: Tensor) -> Tensor:
    """Put tokens before texts."""
    return linear(states.transpose(0, 1)).transpose(0, 1)  # type: ignore[no-any-return]


def tokens_first_flattened(linear: nn.Module, states: Tensor) -> Tensor:
    """Put tokens before texts where shapes do not tell."""
    turned = states.transpose(0, 1)
    return linear(turned.reshape(-1, 16)).view_as(turned).transpose(0, 1)  # type: ignore[no-any-return]


def padded_blocks(linear: nn.Module, states: Tensor) -> Tensor:
    """Fill texts up to whole blocks of tokens."""
    longer = functional.pad(states, (0, 0, 0, -states.shape[1] % 64))
    return linear(longer)[:, : states.shape[1]]  # type: ignore[no-any-return]


def over_texts(linear: nn.Module, states: Tensor) -> Tensor:
    """Look at the texts of a batch together, without telling the layers after it."""
    linear(states - 2 * states.mean(dim=0, keepdim=True))
    return states


def by_keyword(linear: nn.Module, states: Tensor) -> Tensor:
    """Hand the input over by its name, which is fine."""
    return linear(input=states)  # type: ignore[no-any-return]


def odd_llama(way: Forward) -> PreTrainedModel:
    """Build a Llama whose second MLP is odd."""
    model = FAMILIES["Llama, own head"].build()
    torch.manual_seed(1)
    model.model.layers[1].mlp = Odd(way).requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (twice, TWICE),
        (bypassed, NOT_RUN),
        (some_tokens, NOT_ONCE),
        (tokens_first, NOT_ONCE),
        (tokens_first_flattened, MIXED),
        (padded_blocks, NOT_ONCE),
        (over_texts, MIXED),
        (flattened, None),
        (by_keyword, None),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_odd_layers_are_left_alone(way: Forward, reason: str | None, dtype: torch.dtype) -> None:
    """With the reason; all others are measured, in a batch that has other lengths."""
    model = odd_llama(way)
    nn.Module.to(model, dtype)
    coverage = check_model(model, find_linear_weights(model))
    name = "model.layers.1.mlp.odd.weight"
    assert {item.name: item.reason for item in coverage.not_covered()} == (
        {} if reason is None else {name: reason}
    )
    assert (name in coverage.weights) == (reason is None)
    assert len(measured_weights(model, coverage, [TEXTS])) == len(coverage.weights)


def test_a_model_of_which_nothing_is_left_is_refused() -> None:
    """In one sentence that names the reason."""
    model = odd_llama(bypassed)
    coverage = find_linear_weights(model, include=["*.odd.weight"])
    with pytest.raises(InputError, match=rf"odd\.weight: {NOT_RUN}\), but at least one is needed"):
        check_model(model, coverage)


def test_a_model_that_does_not_run_is_refused() -> None:
    """It is not known what could be measured."""

    def broken(_linear: nn.Module, _states: Tensor) -> Tensor:
        raise RuntimeError("no kernel\nfor this device")

    model = odd_llama(broken)
    with pytest.raises(InputError, match=r"trial pass of LlamaForCausalLM failed .*no kernel\)"):
        check_model(model, find_linear_weights(model))


def test_a_vision_towers_positions_are_none_of_the_texts() -> None:
    """Only a decoder's own table limits how long texts may be."""
    assert position_table(FAMILIES["Gemma 3, multimodal"].build()) is None
    assert position_table(FAMILIES["OPT"].build()) == 64


def test_a_model_that_changes_its_own_weights_is_refused() -> None:
    """As RWKV rescales its, in its first pass in evaluation mode."""
    from transformers import RwkvConfig, RwkvForCausalLM

    config = RwkvConfig(
        vocab_size=29, hidden_size=16, attention_hidden_size=16, intermediate_size=24,
        num_hidden_layers=2, rescale_every=1, context_length=64,
    )  # fmt: skip
    model = RwkvForCausalLM(config).eval()
    with pytest.raises(InputError, match="a forward pass of RwkvForCausalLM changes its own"):
        check_model(model, find_linear_weights(model))
