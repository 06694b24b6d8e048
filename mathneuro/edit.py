"""An edit: a selection and the factor that its parameters are multiplied by."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError
from mathneuro.files import read_tensors, write_tensors
from mathneuro.selection import Selection
from mathneuro.storage import Stored, let_go, numbers, stored_parameters
from mathneuro.weights import Weight, find_stored

FORMAT = "mathneuro-edit-1"


def check_factor(
    factor: float, weights: Mapping[str, Weight], where: str = "intervention.factor"
) -> None:
    """Refuse a factor with which a weight could leave the range of its type, or has left it.

    Args:
        factor: What selected weights are multiplied by.
        weights: The weights that could be selected, by name.
        where: The option that gave it, for messages.

    Raises:
        InputError: If the factor or a weight is not finite, or the largest weight times the factor
            is more than the weight's type can hold.
    """
    if not math.isfinite(factor):
        raise InputError(
            f"{where}: got {factor}, but it must be a finite number; 0 prunes, 1.1 scales up"
        )
    for name, each in {each.parameter_name: each for each in weights.values()}.items():
        parameter = numbers(each.module, each.attribute)
        largest = float(parameter.detach().abs().max())
        if not math.isfinite(largest):
            raise InputError(
                f"model: the weight {name} holds NaN or Inf, but every weight must be finite; load "
                "it in another model.dtype, or get the checkpoint again"
            )
        limit = torch.finfo(parameter.dtype).max
        if largest * abs(factor) > limit:
            raise InputError(
                f"{where}: got {factor}, but {name} holds {largest:.3g}, and their "
                f"product is more than {parameter.dtype} can hold ({limit:.3g}); use a "
                "smaller factor or another model.dtype"
            )


@dataclass
class Edit:
    """A selection of parameters and the factor to multiply them by.

    Positions are flat positions in the two-dimensional matrix as it is stored, of a parameter or
    of one expert's slice of one, whichever way round it is stored.

    Attributes:
        selection: The parameters.
        factor: 0 prunes, 1.1 scales up; the other parameters stay as they are, bit for bit.
        model: Which model it is for: its name and the hash of its weights.
        data: Fingerprints of the texts that it was identified on, by set.

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

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Multiply the selected parameters in this block; restore them bit for bit at its end."""
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
            InputError: If the model has no such weight, or one of another shape.
        """
        stored = self._stored(model)
        saved = {}
        with torch.no_grad():
            for name, positions in self.selection.positions.items():
                saved[name] = stored[name].take(positions)
                stored[name].put(positions, saved[name] * self.factor)
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

    def save(self, path: Path) -> None:
        """Write all of it to one safetensors file, positions rather than weights."""
        tensors = {
            name: positions.to(torch.int32 if _numel(shape) < 2**31 else torch.int64)
            for (name, positions), shape in zip(
                self.selection.positions.items(), self.selection.shapes.values(), strict=True
            )
        }
        metadata = {
            "format": FORMAT,
            "factor": self.factor,
            "shapes": self.selection.shapes,
            "origin": self.selection.origin,
            "model": self.model,
            "data": self.data,
        }
        write_tensors(path, tensors, metadata)

    @classmethod
    def load(cls, path: Path) -> "Edit":
        """Read what `save` wrote.

        Raises:
            InputError: If the file is missing, damaged or of another kind, or holds positions
                outside of its weights.
        """
        tensors, metadata = read_tensors(
            path, FORMAT, ("factor", "shapes", "origin", "model", "data"), "edit"
        )
        shapes = {name: tuple(shape) for name, shape in metadata["shapes"].items()}
        for name, positions in tensors.items():
            valid = name in shapes and positions.dim() == 1 and not positions.is_floating_point()
            inside = positions.numel() == 0 or (
                valid and int(positions.min()) >= 0 and int(positions.max()) < _numel(shapes[name])
            )
            if not valid or not inside or bool((positions.diff() <= 0).any()):
                raise InputError(
                    f"edit: {path} holds positions for {name} that are not rising positions in "
                    "that weight; make the edit again with `operate`"
                )
        selection = Selection(
            {name: tensor.to(torch.int64) for name, tensor in tensors.items()},
            shapes,
            metadata["origin"],
        )
        return cls(selection, float(metadata["factor"]), metadata["model"], metadata["data"])

    def _stored(self, model: nn.Module) -> dict[str, Stored]:
        """Find the matrices of the selection in a model, and check their shapes."""
        parameters = stored_parameters(model)
        stored = {}
        for name, shape in self.selection.shapes.items():
            found = find_stored(parameters, name)
            if found is None or found.shape != torch.Size(shape):
                raise InputError(
                    f"edit: it is for a weight {name} of shape {list(shape)}, but the model has "
                    f"{'none of that name' if found is None else list(found.shape)}; use the model "
                    "that the edit was made for"
                )
            stored[name] = found
        return stored


def _numel(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
