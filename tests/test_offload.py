"""Models that are offloaded with Accelerate: everything is as it is for the plain model."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from accelerate import disk_offload, dispatch_model
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from mathneuro.decoder import input_device
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.layers import find_linear_weights
from mathneuro.loading import weight_hash
from mathneuro.norms import InputNorms
from mathneuro.selection import Selection
from mathneuro.storage import numbers, run_device, storage_devices
from mathneuro.totals import LARGEST, _groups
from tests.alike import any_selection, check_found, logits
from tests.families import FAMILIES
from tests.offloading import DEVICE, offload_all, offload_blocks

Offload = Callable[[PreTrainedModel], PreTrainedModel]
NAMES = ("Llama, tied head", "Llama, own head", "GPT-2", "GPT-OSS", "Qwen3-MoE")

each_family = pytest.mark.parametrize("name", NAMES)
each_way = pytest.mark.parametrize("offload", [offload_all, offload_blocks])


@each_family
@each_way
def test_what_is_found_is_bit_equal(name: str, offload: Offload) -> None:
    """Hash, coverage and its reasons, importance, and what is selected."""
    plain, model = FAMILIES[name].build(), offload(FAMILIES[name].build())
    assert any(each.is_meta for each in model.parameters())
    assert storage_devices(model) == ["cpu"]
    assert input_device(model) == run_device(model) == DEVICE
    assert weight_hash(model) == weight_hash(plain)
    check_found(plain, model, find_linear_weights(model), name != "GPT-OSS")


@each_family
@each_way
def test_an_edit_shows_and_is_undone(name: str, offload: Offload) -> None:
    """In the hash and in the next forward pass; bit for bit, also after an exception."""
    plain, model = FAMILIES[name].build(), offload(FAMILIES[name].build())
    edit, before, found = Edit(any_selection(plain), 1.5), logits(model), weight_hash(model)
    assert any_selection(model).positions.keys() == edit.selection.positions.keys()
    with edit.applied(plain):
        expected, expected_hash = logits(plain), weight_hash(plain)
    with edit.applied(model):
        assert torch.equal(logits(model), expected)
        assert weight_hash(model) == expected_hash != found
    assert (weight_hash(model), torch.equal(logits(model), before)) == (found, True)
    with pytest.raises(RuntimeError, match="stop"), edit.applied(model):
        raise RuntimeError("stop")
    assert (weight_hash(model), torch.equal(logits(model), before)) == (found, True)


@each_family
def test_an_edited_model_is_saved_as_such(name: str, tmp_path: Path) -> None:
    """Its files hold what those of the plain model hold."""
    plain, model = FAMILIES[name].build(), offload_blocks(FAMILIES[name].build())
    edit = Edit(any_selection(plain), 0.0)
    with edit.applied(plain), edit.applied(model):
        expected = logits(plain)
        model.save_pretrained(tmp_path)
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path)), expected)


def test_a_copy_on_a_device_is_tied_all_the_same() -> None:
    """Of a weight that waits and is tied to one that does not: no edit tears them apart."""
    model = FAMILIES["Llama, tied head"].build()
    dispatch_model(model, {"model": "cpu", "lm_head": DEVICE}, main_device=DEVICE)
    before, name = logits(model), "model.embed_tokens.weight"
    # As on a device with memory of its own, which the CPU is not.
    (copies,) = model.lm_head._hf_hook.tied_params_map.values()
    copies[DEVICE] = nn.Parameter(copies[DEVICE].detach().clone(), requires_grad=False)
    model.lm_head.weight = copies[DEVICE]
    assert "tied to the embedding" in find_linear_weights(model).reasons()
    edit = Edit(Selection({name: torch.arange(80, 200)}, {name: (29, 16)}), 0.0)
    with pytest.raises(InputError, match="which is tied to another weight"):
        edit.apply(model)
    assert torch.equal(logits(model), before)


def test_weights_on_the_disk_are_refused(tmp_path: Path) -> None:
    """An edit of a copy that was read for the moment would show nowhere."""
    plain = FAMILIES["Llama, own head"].build()
    expected = weight_hash(plain)
    model = disk_offload(plain, tmp_path, DEVICE)
    assert weight_hash(model) == expected
    for refused in (find_linear_weights, Edit(Selection({}, {}), 0.0).apply):
        with pytest.raises(InputError, match="offloaded to the disk, but an edit"):
            refused(model)


def test_weights_that_are_nowhere_are_refused() -> None:
    """In a sentence."""
    with pytest.raises(InputError, match="are not in memory"):
        numbers(nn.Linear(2, 2, device="meta"), "weight")


def test_inputs_on_several_devices_are_measured_where_they_are() -> None:
    """Padding stands on each of them, and is moved there once."""
    first, second = nn.Linear(3, 4), nn.Linear(3, 4, device="meta")
    norms = InputNorms(find_linear_weights(nn.ModuleList([first, second])).weights)
    inputs, mask = torch.rand(2, 5, 3), torch.tensor([[1] * 5, [1, 1, 0, 0, 0]])
    # Numbers on the meta device cannot be added up: one device less suffices to see where all is.
    with suppress(RuntimeError), norms.recording(), norms.batch(mask, ["a", "b"]):
        first(inputs)
        second(inputs.to("meta"))
        batch = norms._batch
    assert batch is not None
    assert batch.padding is not None
    devices = {name: each.device.type for name, each in batch.norms.items()}
    assert devices == {"0.weight": "cpu", "1.weight": "meta"}
    places = {device.type: each.texts.device.type for device, each in batch.padding.items()}
    assert places == {"cpu": "cpu", "meta": "meta"}


def test_vectors_are_joined_on_their_own_device() -> None:
    """In as few parts as if there were one device."""
    here, there = torch.device("cpu"), torch.device("meta")
    vectors = {"a": (3, here), "b": (2, there), "c": (1, here), "d": (LARGEST, there)}
    assert _groups(vectors) == [["a", "c"], ["b"], ["d"]]
    assert _groups(dict.fromkeys("abc", (1, here))) == [["a", "b", "c"]]
