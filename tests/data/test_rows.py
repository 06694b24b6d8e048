"""Reading of files and of data sets as the hub has them."""

import json
from pathlib import Path

import datasets
import huggingface_hub
import pyarrow
import pytest
from pyarrow import parquet

from mathneuro.data import TextSet
from mathneuro.data.reading import read_texts
from mathneuro.errors import InputError


def read(path: Path, content: bytes | str, columns: tuple[str, ...] = ("qa",)) -> list[str]:
    """Write a file and read the texts of it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    spec = TextSet(str(path), columns=list(columns))
    return [text.text for text in read_texts(spec, "data.math").texts]


def refusal(path: Path, content: bytes | str) -> str:
    """Write a file that must be refused, and return the message."""
    with pytest.raises(InputError) as caught:
        read(path, content)
    message = str(caught.value)
    assert message.startswith(f"data.math.path: {path} ")
    assert "\n" not in message
    return message


@pytest.fixture
def csv_path(tmp_path: Path) -> Path:
    """Where a CSV file goes."""
    return tmp_path / "texts.csv"


@pytest.fixture
def json_path(tmp_path: Path) -> Path:
    """Where a JSONL file goes."""
    return tmp_path / "texts.jsonl"


@pytest.mark.parametrize("header", [b"qa", b'"qa"'])
def test_a_byte_order_mark_is_no_part_of_the_first_column(csv_path: Path, header: bytes) -> None:
    """Whether its name is in quotes or not."""
    assert read(csv_path, b"\xef\xbb\xbf" + header + b"\nhello\n") == ["hello"]


def test_quotes_and_lines_inside_of_a_cell_stay(csv_path: Path) -> None:
    """Also carriage returns."""
    content = 'qa,x\n"a ""b"",\nc",1\n"d\r\ne",2\n'
    assert read(csv_path, content) == ['a "b",\nc', "d\r\ne"]


def test_cells_stay_the_text_that_they_are(csv_path: Path) -> None:
    """Whatever they look like to a program that guesses types."""
    cells = ["None", "NA", "007", "null", "nan", "1.0", "2020-01-01", "True", "#comment"]
    assert read(csv_path, "qa,x\n" + "".join(f"{cell},1\n" for cell in cells)) == cells


def test_missing_cells_are_empty(csv_path: Path) -> None:
    """At the end of a short line as between commas."""
    assert read(csv_path, "x,qa\n1\n2,\n3,a\n\n4,b\n") == ["a", "b"]


def test_an_unnamed_column_does_no_harm(csv_path: Path) -> None:
    """As pandas writes it for its index."""
    assert read(csv_path, ",qa\n0,a\n1,b\n") == ["a", "b"]


@pytest.mark.parametrize(
    "content", ["qa,x\na,b\r\n", "qa,x\ra,b\r", "\n\nqa,x\n\na,b", "qa,x\na,b,,\n"]
)
def test_line_ends_and_empty_cells_beyond_the_header_do_not_matter(
    csv_path: Path, content: str
) -> None:
    """As spreadsheets write them."""
    assert read(csv_path, content) == ["a"]


def test_a_text_longer_than_pythons_own_limit_is_read(csv_path: Path) -> None:
    """131,072 characters a cell by default."""
    assert read(csv_path, "qa\n" + "a" * 200_000 + "\n") == ["a" * 200_000]


def test_an_unquoted_comma_is_refused_with_its_line(csv_path: Path) -> None:
    """Rather than losing the rest of the text."""
    message = refusal(csv_path, "qa\nfine\nHello, world\n")
    assert "line 3 has 2 cells, but the header has 1" in message


@pytest.mark.parametrize("row", ['"a ""b', '"a \\"b\\" c"', '"a"b'])
def test_broken_quotes_are_refused_with_their_line(csv_path: Path, row: str) -> None:
    """Rather than giving another text than the one that was written."""
    assert "(line 2:" in refusal(csv_path, f"qa\n{row}")


def test_a_column_that_is_there_twice_is_refused(csv_path: Path) -> None:
    """Nobody knows which of the two is meant."""
    assert "its header names 'qa' more than once" in refusal(csv_path, "qa,qa\na,b\n")


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 20,
        b"PAR1" + b"\0" * 50,
        "qa\nä\n".encode("latin-1"),
        "qa\na\n".encode("utf-16"),
    ],
    ids=["binary", "zeros", "latin-1", "utf-16"],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_what_is_no_utf_8_text_is_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    """With what is expected instead."""
    message = refusal(tmp_path / f"texts{suffix}", content)
    assert "cannot be read" in message
    assert "in UTF-8" in message


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet"])
def test_an_empty_file_is_refused(tmp_path: Path, suffix: str) -> None:
    """Of any kind."""
    assert "cannot be read" in refusal(tmp_path / f"texts{suffix}", b"")


def test_a_file_with_a_header_only_gives_no_text(csv_path: Path) -> None:
    """It has the column, but no row."""
    assert "gives no text (it has no rows)" in refusal(csv_path, "qa,x\n")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_whose_rows_are_all_empty_gives_no_text(tmp_path: Path, suffix: str) -> None:
    """However many there are."""
    path = tmp_path / f"texts{suffix}"
    rows: list[str | None] = ["", "  ", None]
    parquet.write_table(pyarrow.table({"qa": rows}), path)
    content = {
        ".csv": b"qa,x\n,1\n  ,2\n,3\n",
        ".jsonl": b"".join(json.dumps({"qa": row}).encode() + b"\n" for row in rows),
        ".parquet": path.read_bytes(),
    }
    assert "gives no text (all 3 rows are empty)" in refusal(path, content[suffix])


def test_json_values_stay_the_text_that_they_are(json_path: Path) -> None:
    """Numbers become their text; what is null or not there is empty."""
    values = ['"a"', "null", "3", "1.5", '"2020-01-01"', '"007"', "NaN", "true"]
    content = "".join(f'{{"qa": {value}}}\n' for value in values) + '{"other": 1}\n'
    assert read(json_path, content) == ["a", "3", "1.5", "2020-01-01", "007", "True"]


def test_json_strings_may_hold_any_separator_of_lines(json_path: Path) -> None:
    """Such as U+2028, which Python's own splitting of lines takes for one."""
    texts = ["a\u2028b", "c\x85d", "e\nf"]
    content = "".join(json.dumps({"qa": text}, ensure_ascii=False) + "\n" for text in texts)
    assert read(json_path, content) == texts


