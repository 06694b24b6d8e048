"""From files and hub data sets to texts."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mathneuro.data.spec import FILE_KINDS, TextSet, is_file
from mathneuro.errors import InputError


@dataclass(frozen=True)
class Text:
    """One text of a set.

    Attributes:
        row: Its row in the file or split, from 0.
        text: The whole text, special tokens not included.
        turns: The same as the turns of a conversation, for chat templates.
    """

    row: int
    text: str
    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Texts:
    """The texts of one set.

    Attributes:
        texts: The texts, in the order of the rows.
        empty: How many rows were skipped because they hold no text.
    """

    texts: tuple[Text, ...]
    empty: int


def read_texts(spec: TextSet, where: str) -> Texts:
    """Read all texts of a set.

    Args:
        spec: The set.
        where: Where the user gave it, such as ``data.math``, for messages.

    Returns:
        Its texts; rows that hold none are skipped and counted.

    Raises:
        InputError: If the data cannot be read, lacks a column or holds no text.
    """
    spec.check(where)
    rows = _load(spec, where)
    make = _text_maker(spec, rows.column_names, where)
    texts, empty = [], 0
    for index, row in enumerate(rows):
        turns = make(row)
        text = _join(turns)
        if not any(content.strip() for _, content in turns):
            empty += 1
        else:
            texts.append(Text(index, text, turns))
    if not texts:
        raise InputError(
            f"{where}: {spec.path} gives no text ({empty} rows, all empty), but at least one is "
            "needed; check the columns or the template"
        )
    return Texts(tuple(texts), empty)


def _join(turns: tuple[tuple[str, str], ...]) -> str:
    if len(turns) == 1:
        return turns[0][1]
    question, solution = (content for _, content in turns)
    return f"Question: {question}\n\nAnswer: {solution}"


def _load(spec: TextSet, where: str) -> Any:  # noqa: ANN401
    """Load the rows as a `datasets.Dataset`."""
    import datasets
    from datasets.exceptions import DatasetsError

    datasets.disable_progress_bars()
    try:
        if is_file(spec.path):
            kind, options = _file_options(spec.path, where)
            return datasets.load_dataset(kind, data_files=spec.path, split="train", **options)
        return datasets.load_dataset(
            spec.path, name=spec.name, split=spec.split, revision=spec.revision
        )
    except (DatasetsError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error.__cause__ or error).strip().splitlines()
        raise InputError(
            f"{where}: {spec.path} cannot be read ({reason[0] if reason else type(error).__name__})"
            "; give an existing CSV, JSONL or Parquet file, or the id, name and split of a data "
            "set on the hub"
        ) from error


def _file_options(path: str, where: str) -> tuple[str, dict[str, Any]]:
    """Return the kind of a local file and how to read it."""
    import datasets

    kind = FILE_KINDS.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(
            f"{where}.path: {path} is of no kind that can be read; give a file that ends in "
            f"{', '.join(FILE_KINDS)}"
        )
    if kind != "csv":
        return kind, {}
    with Path(path).open(encoding="utf-8-sig", newline="") as opened:
        columns = next(csv.reader(opened), [])
    # Everything is read as text, so that "007", "None" and "NA" stay what they are.
    return kind, {
        "features": datasets.Features({name: datasets.Value("string") for name in columns}),
        "keep_default_na": False,
        "encoding": "utf-8-sig",
    }


def _text_maker(
    spec: TextSet, columns: list[str], where: str
) -> Callable[[Mapping[str, Any]], tuple[tuple[str, str], ...]]:
    if spec.template is not None:
        return _template_maker(spec.template, columns, where)
    for column in spec.columns:
        if column not in columns:
            known = {"question", "solution"} <= set(columns)
            hint = "[question, solution]" if known else f"some of {columns}"
            raise InputError(
                f"{where}.columns: {spec.path} has no column {column!r}; set it to {hint}, or give "
                "a template"
            )
    if len(spec.columns) == 1:
        return lambda row: (("user", _string(row[spec.columns[0]])),)

    def both(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        question, solution = (_string(row[column]) for column in spec.columns)
        return ("user", question), ("assistant", solution)

    return both


def _template_maker(
    template: str, columns: list[str], where: str
) -> Callable[[Mapping[str, Any]], tuple[tuple[str, str], ...]]:
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    def refusal(error: TemplateError) -> InputError:
        return InputError(
            f"{where}.template: {template!r} cannot be filled in ({error}); the columns are "
            f"{columns}"
        )

    try:
        compiled = SandboxedEnvironment(undefined=StrictUndefined).from_string(template)
    except TemplateError as error:
        raise refusal(error) from error

    def render(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        try:
            return (("user", compiled.render(row)),)
        except TemplateError as error:
            raise refusal(error) from error

    return render


def _string(value: Any) -> str:  # noqa: ANN401
    """Return a cell as text; an absent value is empty."""
    return "" if value is None else str(value)
