"""Files that are complete or absent: written beside their target, then renamed."""

import hashlib
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mathneuro.errors import InputError

CHECKSUM = "sha256"
"""What the checksum of a file is stated under."""


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


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Create or replace a safetensors file in one step.

    Args:
        path: The file.
        tensors: The tensors by name.
        metadata: Values by name, kept as JSON, since safetensors stores text alone.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = {name: json.dumps(value) for name, value in metadata.items()}
    text[CHECKSUM] = json.dumps(_checksum(ready, text))

    def write(unfinished: Path) -> None:
        try:
            save_file(ready, unfinished, metadata=text)
        except SafetensorError as error:
            raise OSError(str(error)) from error

    write_file(path, write)


def read_tensors(
    path: Path, kind: str, fields: Iterable[str], option: str
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a safetensors file that `write_tensors` made.

    Args:
        path: The file.
        kind: What its metadata must state as ``format``.
        fields: What its metadata must hold besides.
        option: The option that gave the path, for messages.

    Returns:
        The tensors and the metadata, both by name.

    Raises:
        InputError: If the file is missing, damaged or of another kind.
    """
    with _opened(path, kind, fields, option) as (opened, metadata):
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        stated = metadata.pop(CHECKSUM, None)
        if stated is not None and stated != _checksum(tensors, opened.metadata()):
            raise InputError(
                f"{option}: {path} is damaged (it is not what its checksum was made of); make it "
                "again, or get it again"
            )
    return tensors, metadata


def _checksum(tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> str:
    """Return a hash of all that a file holds but its checksum."""
    digest = hashlib.sha256()
    for name in sorted(set(text) - {CHECKSUM}):
        digest.update(json.dumps([name, text[name]]).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_metadata(path: Path, kind: str, fields: Iterable[str], option: str) -> dict[str, Any]:
    """Read the metadata alone of a file; see `read_tensors`."""
    with _opened(path, kind, fields, option) as (_, metadata):
        return metadata


@contextmanager
def _opened(
    path: Path, kind: str, fields: Iterable[str], option: str
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a safetensors file in this block, and check what it states."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{option}: {path} {what}; give the path of a {kind} file")
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = {name: _value(text) for name, text in (opened.metadata() or {}).items()}
            _check_metadata(f"{option}: {path}", metadata, kind, fields)
            yield opened, metadata
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{option}: {path} is damaged or no safetensors file ({error}); make it again"
        ) from error


def _value(text: str) -> Any:  # noqa: ANN401
    """Return what a text of the metadata states; other programs write no JSON there."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _check_metadata(
    where: str, metadata: Mapping[str, Any], kind: str, fields: Iterable[str]
) -> None:
    """Refuse a file of another kind, before its tensors are read."""
    missing = [name for name in fields if name not in metadata]
    found = f"states format {metadata.get('format')!r}"
    if metadata.get("format") == kind and missing:
        found = f"does not state its {missing[0]}"
    if metadata.get("format") != kind or missing:
        raise InputError(
            f"{where} {found}, but a whole file of format {kind!r} was expected; give a file "
            "that this version of MathNeuro wrote"
        )
