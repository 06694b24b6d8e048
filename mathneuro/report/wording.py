"""How numbers and names are written, in tables and figures alike."""

import math
from collections.abc import Sequence

from mathneuro.digits import change_text
from mathneuro.estimates import Estimate
from mathneuro.report.cells import are_perplexities
from mathneuro.report.roles import Roles
from mathneuro.scores import Score, is_perplexity


def model_name(source: str) -> str:
    """Shorten where a model came from to its name.

    Example:
        >>> model_name("org/Tiny-1B"), model_name("models/tiny/")
        ('Tiny-1B', 'tiny')
    """
    return source.rstrip("/").rpartition("/")[2] or source


def samples(num_samples: int | None) -> str:
    """Name a number of texts.

    Example:
        >>> samples(500), samples(1), samples(None)
        ('500 texts a set', '1 text a set', 'all texts')
    """
    if num_samples is None:
        return "all texts"
    return f"{num_samples:,} text{'' if num_samples == 1 else 's'} a set"


def short_samples(num_samples: int | None) -> str:
    """Name a number of texts in a file's or a run's name."""
    return "all" if num_samples is None else f"n{num_samples}"


def scores_name(labels: Sequence[str]) -> str:
    """Name some scores in full, as the mean that is shown of them.

    Example:
        >>> scores_name(["race acc"]), scores_name(["race acc", "mmlu acc"])
        ('race acc', 'mean of race acc, mmlu acc')
        >>> scores_name(["perplexity race", "perplexity mmlu"])
        'geometric mean of perplexity race, perplexity mmlu'
    """
    if len(labels) == 1:
        return labels[0]
    return f"{'geometric mean' if are_perplexities(labels) else 'mean'} of {', '.join(labels)}"


def math_name(roles: Roles) -> str:
    """Name what stands for math, and say where it is a guess.

    Example:
        >>> math_name(Roles(("race acc",), (), is_guessed=True))
        'race acc, as the first task; --math names another'
    """
    guess = ", as the first task; --math names another" if roles.is_guessed else ""
    return scores_name(roles.math) + guess


def score(label: str, value: Score) -> str:
    """Write a score with its standard error.

    Example:
        >>> score("race acc", Score(0.35, 0.0337, 200))
        '0.350 ± 0.034'
    """
    if not math.isfinite(value.value):
        return "no number"
    shown = _number(value.value, is_perplexity(label))
    if value.standard_error is None:
        return shown
    error = f"{value.standard_error:.2g}" if is_perplexity(label) else f"{value.standard_error:.3f}"
    return f"{shown} ± {error}"


def level(labels: Sequence[str], estimate: Estimate) -> str:
    """Write the mean of some scores with its interval.

    Example:
        >>> level(["race acc"], Estimate(0.35, 0.28, 0.42))
        '0.350 [0.280, 0.420]'
    """
    if not math.isfinite(estimate.value):
        return "no number"
    shown = _number(estimate.value, are_perplexities(labels))
    if estimate.low is None or estimate.high is None:
        return shown
    ends = [_number(end, are_perplexities(labels)) for end in (estimate.low, estimate.high)]
    return f"{shown} [{', '.join(ends)}]"


def change(labels: Sequence[str], estimate: Estimate) -> str:
    """Write a change with its interval: a difference, or the ratio of perplexities.

    Example:
        >>> change(["race acc"], Estimate(-0.1, -0.15, -0.05))
        '-0.100 [-0.150, -0.050]'
        >>> change(["perplexity race"], Estimate(1.25))
        'x 1.25'
        >>> change(["perplexity race"], Estimate(1.0004, 1.0001, 1.0007))
        'x 1.0004 [1.0001, 1.0007]'
    """
    if not math.isfinite(estimate.value):
        return ""
    ratio = are_perplexities(labels)
    return change_text(estimate.value, estimate.low, estimate.high, ratio)


def _number(value: float, perplexity: bool) -> str:
    return f"{value:.4g}" if perplexity else f"{value:.3f}"
