"""Ablation: as many parameters as `mathneuro` selects, but any."""

import torch
from torch import Tensor

from mathneuro.kernels import true_positions
from mathneuro.methods.base import Candidates
from mathneuro.methods.mathneuro import mathneuro


def random(candidates: Candidates) -> Tensor:
    """Select as many random parameters of a weight as `mathneuro` selects there, seeded."""
    drawn = candidates.generator().choice(
        candidates.weight.numel(), size=mathneuro(candidates).numel(), replace=False, shuffle=False
    )
    mask = torch.zeros(candidates.weight.numel(), dtype=torch.bool)
    mask[torch.from_numpy(drawn)] = True
    return true_positions(mask)
