"""Edit and importance files that are damaged, or made by somebody who means harm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.selection import Selection
from mathneuro.tensor_files import write_tensors

GAPS = torch.tensor([1, 2], dtype=torch.uint8)
EDIT: dict[str, Any] = {
    "format": "mathneuro-edit-3",
    "factor": 0.0,
    "factors": {},
    "shapes": {"weight": [2, 3]},
    "transposed": [],
    "origin": {"method": "mathneuro", "proportion": 0.5},
    "model": {"source": "a", "weight_hash": "b"},
    "data": {"math": {"text_hashes": ["c"]}},
}
IMPORTANCE: dict[str, Any] = {
    "format": "mathneuro-importance-2",
    "texts": {"math": 1},
    "model": {},
    "data": {},
    "tokens": {},
}


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """Return the one sentence that a file is refused with."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    assert str(path) in message
    return message


def test_the_whole_file_is_read(tmp_path: Path) -> None:
    """What the others damage is right by itself."""
    write_tensors(tmp_path / "edit", {"weight": GAPS}, EDIT)
    assert Edit.load(tmp_path / "edit").selection.positions["weight"].tolist() == [0, 2]
    write_tensors(tmp_path / "importance", {"math/weight": torch.ones(3).double()}, IMPORTANCE)
    assert Importance.load(tmp_path / "importance").texts == {"math": 1}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"factor": float("nan")}, "no finite number"),
        ({"factor": 10**400}, "no finite number"),
        ({"factor": True}, "no finite number"),
        ({"factor": "9" * 5000}, "no finite number"),
        ({"factors": {"weight": "x"}}, "no finite number"),
        ({"factors": {"other": 1.0}}, "of which it holds no positions"),
        ({"factors": [1]}, "as factors"),
        ({"shapes": {}}, "positions for weight, but no shape"),
        ({"shapes": {"weight": [2, 3], "other": [1, 1]}}, "shape of other, but no positions"),
        ({"shapes": {"weight": [2]}}, "as the shape of weight"),
        ({"shapes": {"weight": [-2, -3]}}, "as the shape of weight"),
        ({"shapes": {"weight": [True, 3]}}, "as the shape of weight"),
        ({"shapes": {"weight": [2.0, 3.0]}}, "as the shape of weight"),
        ({"shapes": {"weight": [2**62, 2**62]}}, "as the shape of weight"),
        ({"shapes": {"weight": [10**4000, 1]}}, "as the shape of weight"),
        ({"shapes": {"weight": [1, 2]}}, "beyond its 2 parameters"),
        ({"shapes": 5}, "as shapes"),
        ({"transposed": ["other"]}, "of which it holds no positions"),
        ({"transposed": {"a": 1}}, "of which it holds no positions"),
        ({"transposed": [["weight"]]}, "of which it holds no positions"),
        ({"origin": {"neurons": "many"}}, "as origin.neurons"),
        ({"origin": {"calibration": [1]}}, "as origin.calibration"),
        ({"origin": None}, "as origin"),
        ({"model": {"weight_hash": 3}}, "as model.weight_hash"),
        ({"model": []}, "as model"),
        ({"data": {"math": 1}}, "as data.math"),
        ({"data": {"math": {"text_hashes": [[]]}}}, "as data.math.text_hashes"),
        ({"data": "[" * 100_000}, "as data"),
        ({"format": "mathneuro-edit-2"}, "a whole file of format 'mathneuro-edit-3'"),
        ({"format": ["mathneuro-edit-3"]}, "a whole file of format 'mathneuro-edit-3'"),
    ],
)
def test_edits_that_state_nonsense(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    """Each in one sentence that names the field."""
    write_tensors(tmp_path / "edit", {"weight": GAPS}, EDIT | change)
    assert told in refusal(Edit.load, tmp_path / "edit")


@pytest.mark.parametrize(
    ("encoded", "told"),
    [
        (torch.tensor([7], dtype=torch.uint8), "beyond its 6 parameters"),
        (torch.tensor([1, 0], dtype=torch.uint8), "one of them is 0"),
        (torch.tensor([1, 255], dtype=torch.uint8), "does not end"),
        (torch.tensor([1, 2], dtype=torch.int64), "they are torch.int64"),
        (torch.ones(13, dtype=torch.uint8), "13 gaps for weight"),
        (torch.tensor([[1]], dtype=torch.uint8), "of shape [1, 1]"),
    ],
)
def test_positions_that_no_weight_has(tmp_path: Path, encoded: Tensor, told: str) -> None:
    """Outside of the weight, twice the same, or no positions at all."""
    write_tensors(tmp_path / "edit", {"weight": encoded}, EDIT)
    assert told in refusal(Edit.load, tmp_path / "edit")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"texts": {"math": "1"}}, "as texts.'math'"),
        ({"texts": []}, "as texts"),
        ({"tokens": {"math": -1}}, "as tokens.'math'"),
        ({"model": {"source": {}}}, "as model.source"),
        ({"data": {"math": []}}, "as data.math"),
    ],
)
def test_importance_that_states_nonsense(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    """Likewise."""
    write_tensors(tmp_path / "file", {"math/weight": torch.ones(3).double()}, IMPORTANCE | change)
    assert told in refusal(Importance.load, tmp_path / "file")


def test_files_that_end_early_or_claim_too_much(tmp_path: Path) -> None:
    """At every length, and with headers that promise what is not there."""
    edit = Edit(Selection({"weight": torch.arange(6)}, {"weight": (2, 3)}), 0.0)
    edit.save(path := tmp_path / "edit")
    whole = path.read_bytes()
    for length in (0, 4, 8, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "damaged" in refusal(Edit.load, path)
    huge = b'{"weight":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}}'
    for header in (huge, b'{"weight":{"dtype":"U8","shape":[2],"data_offsets":[5,3]}}'):
        path.write_bytes(len(header).to_bytes(8, "little") + header + b"xx")
        assert "damaged" in refusal(Edit.load, path)
    path.write_bytes((2**63).to_bytes(8, "little") + b"{}")
    assert "damaged" in refusal(Edit.load, path)
