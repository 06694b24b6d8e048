"""What selected parameters are multiplied by: one factor, and others for some of the weights."""

import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import torch

from mathneuro.errors import InputError
from mathneuro.patterns import check_matches
from mathneuro.storage import numbers
from mathneuro.weights import Weight


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


def factors_by_name(
    patterns: Mapping[str, float], names: Iterable[str], where: str = "intervention.factors"
) -> dict[str, float]:
    """Tell which weights have a factor of their own.

    Args:
        patterns: Factors by patterns (`fnmatch`) of names of weights; of several that match a name
            the first counts.
        names: Names of all weights.
        where: The option that gave the patterns, for messages.

    Returns:
        The factors of those weights whose name matches, by name.

    Raises:
        InputError: If a factor is not finite, or a pattern matches no name.

    Example:
        >>> names = ["layers.0.q_proj.weight", "layers.0.down_proj.weight", "head.weight"]
        >>> factors_by_name({"*.down_proj.*": 0.5, "layers.*": 1.1}, names)
        {'layers.0.q_proj.weight': 1.1, 'layers.0.down_proj.weight': 0.5}
    """
    every = list(names)
    check_matches(where, patterns, every)
    for pattern, factor in patterns.items():
        check_factor(factor, {}, f"{where}.{pattern}")
    found = {}
    for name in every:
        first = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
        if first is not None:
            found[name] = float(patterns[first])
    return found
