"""LAPE written a second time, slowly and straight from its definition (METHOD.md)."""

import math
from functools import partial

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from tests import naive_families

NAMES = ("act", "act_fn", "activation", "activation_fn", "gelu_impl")
"""What families call their activation functions."""


def activation_before(model: PreTrainedModel, projection: str) -> tuple[str, nn.Module]:
    """Name the activation function beside an output projection, by what families call it."""
    parent = projection.rsplit(".", 2)[0]
    parts = dict(model.get_submodule(parent).named_children())
    name = next(name for name in NAMES if name in parts)
    return f"{parent}.{name}", parts[name]


def counts(
    model: PreTrainedModel, texts: list[list[int]], projections: list[str]
) -> dict[str, list[int]]:
    """At how many tokens each neuron is above 0, text by text and token by token."""
    totals: dict[str, list[int]] = {}
    for tokens in texts:
        given: dict[str, Tensor] = {}
        containers: dict[str, list[Tensor]] = {}
        handles = []
        for projection in projections:
            name, activation = activation_before(model, projection)
            if projection.rpartition(".")[2].isdecimal():
                container = name.rpartition(".")[0]
                experts = model.get_submodule(container)
                hook = partial(_keep_inputs, containers, container)
                handles.append(experts.register_forward_pre_hook(hook))
            else:
                hook = partial(_keep_output, given, projection)
                handles.append(activation.register_forward_hook(hook))
        with torch.no_grad():
            model(input_ids=torch.tensor([tokens]))
        for handle in handles:
            handle.remove()
        for projection in projections:
            for row in _rows(model, projection, given, containers):
                values = row.tolist()
                total = totals.setdefault(projection, [0] * len(values))
                for neuron, value in enumerate(values):
                    total[neuron] += value > 0
    return totals


def _keep_output(
    given: dict[str, Tensor], name: str, _module: nn.Module, _inputs: object, output: Tensor
) -> None:
    given[name] = output.reshape(-1, output.shape[-1])


def _keep_inputs(
    containers: dict[str, list[Tensor]], name: str, _module: nn.Module, given: tuple[Tensor, ...]
) -> None:
    containers[name] = list(given)


def _rows(
    model: PreTrainedModel,
    projection: str,
    given: dict[str, Tensor],
    containers: dict[str, list[Tensor]],
) -> list[Tensor]:
    """What the activation function gives, one row a token; of an expert, nothing elsewhere."""
    if projection in given:
        return list(given[projection])
    stem, _, expert = projection.rpartition(".")
    container = stem.rpartition(".")[0]
    states, chosen, _ = containers[container]
    first = naive_families.matrix(model, f"{container}.gate_up_proj.{expert}")
    half = len(first) // 2
    activation = model.get_submodule(f"{container}.act_fn")
    rows = []
    for token, experts in zip(states, chosen.tolist(), strict=True):
        reached = int(expert) in experts
        rows.append(activation((first @ token)[:half]) if reached else torch.zeros(half))
    return rows


def percentile(values: list[float], percent: float) -> float:
    """Interpolate linearly between the two neighbours in order."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def math_neurons(probabilities: list[list[float]], proportion: float) -> list[int]:
    """Which neurons are kept and belong to the first set.

    Args:
        probabilities: For each neuron one probability a set.
        proportion: Share of all neurons that is kept.
    """
    threshold = percentile([each for row in probabilities for each in row], 95)
    entropies = {}
    for neuron, row in enumerate(probabilities):
        if max(row) > threshold:
            shares = [each / sum(row) for each in row]
            entropies[neuron] = -sum(each * math.log(each) for each in shares if each > 0)
    order = sorted(entropies, key=lambda neuron: (round(entropies[neuron], 12), neuron))
    kept = order[: int(len(probabilities) * proportion)]
    return sorted(neuron for neuron in kept if probabilities[neuron][0] > threshold)
