"""Edits to inspect: read, named and checked to be of models of one shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mathneuro.analysis.overlap import check_comparable
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.methods import IGNORE_CALIBRATION

USUAL = "edit"
"""How the file of a run is called, so that its folder tells more."""


@dataclass(frozen=True)
class NamedEdit:
    """An edit and what it is called.

    Attributes:
        name: Its name in tables and figures.
        path: Its file.
        edit: The edit.
    """

    name: str
    path: Path
    edit: Edit

    @property
    def origin(self) -> dict[str, Any]:
        """How its parameters were chosen."""
        return self.edit.selection.origin

    @property
    def method(self) -> str:
        """The method that selected, with the calibration sets that it looked at."""
        method = str(self.origin.get("method", "unknown method"))
        sets = () if method in IGNORE_CALIBRATION else self.origin.get("calibration") or ()
        return ", ".join(filter(None, (method, "+".join(sets))))

    @property
    def proportion(self) -> float | None:
        """The proportion that it was made with; None if it is not known."""
        found = self.origin.get("proportion")
        return float(found) if isinstance(found, int | float) else None

    @property
    def shown_proportion(self) -> str:
        """The proportion as text."""
        return "unknown" if self.proportion is None else f"{self.proportion:g}"

    @property
    def shown_factor(self) -> str:
        """The factor as text."""
        return f"{self.edit.factor:g}" + (" and others" if self.edit.factors else "")

    @property
    def made(self) -> str:
        """How it was made, in words."""
        return f"{self.method}, proportion {self.shown_proportion}, factor {self.shown_factor}"


def read_edits(paths: Sequence[Path], names: Sequence[str] | None) -> list[NamedEdit]:
    """Read edits that are to be compared.

    Args:
        paths: Their files.
        names: What to call them. None: by file or folder.

    Raises:
        InputError: If there is none, one is given twice or is no edit, the names do not fit, or
            two edits are for other sets of weights.
    """
    if not paths:
        raise InputError("edits: got none, but at least one is needed; give edit files")
    resolved = [path.resolve() for path in paths]
    for path, real in zip(paths, resolved, strict=True):
        if resolved.count(real) > 1:
            raise InputError(f"edits: got {path} twice; give each file once")
    chosen = find_names(resolved) if names is None else _checked(names, len(paths))
    edits = [
        NamedEdit(name, path, Edit.load(path)) for name, path in zip(chosen, paths, strict=True)
    ]
    check_comparable({each.name: each.edit.selection for each in edits}, "edits")
    return edits


def find_names(paths: Sequence[Path]) -> list[str]:
    """Name files by as little of their paths as tells them apart.

    Args:
        paths: Different files.

    Example:
        >>> find_names([Path("runs/a/edit.safetensors"), Path("runs/b/edit.safetensors")])
        ['a', 'b']
        >>> find_names([Path("a/x/edit.safetensors"), Path("b/x/edit.safetensors")])
        ['a/x', 'b/x']
    """
    parts = []
    for path in paths:
        folders = [part for part in path.parent.parts if part != path.anchor]
        parts.append([*folders, *([] if path.stem == USUAL and folders else [path.stem])])
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-count:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def _checked(names: Sequence[str], number: int) -> list[str]:
    """Return names that were given, one an edit."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if len(names) != number or twice is not None or not all(name.strip() for name in names):
        raise InputError(
            f"names: got {list(names)}, but each of the {number} edits needs a name of its own; "
            "give as many different ones, or leave names out"
        )
    return list(names)
