"""The tops of a model's weights, found as they are needed."""

import hashlib
from collections.abc import Sequence

from torch import Tensor

from mathneuro.cutoffs import Cutoff, find_cutoffs
from mathneuro.selection import number_selected
from mathneuro.top import find_tops


class Tops:
    """The tops of a model's weights, found as they are needed; their cutoffs are kept.

    They hold for weights of one name as long as these stay what they are. Importance may differ
    from one look to the next: the same numbers give what was found before.

    Args:
        proportions: Shares of each weight's parameters that will be asked for: where a cutoff is
            missing, those of all of them are found at once. Others can be asked for too.
        together: Whether the tops of all of them are found together and kept until another weight
            or other importance is asked for: that is faster if they are asked for in a row.

    Example:
        >>> import torch
        >>> tops = Tops([0.25, 0.75])
        >>> ones = torch.ones(2, dtype=torch.float64)
        >>> tops.find("0.weight", torch.tensor([[1.0, -3.0], [3.0, 2.0]]), [ones], 0.75)
        tensor([1, 2, 3])
    """

    def __init__(self, proportions: Sequence[float] = (), together: bool = False) -> None:
        self.proportions = proportions
        self.together = together
        self._cutoffs: dict[tuple[str, bytes], dict[int, Cutoff]] = {}
        self._latest: tuple[list[tuple[str, bytes]], dict[int, Tensor]] = [], {}

    def find(
        self, name: str, weight: Tensor, vectors: Sequence[Tensor], proportion: float
    ) -> Tensor:
        """Find the parameters that are in a weight's top for one set of texts, and for no other.

        Args:
            name: Name of the weight.
            weight: The weight, of shape ``[out, in]``.
            vectors: ``a`` of that set and of each other one, of shape ``[in]``, float64.
            proportion: Which share of the scores are the highest.

        Returns:
            Their flat positions, int64 in rising order.

        Raises:
            InputError: If a score is NaN or Inf.
        """
        keys = [(name, _digest(vector)) for vector in vectors]
        count = number_selected(weight.numel(), proportion)
        if self._latest[0] == keys and count in self._latest[1]:
            return self._latest[1][count]
        counts = {number_selected(weight.numel(), each) for each in self.proportions} | {count}
        for key, vector in zip(keys, vectors, strict=True):
            if count not in self._cutoffs.get(key, {}):
                found = find_cutoffs(weight, vector, counts)
                self._cutoffs.setdefault(key, {}).update(found)
        wanted = sorted(counts) if self.together else [count]
        ends = [[self._cutoffs[key][each] for key in keys] for each in wanted]
        tops = dict(zip(wanted, find_tops(weight, vectors, ends), strict=True))
        if self.together:
            self._latest = keys, tops
        return tops[count]


def _digest(vector: Tensor) -> bytes:
    """Return what tells the numbers of a vector from others."""
    numbers = vector.detach().cpu().contiguous().numpy()
    return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()
