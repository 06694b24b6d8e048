"""JSON files of a sweep, read field by field, so that a damaged one is told by its name."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from mathneuro.errors import InputError

Value = TypeVar("Value")


class Fields:
    """One JSON object, and where it came from.

    Args:
        path: The file, for messages.
        content: What the file holds, or one part of it.
        place: Where in the file the part is, such as ``scores.tasks``; empty: the whole.

    Example:
        >>> fields = Fields(Path("a.json"), {"scores": {"value": 0.5, "note": None}})
        >>> fields.part("scores").number("value"), fields.part("scores").number("note")
        (0.5, nan)
        >>> fields.part("scores").text("value")
        Traceback (most recent call last):
        ...
        mathneuro.errors.InputError: folder: a.json holds 0.5 as scores.value, but a text was \
expected; delete the file and run `sweep` again, or give another folder
    """

    def __init__(self, path: Path, content: Any, place: str = "") -> None:  # noqa: ANN401
        self.path = path
        self.place = place
        if not isinstance(content, dict):
            raise self._error(place or "its content", content, "an object")
        self.content: dict[str, Any] = content

    def part(self, name: str) -> "Fields":
        """Return an object inside this one."""
        return Fields(self.path, self._get(name), self._within(name))

    def parts(self) -> Iterator[tuple[str, "Fields"]]:
        """Go through this object's own parts by name; each must be an object."""
        for name in self.content:
            yield name, self.part(name)

    def is_null(self, name: str) -> bool:
        """Tell whether a field that must be there holds null."""
        return self._get(name) is None

    def text(self, name: str) -> str:
        """Return a text."""
        return self._checked(name, self._get(name), _text, "a text")

    def whole(self, name: str) -> int:
        """Return a whole number, 0 or more."""
        return self._checked(name, self._get(name), _whole, "a whole number of 0 or more")

    def number(self, name: str) -> float:
        """Return a number; NaN where JSON holds null, since it knows no NaN."""
        return self._checked(name, self._get(name), _number, "a number or null")

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        return self._list(name, _text, "a list of texts")

    def numbers(self, name: str) -> list[float]:
        """Return a list of numbers; NaN for null."""
        return self._list(name, _number, "a list of numbers")

    def expect(self, name: str, expected: str) -> None:
        """Refuse a field that does not hold a certain text."""
        if self.content.get(name) != expected:
            raise self._error(self._within(name), self.content.get(name), repr(expected))

    def _get(self, name: str) -> Any:  # noqa: ANN401
        if name not in self.content:
            raise InputError(
                f"folder: {self.path} does not state {self._within(name)}, but a file that `sweep` "
                "wrote was expected; delete the file and run `sweep` again, or give another folder"
            )
        return self.content[name]

    def _list(self, name: str, read: Callable[[Any], Value], expected: str) -> list[Value]:
        value = self._get(name)
        if not isinstance(value, list):
            raise self._error(self._within(name), value, expected)
        return [self._checked(name, each, read, expected) for each in value]

    def _checked(
        self,
        name: str,
        value: Any,  # noqa: ANN401
        read: Callable[[Any], Value],
        expected: str,
    ) -> Value:
        try:
            return read(value)
        except TypeError as error:
            raise self._error(self._within(name), value, expected) from error

    def _within(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def _error(self, place: str, value: Any, expected: str) -> InputError:  # noqa: ANN401
        shown = repr(value)
        return InputError(
            f"folder: {self.path} holds {shown[:60]}{'...' if len(shown) > 60 else ''} as {place}, "
            f"but {expected} was expected; delete the file and run `sweep` again, or give another "
            "folder"
        )


def read_fields(path: Path, kind: str) -> Fields:
    """Read a JSON file whose ``format`` is the given one.

    Raises:
        InputError: If it does not exist, is damaged or of another kind.
    """
    if not path.is_file():
        raise InputError(
            f"folder: {path} does not exist; give a folder in which `sweep` has been run"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"folder: {path} is damaged or no JSON ({error}); delete the file and run `sweep` "
            "again, or give another folder"
        ) from error
    fields = Fields(path, content)
    fields.expect("format", kind)
    return fields


def _text(value: Any) -> str:  # noqa: ANN401
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:  # noqa: ANN401
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:  # noqa: ANN401
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError
    return float(value)
