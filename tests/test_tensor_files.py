"""Tensor files hold what was written, or are refused."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from mathneuro.errors import InputError
from mathneuro.tensor_files import read_metadata, read_tensors, write_tensors

KIND = "mathneuro-test-1"
TENSORS = {"a": torch.arange(9), "b\u00e4": torch.ones(2, 2, dtype=torch.bfloat16)}
METADATA = {"format": KIND, "texts": [1, 2.5e-7], "name": '\u00e9 "x"', "data": {"b": 1, "a": None}}
WRITE = """
import sys
from pathlib import Path
from tests.test_tensor_files import METADATA, TENSORS, write_tensors
write_tensors(Path(sys.argv[1]), TENSORS, METADATA)
"""


def test_tensors_come_back_as_they_were(tmp_path: Path) -> None:
    """Views and tensors that share memory too, with the metadata."""
    whole = torch.arange(6.0).view(2, 3)
    tensors = {"whole": whole, "turned": whole.T, "part": whole[:, 1], "half": whole.half()}
    metadata = {"format": KIND, "texts": {"math": 3}, "none": None}
    write_tensors(tmp_path / "file.safetensors", tensors, metadata)
    found, described = read_tensors(tmp_path / "file.safetensors", KIND, ("texts", "none"), "edit")
    assert described == metadata
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """As one that does not exist."""
    with pytest.raises(InputError, match="does not exist"):
        read_tensors(tmp_path / "file.safetensors", KIND, (), "edit")


@pytest.mark.parametrize("kept", [0, 4, 40, -1])
def test_a_damaged_file_is_told(tmp_path: Path, kept: int) -> None:
    """As when a copy ended early."""
    path = tmp_path / "file.safetensors"
    write_tensors(path, {"a": torch.ones(9)}, {"format": KIND})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match="is damaged or no safetensors file"):
        read_tensors(path, KIND, (), "edit")


@pytest.mark.parametrize("metadata", [{"format": "pt"}, {"format": '"mathneuro-test-0"'}, None])
def test_a_file_of_another_kind_is_told(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    """Such as the weights of a model, whose metadata is no JSON."""
    path = tmp_path / "file.safetensors"
    save_file({"a": torch.ones(1)}, path, metadata=metadata)
    with pytest.raises(InputError, match=rf"states format .*, but a whole file of format '{KIND}'"):
        read_tensors(path, KIND, (), "edit")


def test_a_file_that_lacks_a_field_is_told(tmp_path: Path) -> None:
    """By the field."""
    path = tmp_path / "file.safetensors"
    write_tensors(path, {}, {"format": KIND, "texts": 1})
    with pytest.raises(InputError, match="does not state its model"):
        read_tensors(path, KIND, ("texts", "model"), "edit")


def test_equal_content_is_equal_to_the_byte(tmp_path: Path) -> None:
    """Whatever the order of the tensors, and whichever process writes it."""
    found = set()
    for number in range(8):
        path = tmp_path / f"{number}.safetensors"
        tensors = dict(reversed(TENSORS.items())) if number % 2 else TENSORS
        write_tensors(path, tensors, METADATA)
        found.add(hashlib.sha256(path.read_bytes()).hexdigest())
    subprocess.run([sys.executable, "-c", WRITE, str(path)], check=True)
    assert found == {hashlib.sha256(path.read_bytes()).hexdigest()}


def test_one_bit_is_enough_to_be_refused(tmp_path: Path) -> None:
    """Each of all bits: of tensors, of their names, of what is stated, of the checksums."""
    path = tmp_path / "file.safetensors"
    write_tensors(path, TENSORS, METADATA)
    found, metadata = read_tensors(path, KIND, ("texts", "name"), "edit")
    assert torch.equal(found["b\u00e4"], TENSORS["b\u00e4"])
    assert metadata == METADATA == read_metadata(path, KIND, ("texts", "name"), "edit")
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"is damaged|states format"):
            read_tensors(path, KIND, ("texts", "name"), "edit")


def test_a_checksum_is_needed(tmp_path: Path) -> None:
    """Of what is stated and of the tensors, in the one entry that there is."""
    path = tmp_path / "file.safetensors"
    write_tensors(path, TENSORS, METADATA)
    tensors = load_file(path)
    with safe_open(path, framework="pt") as opened:
        stated = opened.metadata()["mathneuro"]
    for metadata in (
        {"mathneuro": json.dumps(METADATA)},
        {"mathneuro": stated.replace('"tensors_sha256"', '"tensors_sha257"')},
        {"mathneuro": stated.replace(": ", ":")},
        {"mathneuro": stated, "more": "x"},
        {name: json.dumps(value) for name, value in METADATA.items()},
    ):
        save_file(tensors, path, metadata=metadata)
        with pytest.raises(InputError, match=r"is damaged \(it is not what its checksum"):
            read_tensors(path, KIND, ("texts",), "edit")
    for nonsense in ("[" * 100_000, "[1]", "9" * 5000, ""):
        save_file(tensors, path, metadata={"mathneuro": nonsense})
        with pytest.raises(InputError, match=r"states format None, but a whole file"):
            read_tensors(path, KIND, ("texts",), "edit")
    save_file(tensors, path, metadata={"mathneuro": stated})
    assert read_tensors(path, KIND, ("texts",), "edit")[1] == METADATA
