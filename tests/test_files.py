"""Files are complete or absent."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from mathneuro.errors import InputError
from mathneuro.files import (
    write_file,
    write_json,
    write_json_lines,
    write_text,
)
from mathneuro.tensor_files import write_tensors


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    """All of them."""
    write_text(tmp_path / "a" / "b" / "c.txt", "ä")
    assert (tmp_path / "a" / "b" / "c.txt").read_text(encoding="utf-8") == "ä"


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing else, not even half a file."""
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail(unfinished: Path) -> None:
        unfinished.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    """Also when it is replaced."""
    for text in ("old", "new"):
        write_text(tmp_path / "file.txt", text)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("name", ["file/in/a/file.txt", "folder"])
def test_what_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    """As a mistake in the folder that was given."""
    (tmp_path / "file").write_text("a")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"^folder: .* cannot be written \(.+\); give a folder"):
        write_text(tmp_path / name, "a")


@contextmanager
def little_room() -> Iterator[None]:
    """Let no file grow beyond a thousand bytes in this block, the test's own output included."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_does_not_fit_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    """Whichever library writes it."""
    with little_room(), pytest.raises(InputError, match=r"^folder: .* cannot be written"):
        write_tensors(tmp_path / "file.safetensors", {"a": torch.ones(9999)}, {})
    with little_room(), pytest.raises(InputError, match=r"^folder: .* cannot be written"):
        write_text(tmp_path / "file.txt", "a" * 9999)
    assert list(tmp_path.iterdir()) == []


def test_json_keeps_numbers_of_numpy_and_torch_as_numbers(tmp_path: Path) -> None:
    """And letters of any language as they are; the rest becomes its text."""
    value = {
        "int": np.int64(3),
        "float": np.float32(0.5),
        "array": np.array([1, 2]),
        "tensor": torch.tensor(7),
        "path": Path("a/b"),
        "letter": "ä",
    }
    write_json(tmp_path / "file.json", value)
    text = (tmp_path / "file.json").read_text(encoding="utf-8")
    assert json.loads(text) == {
        "int": 3,
        "float": 0.5,
        "array": [1, 2],
        "tensor": 7,
        "path": "a/b",
        "letter": "ä",
    }
    assert "ä" in text


def test_json_lines_are_one_value_a_line(tmp_path: Path) -> None:
    """Whatever lines a value holds."""
    write_json_lines(tmp_path / "file.jsonl", ({"a": f"x\n{i}"} for i in range(2)))
    lines = (tmp_path / "file.jsonl").read_text().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [{"a": "x\n0"}, {"a": "x\n1"}]
    assert lines[-1] == ""


def test_text_that_utf_8_does_not_know_is_escaped(tmp_path: Path) -> None:
    """And comes back as it was."""
    write_json_lines(tmp_path / "rows.jsonl", [{"value": "\ud800 \u00e9"}])
    text = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    assert json.loads(text) == {"value": "\ud800 \u00e9"}
