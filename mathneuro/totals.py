"""Adding norms up over texts, in float64."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mathneuro.errors import InputError

LARGEST = 2**14
"""Numbers a text that are added up at once, or one vector if it is longer: that takes little."""

Vector = tuple[int, torch.device]
"""How many numbers a vector has, and where it is; a model may be spread over several devices."""


class Totals:
    """Sums of norms over texts, by the name of what reads them.

    Args:
        leading: ``(draws,)``, or ``()`` for one draw whose sums have no dimension for draws.

    Example:
        >>> totals = Totals(())
        >>> totals.add({"a": torch.ones(2, 3)}, {"b": "a"}, ["one", "two"], None)
        >>> totals.by_name()["b"]
        tensor([2., 2., 2.], dtype=torch.float64)
    """

    def __init__(self, leading: tuple[int, ...]) -> None:
        self._leading = leading
        self._vectors: dict[str, Vector] = {}
        self._same_as: dict[str, str] = {}
        self._sums: list[Tensor] = []

    def add(
        self,
        norms: dict[str, Tensor],
        same_as: dict[str, str],
        texts: Sequence[str],
        counts: Tensor | None,
    ) -> None:
        """Add the norms of a batch.

        Args:
            norms: Norms, ``[texts, features]``, by name.
            same_as: Names of what reads the same as another one.
            texts: How to name each text to the user.
            counts: How often each text counts, ``[texts]`` or ``[draws, texts]``. None: once.

        Raises:
            InputError: If a norm is not finite, or the names are not those of the batch before.
        """
        if not norms:
            return
        vectors = {name: (each.shape[1], each.device) for name, each in norms.items()}
        if self._sums and (vectors, same_as) != (self._vectors, self._same_as):
            raise InputError(
                "model: its linear layers ran in another way than for the texts before, but each "
                "must run once for every text; this kind of model is not supported"
            )
        weights = torch.ones((*self._leading, len(texts))) if counts is None else counts
        sums = []
        for names in _groups(vectors):
            joined = torch.cat([norms[name] for name in names], dim=1)
            if not bool(torch.isfinite(joined).all()):
                _refuse({name: norms[name] for name in names}, texts)
            sums.append(weights.to(joined.device, torch.float64) @ joined.to(torch.float64))
        if self._sums:
            sums = [before + now for before, now in zip(self._sums, sums, strict=True)]
        self._vectors, self._same_as, self._sums = vectors, dict(same_as), sums

    def by_name(self) -> dict[str, Tensor]:
        """Return the sums, ``[features]`` or ``[draws, features]``, by name."""
        totals: dict[str, Tensor] = {}
        for names, sums in zip(_groups(self._vectors), self._sums, strict=True):
            parts = torch.split(sums, [self._vectors[name][0] for name in names], dim=-1)
            totals |= dict(zip(names, parts, strict=True))
        return totals | {name: totals[source] for name, source in self._same_as.items()}


def _groups(vectors: dict[str, Vector]) -> list[list[str]]:
    """Put names of vectors on the same device together, but no more than can be joined."""
    groups: list[list[str]] = []
    last: dict[torch.device, tuple[list[str], int]] = {}
    for name, (width, device) in vectors.items():
        group, room = last.get(device, ([], 0))
        if not group or width > room:
            group, room = [], LARGEST
            groups.append(group)
        group.append(name)
        last[device] = group, room - width
    return groups


def _refuse(norms: dict[str, Tensor], texts: Sequence[str]) -> None:
    for name, each in norms.items():
        finite = torch.isfinite(each).all(dim=1).tolist()
        if not all(finite):
            raise InputError(
                f"activations: the input of {name.removesuffix('.weight')} holds NaN or Inf "
                f"for {texts[finite.index(False)]}, but every activation must be finite; load "
                "the model in another dtype (float32 or bfloat16), or leave that text out"
            )
