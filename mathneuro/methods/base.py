"""What a selection method sees and gives."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from mathneuro.importance import Importance
from mathneuro.tops import Tops
from mathneuro.weights import Weight


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
        tops: What finds the tops of this weight.
    """

    name: str
    weight: Tensor
    math: Tensor
    calibration: tuple[Tensor, ...]
    proportion: float
    seed: int
    repeat: int = 1
    tops: Tops = field(default_factory=Tops)

    def top(self, input_importance: Tensor, without: Sequence[Tensor] = ()) -> Tensor:
        """Find the parameters with the highest scores for one set of texts.

        As many as the proportion says, rounded down; of equal scores the lower position wins.

        Args:
            input_importance: Importance of the weight's inputs for that set, ``[in]``, float64.
            without: The same for other sets; what is in the top for one of them is left out.

        Returns:
            Their flat positions, int64 in rising order.

        Raises:
            InputError: If a score is NaN or Inf.
        """
        vectors = [input_importance, *without]
        return self.tops.find(self.name, self.weight, vectors, self.proportion)

    def generator(self) -> np.random.Generator:
        """Return a source of random numbers of this weight's own, whatever the order of weights."""
        return np.random.default_rng([self.seed, zlib.crc32(self.name.encode()), self.repeat - 1])


Method = Callable[[Candidates], Tensor]
"""A method gives the flat positions to select in ``[out, in]``, int64 in rising order."""


@dataclass(frozen=True)
class WholeModel:
    """All weights that take part and all that is known about them.

    Attributes:
        weights: The weights, by name, in the order of the model.
        importance: What identification found.
        math: Name of the math set.
        calibration: Names of the calibration sets.
        proportion: Share to choose, between 0 and 1.
        seed: Seed of methods that draw.
        repeat: Which of several draws with that seed, from 1.
    """

    weights: Mapping[str, Weight]
    importance: Importance
    math: str
    calibration: tuple[str, ...]
    proportion: float
    seed: int
    repeat: int = 1


@dataclass(frozen=True)
class Choice:
    """What a method selects in a whole model.

    Attributes:
        positions: The flat positions to select in a weight's ``[out, in]``, int64 in rising order,
            by the name of the weight. Nothing is selected in weights that are not named.
        origin: What there is to say of how they were chosen.
    """

    positions: Mapping[str, Tensor]
    origin: Mapping[str, Any] = field(default_factory=dict)


ModelMethod = Callable[[WholeModel], Choice]
"""A method that looks at all weights together."""
