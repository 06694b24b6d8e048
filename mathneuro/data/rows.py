"""Rows of a CSV, JSON or Parquet file, or of a data set of the hub."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mathneuro.data.spec import TextSet, is_file
from mathneuro.errors import InputError
from mathneuro.hub import offline_if_unreachable

Row = Mapping[str, Any]

LONGEST_CELL = 2**31 - 1
"""Characters; Python's own limit is shorter than some texts."""

_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Rows:
    """Rows of a table.

    Attributes:
        columns: Names of the columns.
        rows: The rows; one that lacks a column has no cell there.
    """

    columns: list[str]
    rows: Iterable[Row]


def load_rows(spec: TextSet, label: str) -> Rows:
    """Load the rows of a set.

    Args:
        spec: The set.
        label: The field that names the data, such as ``data.math.path``, for messages.

    Raises:
        InputError: If the data cannot be read.
    """
    return _read_file(spec, label) if is_file(spec.path) else _load_from_hub(spec, label)


def _read_file(spec: TextSet, label: str) -> Rows:
    # `datasets` is not used for files: it guesses types (a text that looks like a date comes back
    # as another one), and copies every file into its cache.
    read, expected = _READERS[Path(spec.path).suffix.lower()]
    try:
        return read(Path(spec.path), spec)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{label}: {spec.path} cannot be read ({_first_line(error)}); give {expected}"
        ) from error


def _read_text(path: Path) -> str:
    text = path.read_bytes().decode("utf-8-sig")
    if "\0" in text:
        raise ValueError("it holds bytes that no text holds")
    return text


def _read_csv(path: Path, spec: TextSet) -> Rows:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(_read_text(path), newline=""), strict=True)
    rows: list[Row] = []
    try:
        filled = (cells for cells in reader if cells)
        header = next(filled, [])
        for cells in filled:
            # A text with a comma that is not in quotes must not lose its end.
            if any(cells[len(header) :]):
                raise ValueError(
                    f"line {reader.line_num} has {len(cells)} cells, but the header has "
                    f"{len(header)}; a text that holds a comma needs quotes around it"
                )
            rows.append(dict(zip(header, cells, strict=False)))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error
    if not header:
        raise ValueError("it is empty")
    separator = next((each for each in ";\t|" if each in header[0]), None)
    if len(header) == 1 and separator is not None and header[0] not in spec.columns:
        raise ValueError(f"its header has {separator!r} between names; separate cells by commas")
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise ValueError(f"its header names {twice[0]!r} more than once")
    return Rows(header, rows)


def _read_json(path: Path, _spec: TextSet) -> Rows:
    text, decoder = _read_text(path), json.JSONDecoder()
    rows, position = [], _past_space(text, 0)
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        rows += value if isinstance(value, list) else [value]
        position = _past_space(text, position)
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"row {number} is no object with columns")
    if not rows:
        raise ValueError("it is empty")
    return Rows(list(dict.fromkeys(name for row in rows for name in row)), rows)


def _past_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _read_parquet(path: Path, spec: TextSet) -> Rows:
    import pyarrow
    from pyarrow import parquet

    try:
        columns = list(parquet.read_schema(path).names)
        needed = _needed(spec, columns)
        return Rows(columns, parquet.read_table(path, columns=needed).to_pylist())
    except pyarrow.ArrowException as error:
        raise ValueError(f"it is damaged or of another kind: {_first_line(error)}") from error


_READERS: dict[str, tuple[Callable[[Path, TextSet], Rows], str]] = {
    ".csv": (_read_csv, "a CSV file in UTF-8 whose first line names its columns"),
    ".jsonl": (_read_json, "a file in UTF-8 with one JSON object a line"),
    ".json": (_read_json, "a file in UTF-8 with a list of JSON objects, or one object a line"),
    ".parquet": (_read_parquet, "a Parquet file"),
}


def _load_from_hub(spec: TextSet, label: str) -> Rows:
    import datasets
    from pyarrow import ArrowException

    datasets.disable_progress_bars()
    # What goes wrong is told by the exception; the log tells it a second time.
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    is_local = Path(spec.path).exists()
    try:
        with nullcontext() if is_local else offline_if_unreachable():
            loaded = datasets.load_dataset(
                spec.path, name=spec.name, split=spec.split, revision=spec.revision
            )
    # Whatever the hub, the network or a foreign file can raise.
    except Exception as error:
        reason = _first_line(error)
        if isinstance(error, ConnectionError):
            reason = "it is not in the cache, and the hub cannot be reached"
        if type(error).__name__ == "DatasetGenerationError" or isinstance(error, ArrowException):
            raise InputError(
                f"{label}: a file of {spec.path} is damaged or of another kind ({reason}); get it "
                "again"
            ) from error
        raise InputError(
            f"{label}: {spec.path} cannot be loaded ({reason}); give an existing CSV, JSONL or "
            "Parquet file, or the id, name and split of a data set on the hub"
        ) from error
    columns = list(loaded.column_names)
    return Rows(columns, loaded.select_columns(_needed(spec, columns)))


def _needed(spec: TextSet, columns: list[str]) -> list[str]:
    """Leave out the columns that are not looked at; some take long to decode."""
    return [name for name in columns if spec.template is not None or name in spec.columns]


def _first_line(error: BaseException) -> str:
    # `datasets` wraps what went wrong in an error that says only that something did.
    is_wrapped = type(error).__name__ == "DatasetGenerationError" and error.__cause__ is not None
    lines = str(error.__cause__ if is_wrapped else error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
