"""Which neurons of a model's MLPs take part, and which are left out and why."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from mathneuro.activation_functions import experts_activation
from mathneuro.decoder import run_decoder, trial
from mathneuro.errors import InputError
from mathneuro.experts import expert_matrices, is_experts
from mathneuro.layers import Coverage
from mathneuro.mlps import MLP, find_mlps
from mathneuro.weights import Weight

OWN_GATE = "the gate of its experts does not run their activation function by itself"
SHARED = "its activation function is shared by several MLPs"


@dataclass(frozen=True)
class Neurons:
    """The neurons of one MLP, or of one expert: the elements of its activation function's output.

    Attributes:
        activation: The module that is the activation function; experts share one.
        projection: The weight of the output projection. Neuron i, times a gate or not, is what
            column i of it is multiplied with.
    """

    activation: nn.Module
    projection: Weight

    @property
    def count(self) -> int:
        """How many neurons there are."""
        return self.projection.in_features


@dataclass(frozen=True)
class LeftOut:
    """Neurons that do not take part.

    Attributes:
        name: Name of the activation function, or of the module that holds the experts.
        neurons: How many.
        reason: Why they are left out.
    """

    name: str
    neurons: int
    reason: str


@dataclass(frozen=True)
class NeuronCoverage:
    """The neurons of a model that take part, and those that are left out.

    Attributes:
        neurons: The neurons that take part, by the name of their output projection's weight, in
            the order in which the model names these.
        left_out: All other neurons that were found.
    """

    neurons: dict[str, Neurons]
    left_out: tuple[LeftOut, ...]

    @property
    def count(self) -> int:
        """How many neurons take part."""
        return sum(each.count for each in self.neurons.values())

    @property
    def total(self) -> int:
        """How many neurons were found."""
        return self.count + sum(each.neurons for each in self.left_out)

    def reasons(self) -> dict[str, list[LeftOut]]:
        """Group what is left out by the reason."""
        grouped: dict[str, list[LeftOut]] = {}
        for item in self.left_out:
            grouped.setdefault(item.reason, []).append(item)
        return grouped


def find_neurons(
    model: nn.Module, coverage: Coverage, run: Callable[[], object] | None = None
) -> NeuronCoverage:
    """Find the neurons of the MLPs of a model, and the columns that they are multiplied with.

    Nothing is known of families: a trial pass shows which modules are activation functions, and
    that multiplying what they give is multiplying what an output projection reads
    (`mathneuro.mlps`). An activation that is no module, but a call of a function, is not seen.

    Args:
        model: The model.
        coverage: The weights that take part, from `mathneuro.suitability.check_model` if the model
            is a language model of transformers.
        run: Runs the model on a few tokens, none of them padding. None: `model` is a causal
            language model of transformers.

    Returns:
        The neurons that take part and those that are left out.

    Raises:
        InputError: If none takes part, or a part of the model does not run by itself.

    Example:
        >>> from mathneuro.layers import find_linear_weights
        >>> mlp = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 2))
        >>> found = find_neurons(mlp, find_linear_weights(mlp), lambda: mlp(torch.randn(2, 4, 3)))
        >>> {name: neurons.count for name, neurons in found.neurons.items()}
        {'2.weight': 8}
    """
    consequence = "its neurons are not known; use another selection.method than lape"
    with trial(model, "the MLPs of ", consequence):
        mlps = find_mlps(model, partial(_trial, model) if run is None else run)
    found, left_out = _of_mlps(mlps, coverage)
    more, more_left_out = _of_experts(model, coverage)
    found, left_out = found | more, [*left_out, *more_left_out]
    if not found:
        reason = f" ({left_out[0].name}: {left_out[0].reason})" if left_out else ""
        raise InputError(
            f"model: no neuron of an MLP can be found in {type(model).__name__}{reason}, but lape "
            "selects neurons; use another selection.method, or another model"
        )
    ordered = {name: found[name] for name in coverage.weights if name in found}
    return NeuronCoverage(ordered, tuple(left_out))


def _trial(model: nn.Module) -> None:
    causal: Any = model
    from mathneuro.suitability import trial_tokens

    ids = trial_tokens(causal)
    run_decoder(causal, ids, torch.ones_like(ids))


def _of_mlps(mlps: list[MLP], coverage: Coverage) -> tuple[dict[str, Neurons], list[LeftOut]]:
    """Match MLPs with the weights that take part."""
    found: dict[str, Neurons] = {}
    left_out: list[LeftOut] = []
    uses = Counter(mlp.module for mlp in mlps)
    for mlp in mlps:
        reason = SHARED if uses[mlp.module] > 1 else mlp.reason
        if reason is None and mlp.projection in coverage.weights:
            found[mlp.projection] = Neurons(mlp.module, coverage.weights[mlp.projection])
        else:
            reason = reason or _left_alone(coverage, str(mlp.projection))
            left_out.append(LeftOut(mlp.activation, mlp.neurons, reason))
    return found, left_out


def _of_experts(model: nn.Module, coverage: Coverage) -> tuple[dict[str, Neurons], list[LeftOut]]:
    """Find the neurons of the experts that can be listened to."""
    found: dict[str, Neurons] = {}
    left_out: list[LeftOut] = []
    for name, module in model.named_modules():
        if not is_experts(module):
            continue
        second = expert_matrices(module)[1]
        stack, activation = f"{name}.{second}" if name else second, experts_activation(module)
        weights = [each for each in coverage.weights.values() if each.parameter_name == stack]
        number, width = len(getattr(module, second)), _width(module)
        if activation is None:
            left_out.append(LeftOut(name, number * width, OWN_GATE))
            continue
        found |= {weight.name: Neurons(activation, weight) for weight in weights}
        missing = number - len(weights)
        if missing:
            names = [f"{stack}.{expert}" for expert in range(number)]
            lost = next(each for each in names if each not in coverage.weights)
            left_out.append(LeftOut(name, missing * width, _left_alone(coverage, lost)))
    return found, left_out


def _width(experts: nn.Module) -> int:
    """Return how many neurons each expert has."""
    second = expert_matrices(experts)[1]
    return Weight(second, experts, second, 0, bool(experts.is_transposed)).in_features


def _left_alone(coverage: Coverage, projection: str) -> str:
    """Say why an output projection does not take part."""
    names = projection, projection.rpartition(".")[0]
    reason = next((each.reason for each in coverage.left_alone if each.name in names), None)
    return f"its output projection {projection} is left alone" + (f" ({reason})" if reason else "")
