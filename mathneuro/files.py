"""Files that are complete or absent: written beside their target, then renamed."""

import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mathneuro.errors import InputError


def write_file(path: Path, write: Callable[[Path], None]) -> None:
    """Create or replace a file in one step.

    Args:
        path: The file; missing folders on the way to it are made.
        write: Writes the whole content to the path that it is given.

    Raises:
        InputError: If the file cannot be written there.
    """
    unfinished = path.with_name(f".{path.name}.{unique()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Some libraries make files that only their owner may read.
            unfinished.touch()
            mode = unfinished.stat().st_mode
            write(unfinished)
            unfinished.chmod(mode)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"folder: {path} cannot be written ({error.strerror or error}); give a folder that you "
            "may write to and that has room"
        ) from error


def unique() -> str:
    """Return a name that no other process uses, not even on another machine."""
    return uuid.uuid4().hex[:12]


def write_text(path: Path, text: str) -> None:
    """Create or replace a text file in one step."""

    def write(unfinished: Path) -> None:
        unfinished.write_text(text, encoding="utf-8")

    write_file(path, write)


def write_json(path: Path, value: Any) -> None:  # noqa: ANN401
    """Create or replace a JSON file in one step; see `to_json`."""
    write_text(path, to_json(value, indent=2) + "\n")


def write_json_lines(path: Path, rows: Iterable[Any]) -> None:
    """Create or replace a file with one JSON value a line in one step; see `to_json`."""
    write_text(path, "".join(f"{to_json(row)}\n" for row in rows))


def to_json(value: Any, indent: int | None = None) -> str:  # noqa: ANN401
    """Write a value as JSON: NaN and infinities become null, what JSON does not know its text.

    What UTF-8 does not know is escaped.

    Example:
        >>> to_json({"a": [float("nan"), 1.5], "b": Path("c")})
        '{"a": [null, 1.5], "b": "c"}'
    """
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return the parts of a value as JSON knows them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