def test_json_begins_with_a_byte_order_mark_or_not(json_path: Path) -> None:
    """It is skipped."""
    assert read(json_path, b'\xef\xbb\xbf{"qa": "a"}\n\n{"qa": "b"}') == ["a", "b"]


@pytest.mark.parametrize(
    "content",
    [
        '[{"qa": "a"}, {"qa": "b"}]',
        '{\n "qa": "a"\n}\n{\n "qa": "b"\n}',
        '{"qa":"a"}\r\n{"qa":"b"}',
    ],
)
def test_json_objects_come_as_a_list_or_one_after_the_other(tmp_path: Path, content: str) -> None:
    """On one line each or on more."""
    assert read(tmp_path / "texts.json", content) == ["a", "b"]


def test_columns_that_begin_late_are_found(json_path: Path) -> None:
    """Not only those of the first row."""
    assert read(json_path, '{"x": 1}\n{"x": 2, "qa": "a"}\n') == ["a"]


def test_broken_json_is_refused_with_its_line(json_path: Path) -> None:
    """As with a download that ended early."""
    assert "line 3 column" in refusal(json_path, '{"qa": "a"}\n{"qa": "b"}\n{"qa": "c\n')


@pytest.mark.parametrize("content", ['"a"\n"b"\n', '{"qa": "a"}\n7\n', "[[1]]"])
def test_json_without_columns_is_refused(json_path: Path, content: str) -> None:
    """Each value has to be an object."""
    assert "is no object with columns" in refusal(json_path, content)


def test_half_a_character_is_refused_with_its_row(json_path: Path) -> None:
    """JSON can write it, but no tokenizer can read it."""
    with pytest.raises(InputError, match=r"data\.math\.path: row 1 of .* holds half a character"):
        read(json_path, '{"qa": "a"}\n{"qa": "\\ud83d"}\n')


def test_parquet_is_read(tmp_path: Path) -> None:
    """Numbers of a column with missing cells stay whole."""
    table = pyarrow.table({"qa": ["a", None, "b"], "n": [1, None, 3], "x": [[1], [2], [3]]})
    parquet.write_table(table, tmp_path / "texts.parquet")
    content = (tmp_path / "texts.parquet").read_bytes()
    assert read(tmp_path / "texts.parquet", content) == ["a", "b"]
    assert read(tmp_path / "texts.parquet", content, ("n",)) == ["1", "3"]


def test_a_parquet_file_without_rows_gives_no_text(tmp_path: Path) -> None:
    """It has the column, but no row."""
    path = tmp_path / "texts.parquet"
    parquet.write_table(pyarrow.table({"qa": pyarrow.array([], pyarrow.string())}), path)
    assert "gives no text (it has no rows)" in refusal(path, path.read_bytes())


def test_what_only_calls_itself_parquet_is_refused(tmp_path: Path) -> None:
    """As with a file that was renamed."""
    assert "give a Parquet file" in refusal(tmp_path / "texts.parquet", "qa\nhello\n")


@pytest.fixture
def hub_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder as the hub holds it, with two splits and a cache of its own."""
    folder = tmp_path / "hub" / "data"
    folder.mkdir(parents=True)
    for split, texts in {"train": ["a", "b"], "test": ["c"]}.items():
        lines = [json.dumps({"qa": text, "n": 1}) + "\n" for text in texts]
        (folder / f"{split}.jsonl").write_text("".join(lines))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return str(tmp_path / "hub")


def test_a_hub_data_set_is_read_by_split(hub_folder: str) -> None:
    """From a local copy of it, by the same means as from the hub."""
    for split, expected in {"train": ["a", "b"], "test": ["c"]}.items():
        read_ = read_texts(TextSet(hub_folder, split=split), "data.math")
        assert [text.text for text in read_.texts] == expected


def test_a_split_that_is_not_there_is_refused(hub_folder: str) -> None:
    """With the splits that are."""
    with pytest.raises(InputError, match=r"data\.math\.path: .*cannot be loaded .*'train', 'test'"):
        read_texts(TextSet(hub_folder, split="dev"), "data.math")


def test_a_column_that_a_hub_data_set_lacks_is_refused(hub_folder: str) -> None:
    """With those that it has."""
    with pytest.raises(InputError, match=r"has no column 'text'; set it to some of \['qa', 'n'\]"):
        read_texts(TextSet(hub_folder, columns=["text"]), "data.math")


def test_a_hub_that_cannot_be_reached_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the half minute and the lines of repeated tries."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    before = datasets.config.HF_HUB_OFFLINE
    with pytest.raises(InputError, match=r"data\.math\.path: nobody/nothing cannot be loaded \(it"):
        read_texts(TextSet("nobody/nothing"), "data.math")
    assert not [record for record in caplog.records if "Retrying" in record.getMessage()]
    assert before == datasets.config.HF_HUB_OFFLINE


def test_offline_mode_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is set on machines without a network."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="not in the cache, and the hub cannot be reached"):
        read_texts(TextSet("nobody/nothing"), "data.math")
