"""Mixtures of experts: their forward pass, step by step, for those who listen to its inputs.

transformers keeps the experts of a layer as three-dimensional parameters of one module, and looks
the function that computes them up in a registry. One more function there lets every family be
listened to, whatever its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

IMPLEMENTATION = "mathneuro_recording"
"""Name of the function in transformers' registry."""


class ExpertsListener(Protocol):
    """Who hears of what the experts of a module read."""

    def begin(self, module: nn.Module, tokens: int) -> None:
        """Hear that the module runs on so many tokens."""

    def routed(
        self, module: nn.Module, attribute: str, expert: int, tokens: Tensor, inputs: Tensor
    ) -> None:
        """Hear what one matrix of one expert reads.

        Args:
            module: The module that holds the experts.
            attribute: Name of the parameter that holds the matrix.
            expert: Which expert.
            tokens: Which of the module's tokens were routed to it, ``[routed]``.
            inputs: What the matrix is multiplied with, ``[routed, features]``.
        """

    def end(self, module: nn.Module) -> None:
        """Hear that the module has run."""


_listeners: WeakKeyDictionary[nn.Module, tuple[ExpertsListener, ...]] = WeakKeyDictionary()
_chosen: dict[int, str | None] = {}


def expert_matrices(module: nn.Module) -> tuple[str, str]:
    """Return the names of the parameters with the experts' first and second matrices."""
    return "gate_up_proj" if getattr(module, "has_gate", True) else "up_proj", "down_proj"


def is_experts(module: nn.Module) -> bool:
    """Tell whether a module holds experts in the way that transformers' registry computes."""
    flags = ("has_gate", "has_bias", "is_transposed")
    if not all(isinstance(getattr(module, flag, None), bool) for flag in flags):
        return False
    stacks = [getattr(module, name, None) for name in expert_matrices(module)]
    held = all(isinstance(stack, nn.Parameter) and stack.dim() == 3 for stack in stacks)
    return held and hasattr(module, "config")


def forward_experts(
    module: nn.Module, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor
) -> Tensor:
    """Run the experts of a module: ours if someone listens, otherwise those of its own choice.

    Args: see `compute_experts`.
    """
    listeners = _listeners.get(module)
    if listeners is not None:
        return compute_experts(module, hidden_states, top_k_index, top_k_weights, listeners)
    # Modules that share a config share its choice, so that those without a listener end here too.
    config: Any = module.config
    _choose(config, _chosen[id(config)])
    try:
        output: Tensor = module.forward(hidden_states, top_k_index, top_k_weights)
    finally:
        _choose(config, IMPLEMENTATION)
    return output


def compute_experts(
    module: nn.Module,
    hidden_states: Tensor,
    top_k_index: Tensor,
    top_k_weights: Tensor,
    listeners: Sequence[ExpertsListener] = (),
) -> Tensor:
    """Compute what the experts of a module give, one expert after the other.

    It follows the contract of transformers' ``use_experts_implementation``: flags of the module
    say how its matrices are stored, whether there are biases, a gate, and a norm at the end.

    Args:
        module: The module that holds the experts.
        hidden_states: Its input, ``[tokens, hidden]``.
        top_k_index: The experts of each token, ``[tokens, k]``; numbers beyond the last expert
            stand for none.
        top_k_weights: How much each of them counts, ``[tokens, k]``.
        listeners: Who hears of it.

    Returns:
        The weighted sum of the experts' outputs, ``[tokens, hidden]``.
    """
    parts: Any = module
    first, second = expert_matrices(module)
    experts = len(getattr(module, first))
    output = torch.zeros_like(hidden_states)
    for listener in listeners:
        listener.begin(module, len(hidden_states))
    for expert in top_k_index.unique().tolist():
        if not 0 <= expert < experts:
            continue
        tokens, places = (top_k_index == expert).nonzero(as_tuple=True)
        inputs = hidden_states[tokens]
        for listener in listeners:
            listener.routed(module, first, expert, tokens, inputs)
        inner = _linear(module, first, expert, inputs)
        inner = parts._apply_gate(inner) if parts.has_gate else parts.act_fn(inner)
        for listener in listeners:
            listener.routed(module, second, expert, tokens, inner)
        outer = _linear(module, second, expert, inner)
        if getattr(module, "has_post_expert_norm", False):
            outer = parts.post_expert_norm(outer)
        weighted = outer * top_k_weights[tokens, places, None]
        output.index_add_(0, tokens, weighted.to(output.dtype))
    for listener in listeners:
        listener.end(module)
    return output


def _linear(module: nn.Module, attribute: str, expert: int, inputs: Tensor) -> Tensor:
    weight: Tensor = getattr(module, attribute)[expert]
    output = inputs @ (weight if module.is_transposed else weight.t())
    if module.has_bias:
        output = output + getattr(module, f"{attribute}_bias")[expert]
    return output


@contextmanager
def listening(listeners: Mapping[nn.Module, ExpertsListener]) -> Iterator[None]:
    """Let modules that hold experts be listened to in this block, besides those who already listen.

    Their configs name our implementation meanwhile; afterwards, also after an exception, they name
    the one that they named before.

    Args:
        listeners: Who listens to each module.
    """
    if not listeners:
        yield
        return
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    ALL_EXPERTS_FUNCTIONS.register(IMPLEMENTATION, forward_experts)
    configs: dict[int, Any] = {id(module.config): module.config for module in listeners}
    before = {key: config._experts_implementation for key, config in configs.items()}
    heard, chosen = dict(_listeners), dict(_chosen)
    try:
        for module, listener in listeners.items():
            _listeners[module] = (*_listeners.get(module, ()), listener)
        for key, config in configs.items():
            _chosen.setdefault(key, before[key])
            _choose(config, IMPLEMENTATION)
        yield
    finally:
        for key, config in configs.items():
            _choose(config, before[key])
        _listeners.clear()
        _listeners.update(heard)
        _chosen.clear()
        _chosen.update(chosen)


def _choose(config: Any, implementation: str | None) -> None:  # noqa: ANN401
    """Choose the implementation of one config; with a plain name its parts would follow."""
    config._experts_implementation = {"": implementation}
