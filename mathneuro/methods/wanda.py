"""Ablation: what matters for math, whether or not it matters for other texts."""

from torch import Tensor

from mathneuro.methods.base import Candidates


def wanda(candidates: Candidates) -> Tensor:
    """Select the top k for math alone (Wanda, arXiv 2306.11695; METHOD.md, "Selection")."""
    return candidates.top(candidates.math)
