"""From rows to texts: columns, templates, rows that hold nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mathneuro.data.rows import load_rows
from mathneuro.data.spec import TextSet
from mathneuro.errors import InputError

Turns = tuple[tuple[str, str], ...]
"""A conversation: roles and what they say."""

LONGEST_VALUE = 60
"""Characters of a cell that a message shows."""


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
    turns: Turns


@dataclass(frozen=True)
class Texts:
    """The texts of one set.

    Attributes:
        texts: The texts, in the order of the rows.
        empty: How many rows were skipped because they hold no text.
    """

    texts: tuple[Text, ...]
    empty: int


def read_texts(spec: TextSet, where: str, field: str = "path") -> Texts:
    """Read all texts of a set.

    Args:
        spec: The set.
        where: Where the user gave it, such as ``data.math``, for messages.
        field: The field that names the data, for messages.

    Returns:
        Its texts; rows that hold none are skipped and counted.

    Raises:
        InputError: If the data cannot be read, lacks a column or holds no text.
    """
    spec.check(where)
    label = f"{where}.{field}"
    rows = load_rows(spec, label)
    make = _turns_maker(spec, rows.columns, where)
    texts, empty = [], 0
    for index, row in enumerate(rows.rows):
        turns = make(index, {column: row.get(column) for column in rows.columns})
        text = _join(turns)
        if not any(content.strip() for _, content in turns):
            empty += 1
            continue
        if not text.isascii():
            _check_characters(text, f"{label}: row {index} of {spec.path}")
        texts.append(Text(index, text, turns))
    if not texts:
        found = f"all {empty} rows are empty" if empty else "it has no rows"
        raise InputError(
            f"{label}: {spec.path} gives no text ({found}), but at least one is needed; check the "
            "file, and the columns or the template"
        )
    return Texts(tuple(texts), empty)


def _join(turns: Turns) -> str:
    if len(turns) == 1:
        return turns[0][1]
    question, solution = (content for _, content in turns)
    return f"Question: {question}\n\nAnswer: {solution}"


def _check_characters(text: str, where: str) -> None:
    """Refuse half a character, which JSON can hold and no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where} holds half a character ({text[error.start]!r}), but only whole ones are "
            "text; mend that row"
        ) from error


def _turns_maker(
    spec: TextSet, columns: list[str], where: str
) -> Callable[[int, Mapping[str, Any]], Turns]:
    if spec.template is not None:
        return template_maker(spec.template, columns, where)
    for column in spec.columns:
        if column not in columns:
            known = {"question", "solution"} <= set(columns)
            hint = "[question, solution]" if known else f"some of {columns}"
            raise InputError(
                f"{where}.columns: {spec.path} has no column {column!r}; set it to {hint}, or give "
                "a template"
            )

    def cell(index: int, row: Mapping[str, Any], column: str) -> str:
        value = _present(row[column])
        if isinstance(value, list | dict | bytes):
            raise InputError(
                f"{where}.columns: column {column!r} of {spec.path} holds "
                f"{repr(value)[:LONGEST_VALUE]} in row {index}, but a text is expected; give a "
                "template that makes one"
            )
        return str(value)

    def make(index: int, row: Mapping[str, Any]) -> Turns:
        cells = [cell(index, row, column) for column in spec.columns]
        return tuple(zip(("user", "assistant"), cells, strict=False))

    return make


def template_maker(
    template: str, columns: list[str], where: str
) -> Callable[[int, Mapping[str, Any]], Turns]:
    """Return a function that fills a Jinja template in with a row.

    Args:
        template: The template.
        columns: The columns that there are.
        where: Where the user gave it, for messages.

    Returns:
        From the number of a row and the row to one turn, the user's.

    Raises:
        InputError: If the template cannot be read; the function raises it for a row.
    """
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    def refusal(error: Exception, place: str) -> InputError:
        return InputError(
            f"{where}.template: {template!r} cannot be {place} ({error}); the columns are {columns}"
        )

    environment = SandboxedEnvironment(undefined=StrictUndefined, finalize=_present)
    try:
        compiled = environment.from_string(template)
    except TemplateError as error:
        raise refusal(error, "read") from error

    def render(index: int, row: Mapping[str, Any]) -> Turns:
        try:
            filled = compiled.render({name: _present(value) for name, value in row.items()})
        # A template is a program of the user's: it can raise anything.
        except Exception as error:
            raise refusal(error, f"filled in with row {index}") from error
        return (("user", filled),)

    return render


def _present(value: Any) -> Any:  # noqa: ANN401
    """Return a cell; an absent one, which tables also write as NaN, is empty."""
    return "" if value is None or (isinstance(value, float) and value != value) else value
