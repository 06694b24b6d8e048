"""Offloading with Accelerate on a machine without another device: the CPU plays both parts."""

from typing import Any

import torch
from accelerate import cpu_offload, dispatch_model
from transformers import PreTrainedModel

DEVICE = torch.device("cpu")
"""What modules run on; Accelerate takes the string cpu for the place where weights wait."""


def offload_all(model: PreTrainedModel) -> PreTrainedModel:
    """Offload every weight; outside of forward passes all are on the meta device."""
    offloaded: PreTrainedModel = cpu_offload(model, DEVICE)
    return offloaded


def offload_blocks(model: PreTrainedModel) -> PreTrainedModel:
    """Offload all weights but embeddings, head and the first block."""
    offloaded: PreTrainedModel = dispatch_model(model, block_map(model), main_device=DEVICE)
    return offloaded


def block_map(model: PreTrainedModel) -> dict[str, Any]:
    """Return a device map that lets blocks wait, but for the first, and norms."""
    places: dict[str, Any] = {}
    for name, module in model.named_modules():
        if next(module.children(), None) is None or type(module).__name__ in _blocks(model):
            waits = "Norm" in type(module).__name__ or type(module).__name__ in _blocks(model)
            if not any(name.startswith(f"{place}.") for place in places):
                places[name] = "cpu" if waits and ".0" not in name else DEVICE
    return places


def _blocks(model: PreTrainedModel) -> set[str]:
    return set(model._no_split_modules or ())
