"""The grid of a sweep: every setting that is tried."""

import hashlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from mathneuro.data.draws import DrawKey
from mathneuro.data.spec import MATH
from mathneuro.errors import InputError
from mathneuro.methods import IGNORE_CALIBRATION, NO_DRAWS, calibration_sets, check_method
from mathneuro.scores import is_perplexity
from mathneuro.whole_number import WholeNumber

BEFORE = "before"
"""Name of the model without any edit, among the settings."""

PROPORTIONS = (0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15)
"""The proportions of the paper."""

LONGEST_SETS = 80
"""Characters of the names of calibration sets that stand in a setting's name."""


@dataclass(frozen=True)
class Setting:
    """One point of the grid.

    Attributes:
        method: Name of the selection method.
        calibration: The calibration sets that are removed, together.
        num_samples: How many texts of each set importance is summed over. None: all, each once.
        repeat: Which of several draws of texts, from 1.
        proportion: Share of each weight's parameters that counts as its top.
        factor: What the selected parameters are multiplied by.

    Example:
        >>> Setting("mathneuro", ("race",), 500, 1, 0.05, 0.0).name
        'mathneuro_race_n500_r1_p0.05_x0'
    """

    method: str
    calibration: tuple[str, ...]
    num_samples: int | None
    repeat: int
    proportion: float
    factor: float

    @property
    def draw(self) -> DrawKey:
        """The draw of texts that it uses."""
        return DrawKey(self.num_samples, self.repeat)

    @property
    def name(self) -> str:
        """Name of the setting, fit for a file."""
        sets = "+".join(quote(each, safe="") for each in self.calibration)
        if len(sets) > LONGEST_SETS:
            # Files cannot have names of any length.
            sets = f"{sets[:LONGEST_SETS]}-{hashlib.sha256(sets.encode()).hexdigest()[:12]}"
        numbers = [self.draw.name, f"p{_exact(self.proportion)}", f"x{_exact(self.factor)}"]
        return "_".join([self.method, *filter(None, [sets]), *numbers])

    def record(self) -> dict[str, Any]:
        """Return its fields as JSON can hold them."""
        return {**asdict(self), "calibration": list(self.calibration)}


