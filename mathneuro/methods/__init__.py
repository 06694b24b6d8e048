"""Selection methods: from a weight and its importance to the positions to edit."""

from collections.abc import Mapping, Sequence

from tqdm import tqdm

from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.methods.base import Candidates, Method
from mathneuro.methods.mathneuro import mathneuro
from mathneuro.methods.random import random
from mathneuro.methods.wanda import wanda
from mathneuro.selection import Selection
from mathneuro.weights import Weight

METHODS: dict[str, Method] = {"mathneuro": mathneuro, "random": random, "wanda": wanda}
"""The methods by name; a method of your own is added with ``METHODS["mine"] = function``."""

NEED_CALIBRATION = frozenset({"mathneuro", "random"})
"""Methods that are not defined without a calibration set."""

IGNORE_CALIBRATION = frozenset({"wanda"})
"""Methods that select the same whatever the calibration sets are."""

NO_DRAWS = frozenset({"mathneuro", "wanda"})
"""Methods that select the same whenever importance is the same."""

__all__ = [
    "IGNORE_CALIBRATION",
    "METHODS",
    "NEED_CALIBRATION",
    "NO_DRAWS",
    "Candidates",
    "Method",
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
) -> Selection:
    """Select parameters of every weight that takes part.

    Args:
        weights: The weights that take part, by name.
        importance: Importance of their inputs for the math set and the calibration sets.
        method: Name of one of `METHODS`.
        proportion: Share of each weight's parameters to choose, from 0 to 1.
        calibration: Which calibration sets are removed. None: all that were measured.
        math: Name of the math set.
        seed: Seed of methods that draw.
        repeat: Which of several draws with that seed, from 1.
        progress: Whether a bar is shown if it takes longer than two seconds.

    Returns:
        The selected positions of each weight as it is stored.

    Raises:
        InputError: If the method, a set or the proportion does not exist, or a weight is not
            finite.
    """
    check_method(method, proportion)
    chosen = calibration_sets(list(importance.sets), method, calibration, math)
    positions = {}
    disable = None if progress else True
    for name, weight in tqdm(weights.items(), "Selecting", disable=disable, delay=2, leave=False):
        candidates = Candidates(
            name=name,
            weight=weight.matrix,
            math=importance.sets[math][name],
            calibration=tuple(importance.sets[each][name] for each in chosen),
            proportion=proportion,
            seed=seed,
            repeat=repeat,
        )
        # Methods see [out, in] whichever way it is stored, so that ties fall alike.
        positions[name] = weight.stored_positions(METHODS[method](candidates)).cpu()
    return Selection(
        positions=positions,
        shapes={name: tuple(weight.stored.shape) for name, weight in weights.items()},
        origin={
            "method": method,
            "proportion": proportion,
            "math": math,
            "calibration": chosen,
            "seed": seed,
            "repeat": repeat,
        },
    )


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
    if method not in METHODS:
        raise InputError(
            f"{where}.method{plural}: got {method!r}, but it must be one of {', '.join(METHODS)}"
        )
    if not 0 <= proportion <= 1:
        raise InputError(
            f"{where}.proportion{plural}: got {proportion}, but it must lie between 0 and 1; 0.05 "
            "selects 5 % of each weight"
        )
