"""Held-out texts: identification never sees them, wherever they come from."""

from pathlib import Path

import datasets
import pytest

from mathneuro.data import TextSet
from mathneuro.errors import InputError
from tests.data.tiny import (
    make_data,
    set_up,
    texts_of,
    words,
    write_csv,
)


def test_no_held_out_text_is_drawn_not_even_as_a_copy(tmp_path: Path) -> None:
    """Every text is there twice."""
    data = make_data(write_csv(tmp_path / "twice.csv", words(12) * 2), num_samples=500)
    drawn, held_out = texts_of(data)
    assert len(held_out) == 5
    assert len(drawn) == 7
    assert not drawn & held_out


def test_no_text_that_a_set_holds_out_is_drawn_from_another(math_file: str) -> None:
    """Perplexity is measured on texts that identification never saw, whatever the set."""
    data = make_data(math_file, math_file, num_samples=None)
    held_out = {text.text for drawn in data.drawn.values() for text in drawn.held_out}
    drawn = {text.text for each in data.drawn.values() for text in each.texts}
    assert len(held_out) > 5
    assert drawn
    assert not drawn & held_out


def test_held_out_texts_can_have_a_file_of_their_own(math_file: str, tmp_path: Path) -> None:
    """What is in both files is not drawn."""
    path = write_csv(tmp_path / "held.csv", ["", "c c c", *words(3)])
    data = make_data(TextSet(math_file, held_out_path=path), num_samples=500, held_out=50)
    drawn, held_out = texts_of(data)
    assert held_out == {"c c c", *words(3)}
    assert drawn == set(words(30)[3:])
    assert data.drawn["math"].empty == 1


def test_held_out_texts_can_have_a_split_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same data set."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "set").mkdir()
    write_csv(tmp_path / "set" / "train.csv", words(10))
    write_csv(tmp_path / "set" / "test.csv", ["c c", "d d"])
    data = make_data(TextSet(str(tmp_path / "set"), held_out_split="test"), num_samples=None)
    assert texts_of(data) == (set(words(10)), {"c c", "d d"})


def test_a_held_out_file_must_leave_texts_to_draw_from(math_file: str) -> None:
    """The same file leaves none."""
    data = make_data(TextSet(math_file, held_out_path=math_file), held_out=30)
    with pytest.raises(InputError, match=r"^data\.math: each of its texts is held out"):
        _ = data.drawn


def test_what_is_wrong_with_a_held_out_file_is_told_by_its_field(
    math_file: str, tmp_path: Path
) -> None:
    """Not by that of the other file."""
    path = write_csv(tmp_path / "held.csv", ["", " "])
    data = make_data(TextSet(math_file, held_out_path=path))
    with pytest.raises(InputError, match=r"^data\.math\.held_out_path: .*held\.csv gives no text"):
        _ = data.drawn


def test_too_many_held_out_texts_are_refused(math_file: str) -> None:
    """Something must be left to draw from."""
    with pytest.raises(InputError, match=r"^data\.held_out: got 30, but data\.math has 30"):
        _ = make_data(math_file, held_out=30).drawn


def test_without_held_out_texts_validation_has_one_empty_batch(
    math_file: str, plain_folder: Path
) -> None:
    """So that the epoch, in which tasks are evaluated, still takes place."""
    data = make_data(math_file, held_out=0)
    set_up(data, plain_folder, ["validate"])
    assert [list(loader) for loader in data.val_dataloader()] == [[{}]]


def test_perplexity_needs_a_token_to_predict(math_file: str, plain_folder: Path) -> None:
    """A text of one token has none."""
    data = make_data(math_file, max_length=1)
    with pytest.raises(InputError, match=r"^data\.math: each held-out text is one token long"):
        set_up(data, plain_folder, ["validate"])
