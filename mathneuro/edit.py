"""An edit: a selection and the factors that its parameters are multiplied by."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mathneuro.edit_file import read_edit, write_edit
from mathneuro.errors import InputError
from mathneuro.factors import check_factor, factors_by_name
from mathneuro.selection import Selection
from mathneuro.storage import Stored, let_go, stored_parameters, users
from mathneuro.weights import Weight, find_stored

TIED = (
    "edit: it changes {name}, which is tied to another weight, but both would have to change; make "
    "the edit again with `operate`, which leaves tied weights alone"
)


@dataclass
class Edit:
    """A selection of parameters and the factors to multiply them by.

    Positions are flat positions in the two-dimensional matrix as it is stored, of a parameter or
    of one expert's slice of one, whichever way round it is stored.

    Attributes:
        selection: The parameters.
        factor: 0 prunes, 1.1 scales up; the other parameters stay as they are, bit for bit.
        model: Which model it is for: its name and the hash of its weights.
        data: Fingerprints of the texts that it was identified on, by set.
        factors: Factors of weights that have one of their own, by name.

    Example:
        >>> linear = nn.Linear(2, 1, bias=False)
        >>> _ = nn.init.constant_(linear.weight, 3.0)
        >>> edit = Edit(Selection({"weight": torch.tensor([1])}, {"weight": (1, 2)}), factor=0.5)
        >>> with edit.applied(linear):
        ...     print(linear.weight.data)
        tensor([[3.0000, 1.5000]])
        >>> linear.weight.data
        tensor([[3., 3.]])
    """

    selection: Selection
    factor: float
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)

    def factor_of(self, name: str) -> float:
        """Return what the selected parameters of a weight are multiplied by."""
        return self.factors.get(name, self.factor)

    def with_factors(
        self,
        factor: float | None = None,
        patterns: Mapping[str, float] | None = None,
        where: str = "",
    ) -> "Edit":
        """Return the same edit with other factors.

        Args:
            factor: What the parameters are multiplied by. None: what they were.
            patterns: Factors by patterns (`fnmatch`) of names of weights, such as
                ``{"*.down_proj.*": 0.5}``; of several that match a name the first counts. None:
                those that weights had of their own, unless a factor is given.
            where: The section that gave them, for messages, such as ``intervention.``.

        Raises:
            InputError: If a factor is not finite, or a pattern matches no weight of the edit.

        Example:
            >>> edit = Edit(Selection({}, {"a.q": (1, 2), "a.k": (1, 2)}), 0.0)
            >>> other = edit.with_factors(1.1, {"*.k": 0.9})
            >>> other.factor_of("a.q"), other.factor_of("a.k")
            (1.1, 0.9)
        """
        factors = self.factors if factor is None else {}
        if patterns is not None:
            factors = factors_by_name(patterns, self.selection.shapes, f"{where}factors")
        edit = replace(self, factor=self.factor if factor is None else factor, factors=factors)
        check_factor(edit.factor, {}, f"{where}factor")
        return edit

    @contextmanager
    def applied(self, model: nn.Module, check_hash: bool = True) -> Iterator[None]:
        """Multiply the selected parameters in this block; restore them bit for bit at its end.

        Args:
            model: The model.
            check_hash: Whether the hash of the model's weights must be the one that the edit was
                made for, if it states one. Without, the names and shapes of weights must fit.

        Raises:
            InputError: If the model is another one.
        """
        if check_hash and "weight_hash" in self.model:
            from mathneuro.loading import weight_hash

            self.check_model(weight_hash(model))
        saved = self.apply(model)
        try:
            yield
        finally:
            self.undo(model, saved)

    def apply(self, model: nn.Module) -> dict[str, Tensor]:
        """Multiply the selected parameters.

        Args:
            model: The model; every selected weight must be a parameter of it, or one expert's
                slice of a parameter.

        Returns:
            The values before, by the name of the weight: what `undo` needs.

        Raises:
            InputError: If the model has no such weight, one of another shape, or one that is tied
                to another weight.
        """
        stored = self._stored(model)
        saved = {}
        with torch.no_grad():
            for name, positions in self.selection.positions.items():
                saved[name] = stored[name].take(positions)
                stored[name].put(positions, saved[name] * self.factor_of(name))
        return saved

    def undo(self, model: nn.Module, saved: Mapping[str, Tensor]) -> None:
        """Put the values back that `apply` returned."""
        let_go(model)
        stored = self._stored(model)
        with torch.no_grad():
            for name, values in saved.items():
                stored[name].put(self.selection.positions[name], values)

    def check_model(self, weight_hash: str) -> None:
        """Refuse a model that the edit was not made for.

        Raises:
            InputError: If the hash of the model's weights is another one.
        """
        if self.model.get("weight_hash") != weight_hash:
            raise InputError(
                f"edit: it was made for {self.model.get('source')} with weights "
                f"{self.model.get('weight_hash')}, but the loaded model has {weight_hash}; load "
                "that model in the same dtype, or make the edit again with `operate`"
            )

    def check_factors(self, weights: Mapping[str, Weight]) -> None:
        """Refuse factors with which a weight could leave the range of its type; see `check_factor`.

        Args:
            weights: The weights that take part in the model, by name.
        """
        for factor in {self.factor_of(name) for name in weights}:
            mine = {name: each for name, each in weights.items() if self.factor_of(name) == factor}
            check_factor(factor, mine)

    def check_left_alone(self, reasons: Mapping[str, str]) -> None:
        """Refuse to change what was asked to be left alone.

        Args:
            reasons: Why a weight is left alone, by name.

        Raises:
            InputError: If a selected parameter lies in such a weight.
        """
        for name, positions in self.selection.positions.items():
            if positions.numel() and name in reasons:
                raise InputError(
                    f"edit: it changes {name}, which is to be left alone here ({reasons[name]}); "
                    "leave model.include and model.exclude out, or make the edit again with them"
                )

    def save(self, path: Path | str) -> None:
        """Write all of it to one safetensors file, positions rather than weights."""
        metadata = {
            "factor": self.factor,
            "factors": self.factors,
            "model": self.model,
            "data": self.data,
        }
        write_edit(Path(path), self.selection, metadata)

    @classmethod
    def load(cls, path: Path | str) -> "Edit":
        """Read what `save` wrote.

        Raises:
            InputError: If the file is missing, damaged or of another kind, or holds positions
                outside of its weights.
        """
        selection, metadata = read_edit(Path(path))
        return cls(selection, **metadata)

    def _stored(self, model: nn.Module) -> dict[str, Stored]:
        """Find the matrices of the selection in a model, and check their shapes."""
        parameters = stored_parameters(model)
        shared = {user[0] for group in users(model) if len(group) > 1 for user in group}
        stored = {}
        for name, shape in self.selection.shapes.items():
            found = find_stored(parameters, name)
            check_shape(name, shape, None if found is None else found.shape)
            parts = {name, name.rpartition(".")[0]}
            if self.selection.positions[name].numel() and not parts.isdisjoint(shared):
                raise InputError(TIED.format(name=name))
            if found is not None:
                stored[name] = found
        return stored


def check_shape(name: str, expected: tuple[int, ...], found: torch.Size | None) -> None:
    """Refuse a model whose weight is missing or of another shape than in an edit.

    Args:
        name: Name of the weight.
        expected: Its shape in the edit.
        found: Its shape in the model. None: there is none of that name.

    Raises:
        InputError: If so.
    """
    if found is None or tuple(found) != tuple(expected):
        raise InputError(
            f"edit: it is for a weight {name} of shape {list(expected)}, but the model has "
            f"{'none of that name' if found is None else list(found)}; use the model that the edit "
            "was made for"
        )
