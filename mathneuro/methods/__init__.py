"""Selection methods: from weights and their importance to the positions to edit."""

from collections.abc import Mapping, Sequence

import torch
from tqdm import tqdm

from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.methods.base import Candidates, Choice, Method, ModelMethod, WholeModel
from mathneuro.methods.lape import lape
from mathneuro.methods.mathneuro import mathneuro
from mathneuro.methods.random import random
from mathneuro.methods.wanda import wanda
from mathneuro.selection import Selection
from mathneuro.storage import run_device
from mathneuro.tops import Tops
from mathneuro.weights import Weight

METHODS: dict[str, Method] = {"mathneuro": mathneuro, "random": random, "wanda": wanda}
"""The methods that look at one weight at a time, by name.

A method of your own is added with ``METHODS["mine"] = function``.
"""

MODEL_METHODS: dict[str, ModelMethod] = {"lape": lape}
"""The methods that look at all weights together, by name."""

NEED_CALIBRATION = frozenset({"lape", "mathneuro", "random"})
"""Methods that are not defined without a calibration set."""

NEED_ACTIVATIONS = frozenset({"lape"})
"""Methods that need to know how often neurons are active."""

IGNORE_CALIBRATION = frozenset({"wanda"})
"""Methods that select the same whatever the calibration sets are."""

NO_DRAWS = frozenset({"lape", "mathneuro", "wanda"})
"""Methods that select the same whenever importance is the same."""

__all__ = [
    "IGNORE_CALIBRATION",
    "METHODS",
    "MODEL_METHODS",
    "NEED_ACTIVATIONS",
    "NEED_CALIBRATION",
    "NO_DRAWS",
    "Candidates",
    "Choice",
    "Method",
    "ModelMethod",
    "WholeModel",
    "select",
]


def select(
    weights: Mapping[str, Weight],
    importance: Importance,
    method: str = "mathneuro",
    proportion: float = 0.05,
    calibration: Sequence[str] | None = None,
    math: str = "math",
    seed: int = 0,
    repeat: int = 1,
    progress: bool = False,
    tops: Tops | None = None,
) -> Selection:
    """Select parameters of the weights that take part.

    Args:
        weights: The weights that take part, by name.
        importance: Importance of their inputs for the math set and the calibration sets.
        method: Name of one of `METHODS` or `MODEL_METHODS`.
        proportion: Share of each weight's parameters to choose, from 0 to 1; for lape the share of
            all neurons.
        calibration: Which calibration sets are removed; for lape those that math is compared with.
            None: all that were measured.
        math: Name of the math set.
        seed: Seed of methods that draw.
        repeat: Which of several draws with that seed, from 1.
        progress: Whether a bar is shown if it takes longer than two seconds.
        tops: Makes another selection from the same weights a single pass over them at most,
            whatever its method, sets and importance. None: nothing is kept.

    Returns:
        The selected positions of each weight as it is stored.

    Raises:
        InputError: If the method, a set or the proportion does not exist, a weight is not finite,
            or the method needs activations that were not counted.
    """
    check_method(method, proportion)
    chosen = tuple(calibration_sets(list(importance.sets), method, calibration, math))
    model = WholeModel(weights, importance, math, chosen, proportion, seed, repeat)
    if method in MODEL_METHODS:
        choice = MODEL_METHODS[method](model)
    else:
        choice = _choose_in_each(model, METHODS[method], progress, tops or Tops())
    nothing = torch.empty(0, dtype=torch.int64)
    return Selection(
        # Methods see [out, in] whichever way it is stored, so that ties fall alike.
        positions={
            name: weight.stored_positions(choice.positions.get(name, nothing))
            for name, weight in weights.items()
        },
        shapes={name: weight.stored_shape for name, weight in weights.items()},
        origin={
            "method": method,
            "proportion": proportion,
            "math": math,
            "calibration": list(chosen),
            "seed": seed,
            "repeat": repeat,
            **choice.origin,
        },
        transposed=frozenset(name for name, weight in weights.items() if weight.transposed),
    )


def _choose_in_each(model: WholeModel, method: Method, progress: bool, tops: Tops) -> Choice:
    """Let a method that looks at one weight at a time choose in each weight."""
    positions = {}
    disable = None if progress else True
    weights = tqdm(model.weights.items(), "Selecting", disable=disable, delay=2, leave=False)
    sets = model.importance.sets
    for name, weight in weights:
        candidates = Candidates(
            name=name,
            # An offloaded weight is looked at where it runs: that is faster than on the CPU.
            weight=weight.matrix.to(run_device(weight.module)),
            math=sets[model.math][name],
            calibration=tuple(sets[each][name] for each in model.calibration),
            proportion=model.proportion,
            seed=model.seed,
            repeat=model.repeat,
            tops=tops,
        )
        positions[name] = method(candidates).cpu()
    return Choice(positions)


def calibration_sets(
    names: Sequence[str],
    method: str,
    calibration: Sequence[str] | None,
    math: str = "math",
    where: str = "selection.calibration",
) -> list[str]:
    """Tell which calibration sets are removed.

    Args:
        names: All sets that there are, the math set included.
        method: Name of the method.
        calibration: The sets that were asked for. None: all.
        math: Name of the math set.
        where: The option that asked for them, for messages.

    Raises:
        InputError: If a set does not exist, or the method needs one and there is none.
    """
    others = [name for name in names if name != math]
    chosen = others if calibration is None else list(calibration)
    if math not in names:
        raise InputError(
            f"{where}: a set {math!r} was not measured, but it is needed; measure it first"
        )
    for name in chosen:
        if name not in others:
            raise InputError(
                f"{where}: got {name!r}, but no calibration set of that name was measured or is "
                f"given under data.calibration; choose from {others}"
            )
        if chosen.count(name) > 1:
            raise InputError(f"{where}: got {name!r} twice in one list; name it once")
    if method in NEED_CALIBRATION and not chosen:
        raise InputError(
            f"{where}: the method {method} needs a calibration set, but there is "
            "none; give one under data.calibration, or use the method wanda"
        )
    return chosen


def check_method(method: str, proportion: float, where: str = "selection") -> None:
    """Refuse a method or a proportion that does not exist.

    Args:
        method: Name of the method.
        proportion: Share of each weight's parameters.
        where: The section that gave them, for messages: selection or grid.

    Raises:
        InputError: If so.
    """
    plural = "s" if where == "grid" else ""
    known = METHODS | MODEL_METHODS
    if method not in known:
        raise InputError(
            f"{where}.method{plural}: got {method!r}, but it must be one of {', '.join(known)}"
        )
    if not 0 <= proportion <= 1:
        raise InputError(
            f"{where}.proportion{plural}: got {proportion}, but it must lie between 0 and 1; 0.05 "
            "selects 5 % of each weight"
        )
