"""As many digits as a reader needs to tell numbers apart."""

from collections.abc import Sequence
from itertools import pairwise

MOST = 15
"""Digits beyond these are rounding errors of double precision."""


def change_text(
    value: float, low: float | None, high: float | None, ratio: bool, least: int = 3
) -> str:
    """Write a change with its interval; see `change_texts`.

    Example:
        >>> change_text(1.25, 1.2, 1.3, ratio=True), change_text(-0.1, None, None, ratio=False)
        ('x 1.25 [1.2, 1.3]', '-0.100')
    """
    ends = [end for end in (low, high) if end is not None]
    shown, *interval = change_texts([value, *ends], ratio, least)
    text = f"x {shown}" if ratio else shown
    return f"{text} [{', '.join(interval)}]" if len(interval) == 2 else text


def change_texts(values: Sequence[float], ratio: bool, least: int = 3) -> list[str]:
    """Write a change and the ends of its interval, no two different ones alike.

    Args:
        values: Finite differences, or ratios of perplexities.
        ratio: Whether they are ratios, which 1 leaves unchanged, and not differences.
        least: Digits that are always written: significant ones of ratios, decimals of differences.

    Returns:
        The values as text, in order. None reads as one of the others, or as no change, that is not.

    Example:
        >>> change_texts([1.0000400, 1.00001, 1.00007], ratio=True)
        ['1.00004', '1.00001', '1.00007']
        >>> change_texts([-0.1, -0.15, 0.0], ratio=False)
        ['-0.100', '-0.150', '+0.000']
    """
    neutral = 1.0 if ratio else 0.0
    numbers = sorted({*values, neutral})
    for digits in range(least, MOST + 1):
        pattern = f"{{:.{digits}g}}" if ratio else f"{{:+.{digits}f}}"
        shown = [float(pattern.format(value)) for value in numbers]
        if all(low < high for low, high in pairwise(shown)):
            break
    return [pattern.format(value + 0.0) for value in values]
