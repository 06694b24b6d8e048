"""Which weights of a model take part, and which are left alone and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError
from mathneuro.experts import expert_matrices, is_experts
from mathneuro.patterns import choose
from mathneuro.scope import Scope
from mathneuro.storage import User, users
from mathneuro.weights import Weight

NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Types whose values are the weights themselves, rather than a code for them."""

PACKED = ("qweight", "weight_packed")
"""Buffers that hold the weights of quantised layers."""


@dataclass(frozen=True)
class LeftAlone:
    """A parameter, or one expert's slice of one, that does not take part.

    Attributes:
        name: Its name in the model.
        parameters: How many numbers it holds.
        reason: Why it is left alone.
        covered: False if it is a weight matrix that the method should treat, but this version
            cannot; True if the method's definition or the user leaves it alone.
    """

    name: str
    parameters: int
    reason: str
    covered: bool


@dataclass(frozen=True)
class Coverage:
    """The weights of a model that take part, and all that is left alone.

    Attributes:
        weights: The weights that take part, by name.
        left_alone: Every other parameter.
    """

    weights: dict[str, Weight]
    left_alone: tuple[LeftAlone, ...]

    @property
    def parameters(self) -> int:
        """Number of parameters that take part."""
        return sum(weight.numel for weight in self.weights.values())

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

    def without(self, reasons: Mapping[str, str], covered: bool) -> "Coverage":
        """Return the coverage with some more weights left alone.

        Args:
            reasons: Why, by the name of a weight, or of a parameter with all its experts.
            covered: See `LeftAlone`.
        """
        kept, lost = {}, dict[str, LeftAlone]()
        for name, weight in self.weights.items():
            found = next((key for key in (name, weight.parameter_name) if key in reasons), None)
            if found is None:
                kept[name] = weight
            else:
                before = lost[found].parameters if found in lost else 0
                lost[found] = LeftAlone(found, before + weight.numel, reasons[found], covered)
        return Coverage(kept, (*self.left_alone, *lost.values()))


def find_linear_weights(
    model: nn.Module, include: Sequence[str] | None = None, exclude: Sequence[str] = ()
) -> Coverage:
    """Find every weight of a linear layer that is its own parameter.

    These are ``nn.Linear``, transformers' ``Conv1D`` (stored transposed), every matrix of every
    expert of a mixture of experts, and the routers of these. Sharing is found by storage, not by
    what a config says: a head that is tied to the embedding is left alone, an untied one takes
    part. Embeddings, norms and biases never do (METHOD.md, "Selection"), nor do parts of a
    multimodal model that are not its language model.

    Args:
        model: Any module.
        include: Patterns (`fnmatch`) of names of weights; only what matches one takes part. None:
            all.
        exclude: Patterns of names of weights that are left alone.

    Returns:
        The weights that take part, in the order in which the model names them.

    Raises:
        InputError: If no weight takes part, a pattern matches none, or a weight does not hold
            floating-point numbers (a quantised one, which must never be edited as if it were
            numbers).

    Example:
        >>> model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 3), nn.Linear(3, 2))
        >>> coverage = find_linear_weights(model)
        >>> list(coverage.weights), coverage.total, coverage.reasons()
        (['1.weight', '2.weight'], 51, {'embedding': 28, 'norm or bias': 5})
    """
    _refuse_packed(model)
    scope, routers = Scope(model), _routers(model)
    weights: dict[str, Weight] = {}
    left_alone: list[LeftAlone] = []
    for group in users(model):
        name, module, attribute = group[0]
        parameter: Tensor = getattr(module, attribute)
        outside = next(filter(None, (scope.outside(user[0]) for user in group)), None)
        found = _weights(group[0], routers) if len(group) == 1 else []
        for _, user, part in group:
            if part == "weight" and isinstance(user, nn.Linear):
                _check_type(name, parameter)
        if found and outside is None:
            _check_type(name, parameter)
            weights |= {weight.name: weight for weight in found}
        else:
            left_alone.append(
                LeftAlone(name, parameter.numel(), *(outside or _why_left_alone(group)))
            )
    if not weights:
        raise InputError(_nothing(model, left_alone))
    reasons = choose(weights, include, exclude)
    return Coverage(weights, tuple(left_alone)).without(reasons, covered=True)


def _weights(user: User, routers: set[nn.Module]) -> list[Weight]:
    """Return the weight matrices that a parameter holds, if it is one of a linear layer."""
    from transformers.pytorch_utils import Conv1D

    name, module, attribute = user
    if isinstance(module, Conv1D) and attribute == "weight":
        return [Weight(name, module, transposed=True)]
    if attribute == "weight" and (isinstance(module, nn.Linear) or module in routers):
        return [Weight(name, module)]
    if is_experts(module) and attribute in expert_matrices(module):
        return [
            Weight(f"{name}.{expert}", module, attribute, expert, bool(module.is_transposed))
            for expert in range(len(getattr(module, attribute)))
        ]
    return []


def _routers(model: nn.Module) -> set[nn.Module]:
    """Find the modules beside experts that hold one row of weights for each of them."""
    routers: set[nn.Module] = set()
    for module in model.modules():
        children = list(module.children())
        for experts in filter(is_experts, children):
            number = len(getattr(experts, expert_matrices(experts)[0]))
            for child in children:
                weight = dict(child.named_parameters(recurse=False)).get("weight")
                if weight is not None and weight.dim() == 2 and len(weight) == number:
                    routers.add(child)
    return routers


def _why_left_alone(group: list[User]) -> tuple[str, bool]:
    """Say why a parameter does not take part, and whether the method wants it so."""
    modules = [module for _, module, _ in group]
    _, module, attribute = group[0]
    if any(isinstance(module, nn.Embedding) for module in modules):
        return ("tied to the embedding" if len(group) > 1 else "embedding"), True
    if len(group) > 1:
        return "shared by several modules", True
    if getattr(module, attribute).dim() < 2 or attribute.endswith("bias"):
        return "norm or bias", True
    return f"a weight of {type(module).__name__}, which is no linear layer", False


def _check_type(name: str, parameter: Tensor) -> None:
    if parameter.dtype not in NUMBERS:
        raise InputError(
            f"model: the weight {name} holds {parameter.dtype} numbers, but an edit needs "
            "floating-point weights; load a checkpoint that is not quantised"
        )


def _refuse_packed(model: nn.Module) -> None:
    """Refuse layers that keep packed weights in buffers, where no parameter tells of them."""
    for name, buffer in model.named_buffers():
        if name.rpartition(".")[2] in PACKED:
            raise InputError(
                f"model: {name} holds packed weights ({buffer.dtype}), but an edit needs "
                "floating-point weights; load a checkpoint that is not quantised"
            )


def _nothing(model: nn.Module, left_alone: Sequence[LeftAlone]) -> str:
    missing = next((item.reason for item in left_alone if not item.covered), "")
    return (
        f"model: {type(model).__name__} has no weight of a linear layer of its own, but at least "
        "one is needed; choose a model with linear layers"
        + (f" (of its weights this is said: {missing})" if missing else "")
    )
