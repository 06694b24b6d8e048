"""Folders are complete or absent."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mathneuro.errors import InputError
from mathneuro.folders import replace_folder


def fill(folder: Path, text: str) -> None:
    """Write one file."""
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text(text)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """Nothing of the old one is left, nor anything beside it."""
    target = tmp_path / "a" / "b"
    replace_folder(target, lambda folder: fill(folder, "old"), beside=tmp_path)
    (target / "more").write_text("old")
    replace_folder(target, lambda folder: fill(folder, "new"), beside=tmp_path)
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [Path("a/b/deep/file")]
    assert (target / "deep" / "file").read_text() == "new"


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing else."""
    target = tmp_path / "a"
    replace_folder(target, lambda folder: fill(folder, "old"), beside=tmp_path)

    def fail(folder: Path) -> None:
        fill(folder, "half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_folder(target, fail, beside=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (target / "deep" / "file").read_text() == "old"


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    """As a mistake in the folder that was given."""
    (tmp_path / "file").write_text("a")
    with pytest.raises(InputError, match=r"^folder: .* cannot be written \(.+\); give a folder"):
        replace_folder(tmp_path / "file" / "a", lambda folder: fill(folder, "b"), beside=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_safetensors_cannot_write_is_told(tmp_path: Path) -> None:
    """It has an error of its own, and nothing is left."""

    def write(folder: Path) -> None:
        save_file({"a": torch.zeros(3)}, folder / "missing" / "model")

    with pytest.raises(InputError, match=r"^output: .* cannot be written \(.+\); give a folder"):
        replace_folder(tmp_path / "a", write, beside=tmp_path, option="output")
    assert not list(tmp_path.iterdir())


def test_what_was_there_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the file system refuses."""
    target = tmp_path / "a"
    replace_folder(target, lambda folder: fill(folder, "old"), beside=tmp_path)
    rename = Path.rename

    def refuse(path: Path, other: Path) -> Path:
        if path.name.endswith(".unfinished"):
            raise OSError("no")
        return rename(path, other)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(InputError, match=r"folder: .* cannot be written \(no\)"):
        replace_folder(target, lambda folder: fill(folder, "new"), beside=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (target / "deep" / "file").read_text() == "old"
