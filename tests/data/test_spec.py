"""What can be told of a set of texts without reading it."""

from pathlib import Path

import pytest

from mathneuro.data import TextSet
from mathneuro.errors import InputError


def refusal(spec: TextSet) -> str:
    """Check a set that must be refused, and return the message."""
    with pytest.raises(InputError) as caught:
        spec.check("data.math")
    return str(caught.value)


@pytest.mark.parametrize(
    "path", ["texts.csv", "./texts", "/nowhere/texts", "~/texts", "folder/of/texts", "", " "]
)
def test_a_missing_file_is_told_with_the_folder_it_was_looked_for_in(path: str) -> None:
    """Also one that has no known ending but can be no id of the hub."""
    message = refusal(TextSet(path))
    assert message.startswith("data.math.path: the file")
    assert f"does not exist (looked from {Path.cwd()})" in message


def test_a_missing_file_of_held_out_texts_is_told(math_file: str) -> None:
    """By its own field."""
    message = refusal(TextSet(math_file, held_out_path="nowhere.csv"))
    assert message.startswith("data.math.held_out_path: the file nowhere.csv does not exist")


def test_a_file_of_another_kind_is_told_with_the_kinds_that_can_be_read(tmp_path: Path) -> None:
    """By the ending of its name."""
    (tmp_path / "texts.txt").write_text("a")
    message = refusal(TextSet(str(tmp_path / "texts.txt")))
    assert "is of no kind that can be read" in message
    assert ".csv, .jsonl, .json, .parquet" in message


@pytest.mark.parametrize("columns", [[], ["a", "b", "c"]])
def test_neither_no_column_nor_three_columns_make_a_text(
    math_file: str, columns: list[str]
) -> None:
    """One is the whole text, two are question and solution."""
    message = refusal(TextSet(math_file, columns=columns))
    assert message.startswith(f"data.math.columns: got {columns}")


def test_a_template_makes_the_number_of_columns_irrelevant(math_file: str) -> None:
    """Any number of columns can take part in it."""
    TextSet(math_file, columns=[], template="{{ qa }}").check("data.math")


@pytest.mark.parametrize("label", ["name", "split", "revision", "held_out_split"])
def test_what_only_a_hub_data_set_has_is_refused_for_a_file(math_file: str, label: str) -> None:
    """Rather than ignored: a file has no other split to hold texts out from."""
    spec = TextSet(math_file)
    setattr(spec, label, "test")
    assert refusal(spec).startswith(f"data.math.{label}: got 'test', but a file has none")


@pytest.mark.parametrize("label", ["path", "split", "columns"])
def test_null_is_refused_where_a_value_is_needed(math_file: str, label: str) -> None:
    """The config library lets it pass inside of a calibration set."""
    spec = TextSet(math_file)
    setattr(spec, label, None)
    assert refusal(spec).startswith(f"data.math.{label}: got null")


def test_an_id_of_the_hub_passes_without_a_look_at_the_hub() -> None:
    """It is loaded later."""
    TextSet("openai/gsm8k", name="main", split="test", held_out_split="train").check("data.math")


def test_a_held_out_file_inherits_nothing_of_the_hub(math_file: str) -> None:
    """Name, split and revision are those of the other data set."""
    spec = TextSet("openai/gsm8k", "main", "test", "abc", ["question"], held_out_path=math_file)
    assert spec.held_out() == TextSet(math_file, columns=["question"])


def test_a_held_out_split_is_of_the_same_data_set() -> None:
    """The same name and revision, another split."""
    spec = TextSet("openai/gsm8k", "main", "train", "abc", held_out_split="test")
    assert spec.held_out() == TextSet("openai/gsm8k", "main", "test", "abc")
