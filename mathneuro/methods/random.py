"""Ablation: as many parameters as `mathneuro` selects, but any."""

import torch
from torch import Tensor

from mathneuro.methods.base import Candidates
from mathneuro.methods.mathneuro import mathneuro


def random(candidates: Candidates) -> Tensor:
    """Select as many random parameters of a weight as `mathneuro` selects there, seeded."""
    drawn = candidates.generator().choice(
        candidates.weight.numel(), size=mathneuro(candidates).numel(), replace=False, shuffle=False
    )
    return torch.from_numpy(drawn).to(torch.int64).sort().values
