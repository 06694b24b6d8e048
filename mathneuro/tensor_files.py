"""Safetensors files that state a checksum over all that they hold."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mathneuro.errors import InputError
from mathneuro.files import write_file

STATED = "mathneuro"
"""The one entry of the metadata: safetensors writes several in a random order."""

TENSORS = "tensors_sha256"
"""What the checksum of the tensors is stated under."""

CHECKSUM = "sha256"
"""What the checksum of all that is stated is itself stated under."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Create or replace a safetensors file in one step; equal content gives equal bytes.

    Args:
        path: The file.
        tensors: The tensors by name.
        metadata: Values by name, kept as JSON, since safetensors stores text alone.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    stated = {STATED: _sealed({**metadata, TENSORS: _tensors_checksum(ready)})}

    def write(unfinished: Path) -> None:
        try:
            save_file(ready, unfinished, metadata=stated)
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
        InputError: If the file is missing, of another kind, or not what was written.
    """
    with _opened(path, kind, fields, option) as (opened, metadata):
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        if metadata.pop(TENSORS) != _tensors_checksum(tensors):
            raise _damaged(path, option)
    return tensors, metadata


def read_metadata(path: Path, kind: str, fields: Iterable[str], option: str) -> dict[str, Any]:
    """Read the metadata alone of a file; see `read_tensors`."""
    with _opened(path, kind, fields, option) as (_, metadata):
        del metadata[TENSORS]
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
            text = opened.metadata() or {}
            metadata = _stated(text)
            if metadata.get("format") != kind:
                raise InputError(
                    f"{option}: {path} states format {metadata.get('format')!r}, but a whole file "
                    f"of format {kind!r} was expected; give a file that this version of MathNeuro "
                    "wrote"
                )
            # The text itself counts, and not only what can be read from it.
            if list(text) != [STATED] or text[STATED] != _sealed(_without(metadata, CHECKSUM)):
                raise _damaged(path, option)
            del metadata[CHECKSUM]
            missing = next((each for each in (*fields, TENSORS) if each not in metadata), None)
            if missing is not None:
                raise InputError(
                    f"{option}: {path} does not state its {missing}, but a whole file of format "
                    f"{kind!r} was expected; give a file that this version of MathNeuro wrote"
                )
            yield opened, metadata
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{option}: {path} is damaged or no safetensors file ({error}); make it again"
        ) from error


def _damaged(path: Path, option: str) -> InputError:
    return InputError(
        f"{option}: {path} is damaged (it is not what its checksum was made of); make it again, or "
        "get it again"
    )


def _stated(text: Mapping[str, str]) -> dict[str, Any]:
    """Return what the metadata states; earlier formats had an entry a field."""
    try:
        if STATED in text:
            stated = json.loads(text[STATED])
            return stated if isinstance(stated, dict) else {}
        return {"format": json.loads(text["format"])} if "format" in text else {}
    except (ValueError, RecursionError):
        # Files of other programs hold plain text.
        return {"format": text.get("format")}


def _sealed(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON with a checksum over all of it."""
    digest = hashlib.sha256(json.dumps(metadata).encode()).hexdigest()
    return json.dumps({**metadata, CHECKSUM: digest})


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _tensors_checksum(tensors: Mapping[str, Tensor]) -> str:
    """Return a hash of tensors with their names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
