"""Where the top of a weight's scores ends: for many counts from one partition of the scores."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from mathneuro.errors import InputError
from mathneuro.kernels import find_highest, true_positions
from mathneuro.screening import screen

SAMPLE = 2**13
"""How many scores tell about where the cutoffs of all are."""


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The last of the highest scores of a weight.

    Attributes:
        value: The score.
        last: The highest flat position at which that score still is one of them; -1 if there are
            none.
    """

    value: float
    last: int

    def is_reached(self, scores: Tensor, positions: Tensor) -> Tensor:
        """Tell which scores, at which flat positions in rising order, are among the highest."""
        if len(positions) and self.last >= int(positions[-1]):
            return scores >= self.value
        return (scores > self.value) | ((scores == self.value) & (positions <= self.last))


def find_cutoffs(
    weight: Tensor, input_importance: Tensor, counts: Collection[int]
) -> dict[int, Cutoff]:
    """Find where the highest scores of a weight end, for several counts at once.

    Takes 16 bytes for each of the highest scores and for few others.

    Args:
        weight: Weight of shape ``[out, in]``.
        input_importance: ``a`` of shape ``[in]``, float64.
        counts: How many scores are the highest; of equal ones that at the lower position is.

    Returns:
        The cutoff of each count.

    Raises:
        InputError: If a score is NaN or Inf.

    Example:
        >>> ones = torch.ones(2, dtype=torch.float64)
        >>> find_cutoffs(torch.tensor([[1.0, -3.0], [3.0, 2.0]]), ones, [1, 3])
        {3: Cutoff(value=2.0, last=3), 1: Cutoff(value=3.0, last=1)}
    """
    _check_finite(weight, input_importance)
    flat = _highest(weight, input_importance, max(counts))
    _check_finite(flat)
    found = {}
    for count in sorted(set(counts), reverse=True):
        if count == 0:
            found[count] = Cutoff(math.inf, -1)
            continue
        # The highest of fewer are among the highest of more.
        flat, value, next_lower = find_highest(flat, count)
        last = weight.numel() - 1
        if next_lower == value:
            ties = int((flat == value).count_nonzero())
            last = _position_of_tie(weight, input_importance, value, ties)
        found[count] = Cutoff(value, last)
    return found


def _highest(weight: Tensor, input_importance: Tensor, count: int) -> Tensor:
    """Return the highest scores, at least so many, and all others that equal one of them."""
    if count == 0:
        return torch.empty(0, dtype=torch.float64)
    value = _estimate(weight, input_importance, count)
    while True:
        found = [each.scores(input_importance) for each in screen(weight, input_importance, value)]
        flat = torch.cat(found)
        if value == -math.inf or int((flat >= value).count_nonzero()) >= count:
            return flat
        value = -math.inf


def _estimate(weight: Tensor, input_importance: Tensor, count: int) -> float:
    """Estimate a score that a little more than so many parameters reach; -Inf if all might do."""
    size, width = weight.numel(), weight.shape[1]
    expected = count / size * SAMPLE
    # Four standard deviations more, so that hardly ever fewer reach it.
    rank = math.ceil(expected + 4 * math.sqrt(expected) + 4)
    if size <= 2 * SAMPLE or rank > SAMPLE:
        return -math.inf
    rows, columns = (each.to(weight.device) for each in _sample(size // width, width, SAMPLE))
    magnitudes = weight.detach()[rows, columns].double().abs()
    vector = input_importance.detach().to(weight.device)
    return find_highest(magnitudes * vector.index_select(0, columns), rank).lowest


@lru_cache
def _sample(rows: int, columns: int, number: int) -> tuple[Tensor, Tensor]:
    """Draw the rows and columns of some parameters, the same each time."""
    drawn = np.random.default_rng(0).integers((rows, columns), size=(number, 2))
    return torch.from_numpy(drawn[:, 0].copy()), torch.from_numpy(drawn[:, 1].copy())


def _check_finite(*tensors: Tensor) -> None:
    """Refuse NaN and Inf."""
    for numbers in tensors:
        # No sum with one of them is finite. A sum without may be too large to be finite, too.
        sum_of_all = numbers.sum(dtype=torch.promote_types(numbers.dtype, torch.float32))
        if not bool(sum_of_all.isfinite()) and not bool(numbers.isfinite().all()):
            raise InputError(
                "scores: a weight or its importance holds NaN or Inf, but every score must be "
                "finite; check the model's weights"
            )


def _position_of_tie(weight: Tensor, input_importance: Tensor, value: float, number: int) -> int:
    """Return the flat position of the so many-th parameter whose score is the value."""
    for screened in screen(weight, input_importance, value):
        ties = true_positions(screened.scores(input_importance) == value)
        if number <= len(ties):
            return int(screened.positions[ties[number - 1]])
        number -= len(ties)
    raise RuntimeError(f"Fewer scores are {value} than the partition found.")
