"""What a selection method sees and gives."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from mathneuro.importance import scores
from mathneuro.selection import number_selected, top_positions


@dataclass(frozen=True)
class Candidates:
    """One weight and all that is known about it.

    Attributes:
        name: Name of the weight.
        weight: The weight, of shape ``[out, in]``.
        math: Importance of its inputs for the math set, ``[in]``, float64.
        calibration: The same for each calibration set.
        proportion: Share of the weight's parameters to choose, between 0 and 1.
        seed: Seed of methods that draw.
        repeat: Which of several draws with that seed, from 1.
    """

    name: str
    weight: Tensor
    math: Tensor
    calibration: tuple[Tensor, ...]
    proportion: float
    seed: int
    repeat: int = 1

    def top(self, input_importance: Tensor) -> Tensor:
        """Return the flat positions of the highest scores for one set of texts."""
        count = number_selected(self.weight.numel(), self.proportion)
        return top_positions(scores(self.weight, input_importance), [count])[0]

    def generator(self) -> np.random.Generator:
        """Return a source of random numbers of this weight's own, whatever the order of weights."""
        return np.random.default_rng([self.seed, zlib.crc32(self.name.encode()), self.repeat - 1])


Method = Callable[[Candidates], Tensor]
"""A method gives the flat positions to select in ``[out, in]``, int64 in rising order."""
