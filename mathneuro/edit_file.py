"""Edits on disk: gaps between positions, and what is known of them. Files may be a stranger's."""

import math
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from mathneuro.errors import InputError
from mathneuro.gaps import decode, encode
from mathneuro.selection import Selection
from mathneuro.stated import ORIGIN, fault, shown, source_fault
from mathneuro.tensor_files import read_tensors, write_tensors

FORMAT = "mathneuro-edit-3"
"""What a file states; the number changes with what a file holds."""

FIELDS = ("factor", "factors", "shapes", "transposed", "origin", "model", "data")
"""What every file states besides."""

LARGEST = 2**40
"""More parameters than any weight has, so that sums of sizes stay within 64 bits."""


def write_edit(path: Path, selection: Selection, metadata: dict[str, Any]) -> None:
    """Write an edit to one file, whole or not at all.

    Args:
        path: The file.
        selection: The parameters.
        metadata: Factors, model and data: see `mathneuro.edit.Edit`.
    """
    tensors = {name: encode(positions.cpu()) for name, positions in selection.positions.items()}
    described = {
        "format": FORMAT,
        "shapes": selection.shapes,
        "transposed": sorted(selection.transposed),
        "origin": selection.origin,
    }
    write_tensors(path, tensors, described | metadata)


def read_edit(path: Path) -> tuple[Selection, dict[str, Any]]:
    """Read what `write_edit` wrote; nothing of the file is believed before it is checked.

    Returns:
        The selection, and factors, model and data.

    Raises:
        InputError: If the file is missing, damaged or of another kind, or holds anything else than
            an edit does.
    """
    tensors, metadata = read_tensors(path, FORMAT, FIELDS, "edit")
    wrong = fault(metadata["origin"], ORIGIN, "origin")
    wrong = wrong or source_fault(metadata["model"], metadata["data"])
    for name in ("shapes", "factors"):
        wrong = wrong or fault(metadata[name], {}, name)
    if wrong is not None:
        _refuse(path, wrong)
    shapes = {
        name: _shape(path, name, shape, tensors) for name, shape in metadata["shapes"].items()
    }
    unknown = next((name for name in tensors if name not in shapes), None)
    if unknown is not None:
        _refuse(path, f"positions for {unknown}, but no shape of it")
    factors = {name: _factor(path, each) for name, each in metadata["factors"].items()}
    named = metadata["transposed"]
    if not isinstance(named, list) or not {*factors, *map(str, named)} <= shapes.keys():
        _refuse(path, "factors or transposed weights, of which it holds no positions")
    selection = Selection(
        {name: _positions(path, name, each, shapes[name]) for name, each in tensors.items()},
        shapes,
        metadata["origin"],
        frozenset(named),
    )
    kept = {"factor": _factor(path, metadata["factor"]), "factors": factors}
    return selection, kept | {name: metadata[name] for name in ("model", "data")}


def _shape(path: Path, name: str, shape: Any, tensors: dict[str, Tensor]) -> tuple[int, ...]:  # noqa: ANN401
    """Return the shape of a weight, if it can be one."""
    whole = isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape)
    if not whole or len(shape) != 2 or math.prod(shape) > LARGEST:
        _refuse(path, f"{shown(shape)} as the shape of {name}, which no weight has")
    if name not in tensors:
        _refuse(path, f"a shape of {name}, but no positions for it")
    return tuple(shape)


def _factor(path: Path, factor: Any) -> float:  # noqa: ANN401
    """Return a factor, if it is a finite number."""
    try:
        number = float(factor) if type(factor) in (int, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _refuse(path, f"the factor {shown(factor)}, which is no finite number")
    return number


def _positions(path: Path, name: str, encoded: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return positions, if they are rising positions in the weight."""
    parameters = math.prod(shape)
    # Positions take more room than gaps, and there cannot be more of them than parameters.
    if encoded.numel() > 2 * parameters:
        _refuse(path, f"{encoded.numel():,} gaps for {name}, which has {parameters:,} parameters")
    try:
        positions = decode(encoded)
    except ValueError as error:
        _refuse(path, f"gaps for {name} that are none ({error})")
    if positions.numel() and int(positions[-1]) >= parameters:
        _refuse(path, f"positions for {name} beyond its {parameters:,} parameters")
    return positions


def _refuse(path: Path, what: str) -> NoReturn:
    raise InputError(f"edit: {path} holds {what}; get the file again, or make it with `operate`")
