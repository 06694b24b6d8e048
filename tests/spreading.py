"""What a model gives that is spread over two processes, against the same model in one.

Started by a test in both processes, which end with status 0 if all is equal, bit for bit.
"""

import json
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel
from typing_extensions import override

from callbacks.run import running
from mathneuro.edit import Edit
from mathneuro.layers import find_linear_weights
from mathneuro.loading import weight_hash
from mathneuro.spread import spread
from tests.alike import any_selection, check_found, logits
from tests.families import FAMILIES

NAMES = ("Llama, tied head", "GPT-2", "OPT", "GPT-OSS", "Qwen3-MoE", "Granite 4 hybrid")


class Watch(Callback):
    """Writes down how many numbers of blocks this process holds, before an edit and with it.

    Args:
        folder: Where to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, int] = {}

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look, after the forward passes of an evaluation."""
        run = running(trainer, pl_module)
        self._seen["edited" if run.module.intervening else "before"] = held(run.module.model)
        spread = (each for each in run.module.model.parameters() if isinstance(each, DTensor))
        self._seen["total"] = sum(each.numel() for each in spread)
        path = self.folder / f"watched{trainer.global_rank}.json"
        path.write_text(json.dumps(self._seen))


def held(model: PreTrainedModel) -> int:
    """Count the numbers of blocks that this process holds."""
    tensors = [each for each in model.parameters() if isinstance(each, DTensor)]
    return sum(each.to_local().numel() for each in tensors)


def rows(model: PreTrainedModel) -> dict[str, Tensor]:
    """Copy what this process holds."""
    return {
        name: (each.to_local() if isinstance(each, DTensor) else each).clone()
        for name, each in model.named_parameters()
    }


def check(name: str) -> None:
    """Compare all that is found and changed."""
    plain, model = (FAMILIES[name].build() for _ in range(2))
    coverage = find_linear_weights(model)
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("data_parallel", "tensor_parallel"))
    spread(model, mesh)
    total = sum(each.numel() for each in model.parameters() if isinstance(each, DTensor))
    assert total > 0
    assert abs(held(model) - total / 2) < total / 10, (held(model), total)
    found = weight_hash(model)
    assert found == weight_hash(plain)
    assert list(find_linear_weights(model).weights) == list(coverage.weights)
    check_found(plain, model, coverage, name != "GPT-OSS")
    edit, before, saved = Edit(any_selection(plain), 1.5), logits(model), rows(model)
    assert torch.equal(before, logits(plain))
    with edit.applied(plain), edit.applied(model):
        assert weight_hash(model) == weight_hash(plain) != found
        assert torch.equal(logits(model), logits(plain))
        assert not torch.equal(logits(model), before)
        assert abs(held(model) - total / 2) < total / 10
    assert weight_hash(model) == found
    assert torch.equal(logits(model), before)
    assert all(torch.equal(each, saved[key]) for key, each in rows(model).items())

    handle = next(iter(coverage.weights.values())).module.register_forward_hook(stop)
    with pytest.raises(RuntimeError, match="in the middle of a block"), edit.applied(model):
        logits(model)
    handle.remove()
    assert weight_hash(model) == found
    assert torch.equal(logits(model), before)
    assert all(torch.equal(each, saved[key]) for key, each in rows(model).items())


def stop(*_: object) -> None:
    """End a forward pass."""
    raise RuntimeError("in the middle of a block")


def main() -> None:
    """Compare every kind of model."""
    distributed.init_process_group("gloo")
    for name in NAMES:
        check(name)
    distributed.destroy_process_group()
