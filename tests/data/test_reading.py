"""From rows to texts: columns, templates, rows that hold nothing."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from mathneuro.data import TextSet
from mathneuro.data.reading import Texts, read_texts
from mathneuro.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"question": "1 + 1?", "solution": "2", "level": 3, "choices": ["x", None]},
    {"question": None, "solution": "", "level": None, "choices": []},
    {"question": "2 + 2?", "solution": "4", "level": 5, "choices": ["y"]},
]


@pytest.fixture
def rows_file(tmp_path: Path) -> str:
    """Three rows, the second of them empty."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


def read(path: str, **fields: Any) -> Texts:
    """Read a set."""
    return read_texts(TextSet(path, **fields), "data.math")


def refusal(path: str, **fields: Any) -> str:
    """Read a set that must be refused, and return the message."""
    with pytest.raises(InputError) as caught:
        read(path, **fields)
    return str(caught.value)


def test_question_and_solution_are_joined(rows_file: str) -> None:
    """As the published texts are, and as the turns of a conversation."""
    texts = read(rows_file, columns=["question", "solution"])
    assert texts.texts[0].text == "Question: 1 + 1?\n\nAnswer: 2"
    assert texts.texts[0].turns == (("user", "1 + 1?"), ("assistant", "2"))


def test_empty_rows_are_skipped_and_counted(rows_file: str) -> None:
    """The rows that are left keep their numbers."""
    texts = read(rows_file, columns=["question", "solution"])
    assert [text.row for text in texts.texts] == [0, 2]
    assert texts.empty == 1


def test_half_a_row_is_a_text(tmp_path: Path) -> None:
    """Only a row with neither question nor solution is empty."""
    (tmp_path / "rows.csv").write_text("question,solution\n,2\n1 + 1?,\n , \n")
    texts = read(str(tmp_path / "rows.csv"), columns=["question", "solution"])
    assert [text.text for text in texts.texts] == [
        "Question: \n\nAnswer: 2",
        "Question: 1 + 1?\n\nAnswer: ",
    ]
    assert texts.empty == 1


def test_a_template_makes_the_text(rows_file: str) -> None:
    """From any columns, as one turn of the user."""
    template = "{{ question }} ({{ level }}){% if solution %} = {{ solution }}{% endif %}"
    first, *_ = read(rows_file, template=template).texts
    assert first.text == "1 + 1? (3) = 2"
    assert first.turns == (("user", first.text),)


def test_none_never_stands_in_a_text(rows_file: str) -> None:
    """Neither for a missing cell nor inside of one."""
    texts = read(rows_file, template="{{ question }}|{{ choices[1] if choices | length > 1 }}")
    assert [text.text for text in texts.texts] == ["1 + 1?|", "|", "2 + 2?|"]
    assert read(rows_file, template="{{ question ~ level }}").empty == 1


@pytest.mark.parametrize(
    "template",
    [
        "{{ qestion }}",
        "{{ question.foo }}",
        "{{ level + 'x' }}",
        "{{ 1 / 0 }}",
        "{% include 'x' %}",
    ],
)
def test_a_template_that_cannot_be_filled_in_is_refused(rows_file: str, template: str) -> None:
    """With the row and the columns that there are, whatever it raised."""
    message = refusal(rows_file, template=template)
    assert message.startswith(f"data.math.template: {template!r} cannot be filled in with row 0")
    assert message.endswith("the columns are ['question', 'solution', 'level', 'choices']")


@pytest.mark.parametrize("template", ["{{ question", "{% if %}", "{{ question | nofilter }}"])
def test_a_template_that_is_no_jinja_is_refused(rows_file: str, template: str) -> None:
    """Before any row is looked at."""
    assert f"data.math.template: {template!r} cannot be read" in refusal(
        rows_file, template=template
    )


def test_a_template_cannot_reach_the_program(rows_file: str) -> None:
    """It runs in a sandbox."""
    assert "unsafe" in refusal(rows_file, template="{{ question.__class__.__mro__ }}")


def test_a_template_without_text_gives_no_text(rows_file: str) -> None:
    """And is named as what to check."""
    assert "all 3 rows are empty" in refusal(rows_file, template="  ")


def test_a_missing_column_is_told_with_those_that_are_there(rows_file: str) -> None:
    """So that the right one can be set."""
    message = refusal(rows_file, columns=["text"])
    assert message.startswith(f"data.math.columns: {rows_file} has no column 'text'")


def test_question_and_solution_are_proposed_where_they_are(rows_file: str) -> None:
    """Instead of the default column, which is not there."""
    assert "has no column 'qa'; set it to [question, solution]" in refusal(rows_file)


def test_other_columns_are_proposed(tmp_path: Path) -> None:
    """All of them."""
    (tmp_path / "texts.csv").write_text("text,n\na,1\n")
    assert "set it to some of ['text', 'n']" in refusal(str(tmp_path / "texts.csv"))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_named(tmp_path: Path, separator: str) -> None:
    """A column whose name holds one can be asked for all the same."""
    (tmp_path / "texts.csv").write_text(f"id{separator}qa\n1{separator}two\n")
    message = refusal(str(tmp_path / "texts.csv"))
    assert f"its header has {separator!r} between names; separate cells by commas" in message
    spec = TextSet(str(tmp_path / "texts.csv"), columns=[f"id{separator}qa"])
    assert [text.text for text in read_texts(spec, "data.math").texts] == [f"1{separator}two"]


def test_damaged_files_are_said_to_be_damaged(tmp_path: Path) -> None:
    """A file that was cut off, alone and as a shard of a folder."""
    folder = tmp_path / "shards"
    folder.mkdir()
    shard = folder / "train-00000-of-00001.parquet"
    parquet.write_table(pyarrow.table({"qa": ["one", "two"] * 500}), shard)
    shard.write_bytes(shard.read_bytes()[:200])
    assert "it is damaged or of another kind" in refusal(str(shard))
    message = refusal(str(folder))
    assert message.startswith(f"data.math.path: a file of {folder} is damaged or of another kind")


def test_a_cell_that_is_no_text_is_refused(rows_file: str) -> None:
    """With what it holds."""
    message = refusal(rows_file, columns=["choices"])
    assert message.startswith("data.math.columns: column 'choices'")
    assert "holds ['x', None] in row 0, but a text is expected" in message


def test_the_field_of_the_held_out_texts_is_named(tmp_path: Path) -> None:
    """Not that of the others."""
    (tmp_path / "texts.csv").write_text("qa\n")
    spec = TextSet(str(tmp_path / "texts.csv"))
    with pytest.raises(InputError, match=r"^data\.math\.held_out_path: "):
        read_texts(spec, "data.math", "held_out_path")
