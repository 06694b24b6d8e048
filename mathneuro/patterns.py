"""Choosing weights by patterns of their names."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from mathneuro.errors import InputError


def choose(
    names: Iterable[str], include: Sequence[str] | None, exclude: Sequence[str]
) -> dict[str, str]:
    """Say which weights are left alone because of their names.

    Args:
        names: Names of all weights.
        include: Patterns; only what matches one of them takes part. None: all.
        exclude: Patterns of what is left alone.

    Returns:
        Why, by the name of each weight that is left alone.

    Raises:
        InputError: If a pattern matches no name, or no weight is left.

    Example:
        >>> choose(["a.q", "a.k", "head"], ["a.*"], ["*.k"])
        {'a.k': 'excluded by *.k', 'head': 'not among the included'}
    """
    every = list(names)
    check_matches("model.include", include or (), every)
    check_matches("model.exclude", exclude, every)
    reasons = {}
    for name in every:
        excluded = next((pattern for pattern in exclude if fnmatchcase(name, pattern)), None)
        if excluded is not None:
            reasons[name] = f"excluded by {excluded}"
        elif include is not None and not any(fnmatchcase(name, pattern) for pattern in include):
            reasons[name] = "not among the included"
    if len(reasons) == len(every):
        raise InputError(
            f"model.{'exclude' if exclude else 'include'}: got {list(exclude or include or ())}, "
            "but no weight is left then; include more, or exclude less"
        )
    return reasons


def check_matches(option: str, patterns: Iterable[str], names: list[str]) -> None:
    """Refuse a pattern that matches no name.

    Args:
        option: The option that gave the patterns, for the message.
        patterns: The patterns.
        names: Names of all weights.

    Raises:
        InputError: If there is one; the message tells names that are close to it.
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(
                f"{option}: got {pattern!r}, but no weight that could take part has such a name; "
                f"close to it are {', '.join(_close(pattern, names))}"
            )


def _close(pattern: str, names: list[str]) -> list[str]:
    """Return up to three names that look like a pattern."""
    plain = pattern.strip("*?")
    near = get_close_matches(plain, names, 3, 0.0)
    parts = {part: name for name in reversed(names) for part in name.split(".")}
    inside = get_close_matches(plain, parts, 3, 0.6)
    return list(dict.fromkeys([parts[part] for part in inside] + near))[:3]
