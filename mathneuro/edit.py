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

FORMAT = "mathneuro-edit-1"


def check_factor(
    factor: float, linears: Mapping[str, nn.Linear], where: str = "intervention.factor"
) -> None:
    """Refuse a factor with which a weight could leave the range of its type, or has left it.

    Args:
        factor: What selected weights are multiplied by.
        linears: The modules whose weights could be selected, by the name of their weight.
        where: The option that gave it, for messages.

    Raises:
        InputError: If the factor or a weight is not finite, or the largest weight times the factor
            is more than the weight's type can hold.
    """
    if not math.isfinite(factor):
        raise InputError(
            f"{where}: got {factor}, but it must be a finite number; 0 prunes, 1.1 scales up"
        )
    for name, linear in linears.items():
        largest = float(linear.weight.detach().abs().max())
        if not math.isfinite(largest):
            raise InputError(
                f"model: the weight {name} holds NaN or Inf, but every weight must be finite; load "
                "it in another model.dtype, or get the checkpoint again"
            )
        limit = torch.finfo(linear.weight.dtype).max
        if largest * abs(factor) > limit:
            raise InputError(
                f"{where}: got {factor}, but {name} holds {largest:.3g}, and their "
                f"product is more than {linear.weight.dtype} can hold ({limit:.3g}); use a "
                "smaller factor or another model.dtype"
            )


@dataclass
class Edit:
    """A selection of parameters and the factor to multiply them by.

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
            model: The model; every selected weight must be a parameter of it.

        Returns:
            The values before, by the name of the weight: what `undo` needs.

        Raises:
            InputError: If the model has no such weight, or one of another shape.
        """
        self._check_shapes(model)
        saved = {}
        with torch.no_grad():
            for name, positions in self.selection.positions.items():
                weight = model.get_parameter(name)
                place = _place(weight, positions)
                saved[name] = weight[place].clone()
                weight[place] = saved[name] * self.factor
        return saved

    def undo(self, model: nn.Module, saved: Mapping[str, Tensor]) -> None:
        """Put the values back that `apply` returned."""
        with torch.no_grad():
            for name, values in saved.items():
                weight = model.get_parameter(name)
                place = _place(weight, self.selection.positions[name])
                weight[place] = values.to(weight.device)

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

    def _check_shapes(self, model: nn.Module) -> None:
        parameters = dict(model.named_parameters(remove_duplicate=False))
        for name, shape in self.selection.shapes.items():
            found = parameters[name].shape if name in parameters else None
            if found != torch.Size(shape):
                raise InputError(
                    f"edit: it is for a weight {name} of shape {list(shape)}, but the model has "
                    f"{'none of that name' if found is None else list(found)}; use the model that "
                    "the edit was made for"
                )


def _numel(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def _place(weight: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
    """Turn flat positions into one index a dimension, since a weight need not be contiguous."""
    return torch.unravel_index(positions.to(weight.device), weight.shape)
