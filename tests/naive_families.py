"""What every weight of a family reads, token by token, straight from the model's own parts.

Nothing here knows of the code under test: linear layers are asked for their input, and what experts
read is worked out anew from what their router decided.
"""

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel


def scores(model: PreTrainedModel, texts: list[list[int]], names: list[str]) -> dict[str, Tensor]:
    """Weight-sized scores ``sum_s |W_ij| * ||X_s[:, j]||`` as ``[out, in]``, text by text."""
    totals: dict[str, Tensor] = {}
    for tokens in texts:
        seen = _run(model, tokens, {name.rpartition(".")[0] for name in names} | _stems(names))
        for name in names:
            rows = list(_rows(model, name, seen))
            weight = matrix(model, name)
            squares = torch.zeros(weight.shape[1], dtype=torch.float64)
            for row in rows:
                squares += row.double() ** 2
            scored = weight.double().abs() * squares.sqrt()
            totals[name] = totals[name] + scored if name in totals else scored
    return totals


def matrix(model: PreTrainedModel, name: str) -> Tensor:
    """A weight as ``[out, in]``."""
    stem, _, last = name.rpartition(".")
    if last.isdecimal():
        weight = model.get_parameter(stem).detach()[int(last)]
        return weight.t() if _stored_transposed(model) else weight
    transposed = type(model.get_submodule(stem)).__name__ == "Conv1D"
    weight = model.get_parameter(name).detach()
    return weight.t() if transposed else weight


def _stored_transposed(model: PreTrainedModel) -> bool:
    return model.config.model_type == "gpt_oss"


def _stems(names: Iterable[str]) -> set[str]:
    """Names of the modules that hold experts."""
    return {name.rsplit(".", 2)[0] for name in names if name.rpartition(".")[2].isdecimal()}


def _run(model: PreTrainedModel, tokens: list[int], modules: set[str]) -> dict[str, list[Tensor]]:
    """Run one text and keep what modules are given."""
    seen: dict[str, list[Tensor]] = {}
    handles = [
        module.register_forward_pre_hook(partial(_keep, seen, name))
        for name, module in model.named_modules()
        if name in modules
    ]
    with torch.no_grad():
        model(input_ids=torch.tensor([tokens]))
    for handle in handles:
        handle.remove()
    return seen


def _keep(
    seen: dict[str, list[Tensor]], name: str, _module: nn.Module, given: tuple[Tensor, ...]
) -> None:
    seen[name] = [each.detach().clone() for each in given]


def _rows(model: PreTrainedModel, name: str, seen: dict[str, list[Tensor]]) -> Iterable[Tensor]:
    """What a weight is multiplied with, one row a token."""
    stem, _, last = name.rpartition(".")
    if not last.isdecimal():
        inputs = seen[stem][0]
        yield from inputs.reshape(-1, inputs.shape[-1])
        return
    container, _, attribute = stem.rpartition(".")
    states, chosen, _ = seen[container]
    for token, experts in zip(states, chosen.tolist(), strict=True):
        if int(last) in experts:
            yield token if attribute != "down_proj" else _inner(model, container, int(last), token)


def _inner(model: PreTrainedModel, container: str, expert: int, token: Tensor) -> Tensor:
    """What the second matrix of an expert reads of one token."""
    first = matrix(model, f"{container}.gate_up_proj.{expert}") @ token
    if model.config.model_type == "gpt_oss":
        first = first + model.get_parameter(f"{container}.gate_up_proj_bias").detach()[expert]
        gate, up = first[0::2].clamp(max=7.0), first[1::2].clamp(-7.0, 7.0)
        return (up + 1) * gate * torch.sigmoid(1.702 * gate)
    half = len(first) // 2
    return functional.silu(first[:half]) * first[half:]
