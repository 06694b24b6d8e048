"""Edits of one model made into one: what any, all or only the first of them selects."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.selection import Selection

Operation = Callable[[Tensor, Tensor], Tensor]


def union(first: Tensor, second: Tensor) -> Tensor:
    """Return the positions that are in either, int64 in rising order."""
    together: Tensor = torch.cat([first, second]).unique()
    return together


def intersection(first: Tensor, second: Tensor) -> Tensor:
    """Return the positions that are in both, int64 in rising order."""
    return first[torch.isin(first, second, assume_unique=True)]


def difference(first: Tensor, second: Tensor) -> Tensor:
    """Return the positions of the first that are not in the second, int64 in rising order."""
    return first[torch.isin(first, second, assume_unique=True, invert=True)]


OPERATIONS: dict[str, Operation] = {
    "union": union,
    "intersection": intersection,
    "difference": difference,
}
"""What can be done with two lists of positions, by name."""


def combine(
    edits: Sequence[Edit],
    how: str,
    factor: float | None = None,
    names: Sequence[str] = (),
) -> Edit:
    """Make one edit of several.

    Args:
        edits: Edits of one model, two or more.
        how: ``union``: what any of them selects; ``intersection``: what all select;
            ``difference``: what the first selects and no other.
        factor: What the parameters are multiplied by. None: what all edits say.
        names: What the edits are called in messages. Empty: their numbers.

    Returns:
        An edit whose origin and data tell of all.

    Raises:
        InputError: If the edits are not of one model, or their factors differ and none is given.

    Example:
        >>> def edit(*positions: int) -> Edit:
        ...     return Edit(Selection({"w": torch.tensor(positions)}, {"w": (2, 3)}), 0.0)
        >>> combine([edit(0, 1, 4), edit(1, 2)], "difference").selection.positions
        {'w': tensor([0, 4])}
    """
    if how not in OPERATIONS:
        raise InputError(f"how: got {how!r}, but it must be one of {', '.join(OPERATIONS)}")
    if len(edits) < 2:
        raise InputError(f"edits: got {len(edits)}, but at least two are needed to be combined")
    called = list(names) or [f"edit {number}" for number in range(1, len(edits) + 1)]
    first = edits[0]
    for name, edit in zip(called[1:], edits[1:], strict=True):
        _check_same(called[0], first, name, edit, factor)
    positions = {
        weight: reduce(OPERATIONS[how], (edit.selection.positions[weight] for edit in edits))
        for weight in first.selection.shapes
    }
    origin = {
        "method": how,
        "of": [{"name": name, **each.selection.origin}
               for name, each in zip(called, edits, strict=True)],
    }  # fmt: skip
    selection = Selection(positions, first.selection.shapes, origin, first.selection.transposed)
    factors = first.factors if factor is None else {}
    chosen = first.factor if factor is None else factor
    edit = Edit(selection, chosen, first.model, _data(called, edits), factors)
    return edit.with_factors()


def _data(names: Sequence[str], edits: Sequence[Edit]) -> dict[str, Any]:
    """Keep the fingerprints of all sets; those of one name may be of different texts."""
    data: dict[str, Any] = {}
    for name, edit in zip(names, edits, strict=True):
        for key, each in edit.data.items():
            if data.setdefault(key, each) != each:
                data[f"{key} of {name}"] = each
    return data


def _check_same(first_name: str, first: Edit, name: str, edit: Edit, factor: float | None) -> None:
    """Refuse an edit that cannot be combined with the first."""
    shapes, others = first.selection.shapes, edit.selection.shapes
    hashes = [each.model.get("weight_hash") for each in (first, edit)]
    if shapes != others or hashes[0] != hashes[1]:
        weight = next((each for each in {**shapes, **others}
                       if shapes.get(each) != others.get(each)), None)  # fmt: skip
        why = f"their weights differ ({weight})" if weight else f"weights {hashes[0]}, {hashes[1]}"
        raise InputError(
            f"edits: {first_name} and {name} are not of one model ({why}), but only edits of one "
            "can be combined; make them with the same model, dtype, include and exclude"
        )
    if factor is None and (first.factor, first.factors) != (edit.factor, edit.factors):
        raise InputError(
            f"factor: {first_name} multiplies by {_factors(first)} and {name} by {_factors(edit)}, "
            "but the result can have one factor; give it"
        )


def _factors(edit: Edit) -> str:
    return f"{edit.factor:g}" + (" and others" if edit.factors else "")
