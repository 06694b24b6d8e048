"""The method written a second time, slowly and straight from its definition (METHOD.md)."""

from functools import partial

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel


def importance(
    model: PreTrainedModel, texts: list[list[int]], names: list[str]
) -> dict[str, Tensor]:
    """Weight-sized scores ``sum_s |W_ij| * ||X_s[:, j]||``, one text a forward pass."""
    linears: dict[str, nn.Module] = {
        name: model.get_submodule(name.removesuffix(".weight")) for name in names
    }
    totals = {
        name: torch.zeros_like(model.get_parameter(name), dtype=torch.float64) for name in names
    }
    for tokens in texts:
        seen: dict[str, Tensor] = {}
        handles = [
            module.register_forward_hook(partial(_keep, seen, name))
            for name, module in linears.items()
        ]
        with torch.no_grad():
            model(input_ids=torch.tensor([tokens]))
        for handle in handles:
            handle.remove()
        for name in names:
            weight = model.get_parameter(name).detach()
            inputs = seen[name].reshape(-1, weight.shape[1]).double()
            for column in range(weight.shape[1]):
                norm = sum(float(value) ** 2 for value in inputs[:, column]) ** 0.5
                totals[name][:, column] += weight[:, column].double().abs() * norm
    return totals


def _keep(
    seen: dict[str, Tensor], name: str, _module: nn.Module, inputs: tuple[Tensor], _output: Tensor
) -> None:
    seen[name] = inputs[0]


def top(scores: Tensor, count: int) -> set[int]:
    """Positions of the ``count`` highest scores; of equal ones the lower position wins."""
    values = scores.flatten().tolist()
    order = sorted(range(len(values)), key=lambda position: (-values[position], position))
    return set(order[:count])


def selected(
    math: Tensor, calibration: Tensor, proportion: float, method: str = "mathneuro"
) -> set[int]:
    """Positions that a method selects in one weight, from its weight-sized scores."""
    count = int(math.numel() * proportion)
    chosen = top(math, count)
    return chosen - top(calibration, count) if method == "mathneuro" else chosen
