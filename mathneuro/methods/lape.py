"""Comparison: neurons that are active on math more than on other texts, by their entropy."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mathneuro.errors import InputError
from mathneuro.methods.base import Choice, WholeModel
from mathneuro.selection import number_selected

PERCENTILE = 95
"""Of all probabilities; what is above it counts as active."""

DECIMALS = 12
"""Decimals to which entropies are compared, so that rounding decides no tie."""

NOT_COUNTED = (
    "importance: it holds no activations of neurons, which the method lape needs; measure again "
    "with selection.method lape, or with importance.activations true"
)
"""What is said of importance without activations."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Chosen:
    """Neurons that were kept.

    Attributes:
        kept: Which neurons, in rising order.
        belongs: Whether each of them belongs to each set, ``[kept, sets]``.
    """

    kept: Numbers
    belongs: NDArray[np.bool_]


def choose_neurons(probabilities: Floats, proportion: float) -> Chosen:
    """Keep the neurons whose activity differs most between sets of texts.

    As METHOD.md, "LAPE", has it (Tang et al. 2024, arXiv 2402.16438): neurons that are above the
    95th percentile of all probabilities in no set are dropped. Of the others those with the lowest
    entropy over the sets are kept, equal ones in the order of neurons: as many as the proportion
    of *all* neurons, rounded down, or all if fewer are left. Each belongs to the sets in which it
    is above the percentile.

    Args:
        probabilities: Share of each set's tokens at which each neuron is active, float64 of shape
            ``[neurons, sets]``.
        proportion: Share of all neurons to keep, from 0 to 1.

    Example:
        >>> rare = np.full((38, 2), 0.1)
        >>> chosen = choose_neurons(np.vstack([[[0.9, 0.1], [0.2, 0.8]], rare]), 0.05)
        >>> chosen.kept.tolist(), chosen.belongs.tolist()
        ([0, 1], [[True, False], [True, True]])
    """
    above = probabilities > activity_threshold(probabilities)
    candidates = np.flatnonzero(above.any(axis=1))
    order = np.argsort(entropies(probabilities[candidates]).round(DECIMALS), kind="stable")
    count = number_selected(len(probabilities), proportion)
    kept = np.sort(candidates[order[:count]])
    return Chosen(kept, above[kept])


def activity_threshold(probabilities: Floats) -> float:
    """Return the 95th percentile of all probabilities, of all neurons and sets together.

    Between two of them it is interpolated linearly, which is NumPy's default.
    """
    return float(np.percentile(probabilities, PERCENTILE)) if probabilities.size else 0.0


def entropies(probabilities: Floats) -> Floats:
    """Return the entropy of each neuron's probabilities over the sets, normalised, in nats.

    0 log 0 is 0.

    Args:
        probabilities: Of shape ``[neurons, sets]``, each row with a number above 0.

    Example:
        >>> entropies(np.array([[0.3, 0.0], [0.2, 0.2]])).round(3).tolist()
        [0.0, 0.693]
    """
    shares = probabilities / probabilities.sum(axis=1, keepdims=True)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    # Subtracted from 0, since the negative of 0 would be -0.
    found: Floats = 0 - (shares * logarithms).sum(axis=1)
    return found


def lape(model: WholeModel) -> Choice:
    """Select the columns of output projections that math neurons are multiplied with.

    Multiplying a neuron by a factor is multiplying that column by it. The sets are the math set
    and the chosen calibration sets.

    Raises:
        InputError: If activations were not counted.
    """
    counts = _counts(model)
    rows = [torch.cat(list(each.values())) for each in counts.values()]
    tokens = torch.tensor([model.importance.tokens[name] for name in counts])
    active = torch.stack(rows, dim=1).to(torch.float64)
    chosen = choose_neurons((active / tokens).numpy(), model.proportion)
    # The math set comes first.
    math = torch.from_numpy(chosen.kept[chosen.belongs[:, 0]])
    positions: dict[str, Tensor] = {}
    first = 0
    for name, each in counts[model.math].items():
        own = math[(math >= first) & (math < first + len(each))] - first
        height, width = model.weights[name].out_features, len(each)
        positions[name] = (torch.arange(height)[:, None] * width + own).flatten()
        first += len(each)
    return Choice(positions, {"neurons": len(math), "of_neurons": first})


def _counts(model: WholeModel) -> dict[str, dict[str, Tensor]]:
    """Return the counts of each set, by weight in the order of weights; the math set first."""
    sets = (model.math, *(name for name in model.calibration if name != model.math))
    activations = model.importance.activations
    names = [name for name in model.weights if name in activations.get(model.math, {})]
    if not names or any(name not in activations.get(each, {}) for each in sets for name in names):
        raise InputError(NOT_COUNTED)
    empty = next((each for each in sets if model.importance.tokens[each] == 0), None)
    if empty is not None:
        raise InputError(f"importance: set {empty} has no tokens, but lape needs some; add texts")
    return {each: {name: activations[each][name] for name in names} for each in sets}