@dataclass(frozen=True)
class Grid:
    """What a sweep tries: every combination. The defaults are the paper's.

    Attributes:
        methods: Selection methods. One that needs no calibration set (wanda) runs once, not once a
            calibration set.
        calibration: Calibration sets, one run each; a list of names in place of a name removes
            those sets together. null: each set that data.calibration has, one by one.
        repeats: How many times texts are drawn anew.
        proportions: Shares of each weight's parameters that count as its top; for lape shares of
            all neurons.
        factors: What selected parameters are multiplied by: 0 prunes, 1.1 scales up.
        num_samples: Numbers of texts drawn from each set. null: data.num_samples alone.
        math: Scores that stand for math in tables and figures: names of tasks, tasks with a metric
            ("gsm8k_cot exact_match,flexible-extract"), or "perplexity SET". null: the first task.
        others: Scores that stand for everything else. null: all other tasks.
        samples: Whether every question with its answer is kept, setting by setting; the outcome of
            every question is kept in any case.
    """

    methods: list[str] = field(default_factory=lambda: ["mathneuro", "wanda", "random"])
    calibration: list[str | list[str]] | None = None
    repeats: WholeNumber = 5
    proportions: list[float] = field(default_factory=lambda: list(PROPORTIONS))
    factors: list[float] = field(default_factory=lambda: [0.0])
    num_samples: list[WholeNumber] | None = None
    math: list[str] | None = None
    others: list[str] | None = None
    samples: bool = False

    def check(self) -> None:
        """Refuse what can be seen to be wrong without the data.

        Raises:
            InputError: If a list is empty or names something twice, or a value makes no sense.
        """
        lists: dict[str, Sequence[Hashable] | None] = {
            "methods": self.methods,
            "proportions": self.proportions,
            "factors": self.factors,
            "num_samples": self.num_samples,
            "calibration": None if self.calibration is None else _together(self.calibration),
        }
        for label, values in lists.items():
            if values is None:
                continue
            twice = [value for value in values if values.count(value) > 1]
            if not values or () in values:
                raise InputError(
                    f"grid.{label}: got an empty list, but it must hold at least one value; fill "
                    "it, or leave it out"
                )
            if twice:
                raise InputError(
                    f"grid.{label}: got {twice[0]!r} twice, but it must hold each value once; "
                    "remove one"
                )
        self._check_values()
        self._check_scores()

    def _check_values(self) -> None:
        """Refuse methods that do not exist, and numbers that make no sense."""
        for method in self.methods:
            check_method(method, 0.0, "grid")
        for proportion in self.proportions:
            check_method(self.methods[0], proportion, "grid")
        for factor in self.factors:
            if not math.isfinite(factor):
                raise InputError(
                    f"grid.factors: got {factor}, but each must be a finite number; 0 prunes, 1.1 "
                    "scales up"
                )
        for number in (self.repeats, *(self.num_samples or ())):
            if number < 1:
                label = "repeats" if number == self.repeats else "num_samples"
                raise InputError(f"grid.{label}: got {number}, but it must be at least 1")

    def _check_scores(self) -> None:
        """Refuse scores that cannot stand for math and for the rest."""
        both = set(self.math or ()) & set(self.others or ())
        if both:
            raise InputError(
                f"grid.others: got {min(both)!r}, which stands for math too, but a score can stand "
                "for one of them; name it once"
            )
        for label, scores in {"math": self.math, "others": self.others}.items():
            kinds = {is_perplexity(score) for score in scores or ()}
            if scores is not None and len(kinds) != 1:
                held = "an empty list" if not scores else "perplexities and other scores"
                raise InputError(
                    f"grid.{label}: got {held}, but it must hold scores of one kind, as only these "
                    "have a mean; mend the list, or leave it out"
                )

    def draws(self, num_samples: int | None) -> list[DrawKey]:
        """Return every draw of texts that the grid needs.

        Args:
            num_samples: How many texts are drawn if the grid does not say.
        """
        numbers: Sequence[int | None] = self.num_samples or [num_samples]
        return [
            DrawKey(number, repeat) for number in numbers for repeat in range(1, self.repeats + 1)
        ]

    def settings(self, names: Sequence[str], num_samples: int | None) -> list[Setting]:
        """Return every setting; those that share a selection stand side by side.

        Args:
            names: Names of all sets of texts, the math set included.
            num_samples: How many texts are drawn if the grid does not say.

        Raises:
            InputError: If a calibration set does not exist, or a method needs one and there is
                none.
        """
        self.check()
        others = [name for name in names if name != MATH]
        together = _together(others if self.calibration is None else self.calibration)
        for each in together:
            calibration_sets(names, self.methods[0], each, where="grid.calibration")
        # The order in which sets are removed does not matter, so that it is always the same.
        together = [tuple(sorted(each, key=others.index)) for each in together]
        twice = [each for each in together if together.count(each) > 1]
        if twice:
            raise InputError(
                f"grid.calibration: got {list(twice[0])} twice, but each run must remove other "
                "sets; remove one"
            )
        settings = []
        for method in self.methods:
            chosen = [()] if method in IGNORE_CALIBRATION else together or [()]
            for each in chosen:
                calibration_sets(names, method, each, where="grid.calibration")
            settings += [
                Setting(method, calibration, draw.num_samples, draw.repeat, proportion, factor)
                for draw in self.draws(num_samples)
                # All texts, each once, are the same texts in every repeat.
                if draw.repeat == 1 or draw.num_samples is not None or method not in NO_DRAWS
                for calibration in chosen
                for proportion in self.proportions
                for factor in self.factors
            ]
        return settings


def _exact(number: float) -> str:
    """Write a number as short as can be, but so that no other number is written alike."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def _together(calibration: Sequence[str | list[str]]) -> list[tuple[str, ...]]:
    """Return the sets that are removed together, run by run."""
    return [(each,) if isinstance(each, str) else tuple(each) for each in calibration]
