"""A selection of parameters, weight by weight."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


def number_selected(parameters: int, proportion: float) -> int:
    """Return ``k = int(parameters * proportion)``, rounded down (METHOD.md, "Selection").

    Example:
        >>> number_selected(1999, 0.001)
        1
    """
    return int(parameters * proportion)


@dataclass
class Selection:
    """Positions of parameters in the weights of a model.

    Attributes:
        positions: For each weight that takes part, the flat positions of the selected
            parameters in the matrix as it is stored, int64 in rising order.
        shapes: The shape of each of these matrices as it is stored: ``[out, in]``, or ``[in, out]``
            where a layer keeps it transposed.
        origin: How they were chosen: method, proportion, sets of texts, seed.
        transposed: Names of the weights that are stored as ``[in, out]``.
    """

    positions: dict[str, Tensor]
    shapes: dict[str, tuple[int, ...]]
    origin: dict[str, Any] = field(default_factory=dict)
    transposed: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """How many parameters are selected."""
        return sum(positions.numel() for positions in self.positions.values())

    def sha256(self) -> str:
        """Return a hash of all positions; equal selections have equal ones."""
        digest = hashlib.sha256()
        for name in sorted(self.positions):
            positions = self.positions[name]
            digest.update(f"{name} {positions.numel()} ".encode())
            digest.update(positions.cpu().contiguous().to(torch.int64).numpy().tobytes())
        return digest.hexdigest()

    def mask(self, weight: str) -> Tensor:
        """Return the selection of one weight as a bool tensor of its shape as it is stored."""
        shape = self.shapes[weight]
        mask = torch.zeros(shape, dtype=torch.bool)
        mask.view(-1)[self.positions[weight].cpu()] = True
        return mask
