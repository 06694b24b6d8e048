"""The rows and columns of weights in which most parameters are selected."""

import heapq
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mathneuro.selection import Selection

Kind = Literal["row", "column"]
"""A row is an output of a weight, a column an input, whichever way round it is stored."""


@dataclass(frozen=True)
class Line:
    """One row or column of a weight.

    Attributes:
        weight: Name of the weight.
        kind: Whether it is a row or a column.
        index: Which, from 0.
        selected: How many of its parameters are selected.
        length: How many it has.
        expected: How many would be selected in it if as many of the weight's parameters were
            selected anywhere.
    """

    weight: str
    kind: Kind
    index: int
    selected: int
    length: int
    expected: float

    @property
    def share(self) -> float:
        """Share of its parameters that is selected."""
        return self.selected / self.length


def most_selected(selection: Selection, number: int) -> dict[Kind, list[Line]]:
    """Find the rows and the columns of which the largest share is selected.

    Args:
        selection: The selection.
        number: How many rows, and how many columns, to find at most.

    Returns:
        Of rows and of columns, the largest share first; of equal ones the earlier in the model.
        None without any selected parameter is among them.

    Example:
        >>> import torch
        >>> selection = Selection({"a": torch.tensor([1, 4, 5])}, {"a": (2, 3)})
        >>> found = most_selected(selection, 1)["column"][0]
        >>> found.index, found.selected, found.length, found.expected
        (1, 2, 2, 1.0)
    """
    lines: dict[Kind, list[Line]] = {"row": [], "column": []}
    for name, positions in selection.positions.items():
        height, width = selection.shapes[name]
        where = positions.cpu().numpy()
        density = len(where) / max(1, height * width)
        stored = (where // max(1, width), width), (where % max(1, width), height)
        kinds: tuple[Kind, Kind] = (
            ("column", "row") if name in selection.transposed else ("row", "column")
        )
        for kind, (indices, length) in zip(kinds, stored, strict=True):
            found, counts = np.unique(indices, return_counts=True)
            lines[kind] += [
                Line(name, kind, int(found[each]), int(counts[each]), length, density * length)
                for each in np.argsort(-counts, kind="stable")[:number]
            ]
    # Sorting keeps the order of equal ones.
    return {
        kind: heapq.nsmallest(number, each, key=lambda line: -line.share)
        for kind, each in lines.items()
    }
