"""One weight matrix that takes part: where it is stored, and whose input it is multiplied with."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from mathneuro.storage import Stored, numbers


@dataclass(frozen=True)
class Weight:
    """A weight matrix of a model: a whole parameter, or one expert's slice of one.

    Attributes:
        name: Its name in the model: that of the parameter, followed by the expert's number if it
            is a slice, such as ``model.layers.0.mlp.experts.gate_up_proj.3``.
        module: The module that holds the parameter, and whose input the matrix is multiplied with.
        attribute: The parameter's name in the module.
        expert: Which slice of the parameter's first dimension it is. None: all of the parameter.
        transposed: Whether it is stored as ``[in, out]``; otherwise as ``[out, in]``.

    Example:
        >>> weight = Weight("0.weight", nn.Linear(3, 2))
        >>> weight.in_features, weight.out_features, tuple(weight.stored.shape)
        (3, 2, (2, 3))
    """

    name: str
    module: nn.Module
    attribute: str = "weight"
    expert: int | None = None
    transposed: bool = False

    @property
    def parameter(self) -> Tensor:
        """The parameter that holds it, maybe among others; its numbers may be elsewhere."""
        parameter: Tensor = getattr(self.module, self.attribute)
        return parameter

    @property
    def parameter_name(self) -> str:
        """The parameter's name in the model."""
        return self.name if self.expert is None else self.name.rpartition(".")[0]

    @property
    def stored(self) -> Tensor:
        """The matrix as it is stored, two-dimensional; see `mathneuro.storage.numbers`."""
        return numbers(self.module, self.attribute, self.expert).detach()

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the matrix as it is stored."""
        return tuple(self.parameter.shape[-2:])

    @property
    def matrix(self) -> Tensor:
        """The matrix as ``[out, in]``."""
        return self.stored.t() if self.transposed else self.stored

    @property
    def in_features(self) -> int:
        """How many features it reads."""
        return self.parameter.shape[-2 if self.transposed else -1]

    @property
    def out_features(self) -> int:
        """How many features it gives."""
        return self.parameter.shape[-1 if self.transposed else -2]

    @property
    def numel(self) -> int:
        """How many parameters it holds."""
        return self.in_features * self.out_features

    def stored_positions(self, positions: Tensor) -> Tensor:
        """Turn flat positions in ``[out, in]`` into flat positions in the matrix as it is stored.

        Args:
            positions: Flat positions ``row * in + column`` in `matrix`.

        Returns:
            Flat positions in `stored`, in rising order.

        Example:
            >>> import torch
            >>> weight = Weight("w", nn.Linear(2, 3), transposed=True)
            >>> weight.out_features, weight.in_features
            (2, 3)
            >>> weight.stored_positions(torch.tensor([1, 2]))
            tensor([2, 4])
        """
        if not self.transposed:
            return positions
        rows, columns = positions // self.in_features, positions % self.in_features
        return (columns * self.out_features + rows).sort().values


def find_stored(parameters: Mapping[str, Stored], name: str) -> Stored | None:
    """Find a matrix by its name, as it is stored.

    Args:
        parameters: The parameters of a model, by name.
        name: Name of a parameter, or of one expert's slice of a three-dimensional one.

    Returns:
        The parameter or the slice. None: there is none of that name.
    """
    if name in parameters:
        return parameters[name]
    prefix, _, expert = name.rpartition(".")
    stack = parameters.get(prefix)
    if stack is None or len(stack.shape) != 3 or not expert.isdecimal():
        return None
    return stack.part(int(expert)) if int(expert) < stack.shape[0] else None
