"""The method of the paper: what matters for math and not for the calibration texts."""

from torch import Tensor

from mathneuro.methods.base import Candidates


def mathneuro(candidates: Candidates) -> Tensor:
    """Select the top k for math less the top k for every calibration set (METHOD.md, "Selection").

    With several calibration sets a parameter that is in the top k of any of them is removed.
    """
    return candidates.top(candidates.math, without=candidates.calibration)
