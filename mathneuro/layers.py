"""Which weights of a model take part, and which are left alone and why."""

from collections import Counter
from dataclasses import dataclass

from torch import nn

from mathneuro.errors import InputError


@dataclass(frozen=True)
class LeftAlone:
    """A parameter that never takes part.

    Attributes:
        name: The parameter's name in the model.
        parameters: How many numbers it holds.
        reason: Why it is left alone.
        covered: False if it is a weight matrix that the method should treat, but this version
            cannot; True if the method's definition leaves it alone.
    """

    name: str
    parameters: int
    reason: str
    covered: bool


@dataclass(frozen=True)
class Coverage:
    """The weights of a model that take part, and all that is left alone.

    Attributes:
        linears: The linear modules that take part, by the name of their weight.
        left_alone: Every other parameter.
    """

    linears: dict[str, nn.Linear]
    left_alone: tuple[LeftAlone, ...]

    @property
    def parameters(self) -> int:
        """Number of parameters that take part."""
        return sum(linear.weight.numel() for linear in self.linears.values())

    @property
    def total(self) -> int:
        """Number of parameters of the model; shared ones count once."""
        return self.parameters + sum(item.parameters for item in self.left_alone)

    @property
    def share(self) -> float:
        """Share of the model's parameters that takes part, between 0 and 1."""
        return self.parameters / self.total

    def not_covered(self) -> tuple[LeftAlone, ...]:
        """List the weight matrices that the method should treat, but this version cannot."""
        return tuple(item for item in self.left_alone if not item.covered)

    def reasons(self) -> dict[str, int]:
        """Count the parameters that are left alone, by reason."""
        counts: Counter[str] = Counter()
        for item in self.left_alone:
            counts[item.reason] += item.parameters
        return dict(counts)


def find_linear_weights(model: nn.Module) -> Coverage:
    """Find every ``nn.Linear`` weight of a model that is its own parameter.

    Sharing is found by storage, not by what a config says: a head that is tied to the embedding is
    left alone, an untied one takes part. Embeddings, norms and biases never do (METHOD.md,
    "Selection").

    Args:
        model: Any module.

    Returns:
        The weights that take part, in the order in which the model names them.

    Raises:
        InputError: If no weight takes part, or a linear weight does not hold floating-point
            numbers (a quantised one, which must never be edited as if it were numbers).

    Example:
        >>> model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 3), nn.Linear(3, 2))
        >>> coverage = find_linear_weights(model)
        >>> list(coverage.linears), coverage.total, coverage.reasons()
        (['1.weight', '2.weight'], 51, {'embedding': 28, 'norm or bias': 5})
    """
    owners = _owners(model)
    linears: dict[str, nn.Linear] = {}
    left_alone: list[LeftAlone] = []
    for users in owners.values():
        name, module, attribute = users[0]
        parameter = getattr(module, attribute)
        linear = next((user for _, user, _ in users if isinstance(user, nn.Linear)), None)
        if linear is not None and attribute == "weight" and not parameter.is_floating_point():
            raise InputError(
                f"model: the weight {name} holds {parameter.dtype} numbers, but an edit needs "
                "floating-point weights; load a checkpoint that is not quantised"
            )
        if isinstance(module, nn.Linear) and attribute == "weight" and len(users) == 1:
            linears[name] = module
        else:
            reason, covered = _why_left_alone(users)
            left_alone.append(LeftAlone(name, parameter.numel(), reason, covered))
    if not linears:
        missing = next((item.reason for item in left_alone if not item.covered), "")
        raise InputError(
            f"model: {type(model).__name__} has no nn.Linear weight of its own, but at least one "
            "is needed; choose a model with linear layers"
            + (f" (its weights are each {missing}, and not covered yet)" if missing else "")
        )
    return Coverage(linears, tuple(left_alone))


def _owners(model: nn.Module) -> dict[object, list[tuple[str, nn.Module, str]]]:
    """Group all parameters by storage: every name, module and attribute that uses it."""
    owners: dict[object, list[tuple[str, nn.Module, str]]] = {}
    for module_name, module in model.named_modules():
        for attribute, parameter in module.named_parameters(recurse=False):
            name = f"{module_name}.{attribute}" if module_name else attribute
            address = parameter.data_ptr() or id(parameter)
            key = (parameter.device, address, parameter.numel())
            owners.setdefault(key, []).append((name, module, attribute))
    return owners


def _why_left_alone(users: list[tuple[str, nn.Module, str]]) -> tuple[str, bool]:
    """Say why a parameter does not take part, and whether the method wants it so."""
    modules = [module for _, module, _ in users]
    _, module, attribute = users[0]
    if any(isinstance(module, nn.Embedding) for module in modules):
        return ("tied to the embedding" if len(users) > 1 else "embedding"), True
    if len(users) > 1:
        return "shared by several modules", True
    if getattr(module, attribute).dim() < 2:
        return "norm or bias", True
    return f"a weight of {type(module).__name__}, which is not an nn.Linear", False
