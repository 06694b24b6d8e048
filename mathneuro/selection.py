"""Exact selection of the parameters with the highest scores, weight by weight."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mathneuro.errors import InputError


def number_selected(parameters: int, proportion: float) -> int:
    """Return ``k = int(parameters * proportion)``, rounded down (METHOD.md, "Selection").

    Example:
        >>> number_selected(1999, 0.001)
        1
    """
    return int(parameters * proportion)


def top_positions(scores: Tensor, counts: Sequence[int]) -> list[Tensor]:
    """Find the positions of the highest scores, for several counts at once.

    Exactly ``count`` positions each; of equal scores the lower position wins.

    Args:
        scores: Scores of one weight, of any shape.
        counts: How many to select; 0 selects nothing.

    Returns:
        For each count the flat positions, int64, in rising order.

    Raises:
        InputError: If a score is NaN or Inf.

    Example:
        >>> top_positions(torch.tensor([[1.0, 3.0], [3.0, 2.0]]), [0, 1, 3])
        [tensor([], dtype=torch.int64), tensor([1]), tensor([1, 2, 3])]
    """
    flat = scores.flatten()
    if not bool(torch.isfinite(flat).all()):
        raise InputError(
            "scores: a weight or its importance holds NaN or Inf, but every score must be finite; "
            "check the model's weights"
        )
    most = max(counts, default=0)
    if most == 0:
        return [torch.empty(0, dtype=torch.int64, device=flat.device) for _ in counts]
    threshold = flat.kthvalue(flat.numel() - most + 1).values
    # All scores that tie with the threshold are candidates; the stable sort keeps equal ones in
    # the order of their positions, so that the cut below drops the higher positions.
    candidates = (flat >= threshold).nonzero().flatten()
    order = flat[candidates].sort(descending=True, stable=True).indices
    ranked = candidates[order]
    return [ranked[:count].sort().values for count in counts]


def difference(positions: Tensor, removed: Tensor) -> Tensor:
    """Return the positions that are not among the removed ones, in rising order.

    Example:
        >>> difference(torch.tensor([1, 4, 6]), torch.tensor([4, 5]))
        tensor([1, 6])
    """
    return positions[~torch.isin(positions, removed, assume_unique=True)]


@dataclass
class Selection:
    """Positions of parameters in the weights of a model.

    Attributes:
        positions: For each weight that takes part, the flat positions of the selected
            parameters in the matrix as it is stored, int64 in rising order.
        shapes: The shape of each of these matrices as it is stored: ``[out, in]``, or ``[in, out]``
            where a layer keeps it transposed.
        origin: How they were chosen: method, proportion, sets of texts, seed.
    """

    positions: dict[str, Tensor]
    shapes: dict[str, tuple[int, ...]]
    origin: dict[str, Any] = field(default_factory=dict)

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
