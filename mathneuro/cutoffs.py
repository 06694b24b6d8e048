"""Where the top of a weight's scores ends: for many counts from one partition of the scores."""

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mathneuro.blocks import row_blocks
from mathneuro.errors import InputError
from mathneuro.importance import scores
from mathneuro.kernels import find_highest, true_positions
from mathneuro.selection import number_selected


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


def find_cutoffs(
    weight: Tensor, input_importance: Tensor, counts: Collection[int]
) -> dict[int, Cutoff]:
    """Find where the highest scores of a weight end, for several counts at once.

    Takes 8 bytes a parameter for the scores, which are partitioned in place, and little else.

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
    flat = torch.empty(weight.numel(), dtype=torch.float64, device=weight.device)
    for rows in row_blocks(weight):
        block = scores(weight[rows], input_importance, out=flat.view(weight.shape)[rows])
        if not _all_finite(block):
            raise InputError(
                "scores: a weight or its importance holds NaN or Inf, but every score must be "
                "finite; check the model's weights"
            )
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


def _all_finite(numbers: Tensor) -> bool:
    """Tell whether no number is NaN or Inf."""
    # No sum with one of them is finite. A sum without may be too large to be finite, too.
    return bool(numbers.sum().isfinite()) or bool(numbers.isfinite().all())


def _position_of_tie(weight: Tensor, input_importance: Tensor, value: float, number: int) -> int:
    """Return the flat position of the so many-th parameter whose score is the value."""
    for rows in row_blocks(weight):
        ties = true_positions(scores(weight[rows], input_importance) == value)
        if number <= len(ties):
            return int(rows.start * weight.shape[1] + ties[number - 1])
        number -= len(ties)
    raise RuntimeError(f"Fewer scores are {value} than the partition found.")


class Cutoffs:
    """The cutoffs of a model's weights, found as they are needed and kept.

    They hold for weights of one name as long as these stay what they are. Importance may differ
    from one look to the next: the same numbers give what was found before.

    Args:
        proportions: Shares of each weight's parameters that will be asked for: where a cutoff is
            missing, those of all of them are found at once. Others can be asked for too.

    Example:
        >>> cutoffs = Cutoffs([0.25, 0.75])
        >>> ones = torch.ones(2, dtype=torch.float64)
        >>> cutoffs.get("0.weight", torch.tensor([[1.0, -3.0], [3.0, 2.0]]), ones, 0.75)
        Cutoff(value=2.0, last=3)
    """

    def __init__(self, proportions: Sequence[float] = ()) -> None:
        self.proportions = proportions
        self._found: dict[tuple[str, bytes], dict[int, Cutoff]] = {}

    def get(self, name: str, weight: Tensor, input_importance: Tensor, proportion: float) -> Cutoff:
        """Return where the highest scores of a weight end.

        Args:
            name: Name of the weight.
            weight: The weight, of shape ``[out, in]``.
            input_importance: ``a`` of shape ``[in]``, float64.
            proportion: Which share of the scores are the highest.

        Raises:
            InputError: If a score is NaN or Inf.
        """
        numbers = input_importance.detach().cpu().contiguous().numpy()
        key = name, hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()
        found = self._found.setdefault(key, {})
        count = number_selected(weight.numel(), proportion)
        if count not in found:
            together = (proportion, *self.proportions)
            counts = {number_selected(weight.numel(), each) for each in together}
            found |= find_cutoffs(weight, input_importance, counts)
        return found[count]
