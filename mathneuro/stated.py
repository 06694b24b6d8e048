"""What a file states of where it comes from, checked before anything relies on it."""

from collections.abc import Mapping
from typing import Any

MODEL: dict[str, type | tuple[type, ...]] = {
    "source": str, "weight_hash": str, "parameters": int,
}  # fmt: skip
"""What is relied on of the model."""

DATA: dict[str, type | tuple[type, ...]] = {"text_hashes": list, "distinct_texts": int}
"""What is relied on of each set of texts."""

ORIGIN: dict[str, type | tuple[type, ...]] = {
    "method": str, "proportion": (int, float), "math": str, "calibration": list, "seed": int,
    "repeat": int, "neurons": int, "of_neurons": int,
}  # fmt: skip
"""What is relied on of how parameters were chosen."""


def fault(content: object, kinds: Mapping[str, type | tuple[type, ...]], place: str) -> str | None:
    """Say what is wrong with an object of a file.

    Args:
        content: What the file holds.
        kinds: The types of the fields that matter; each may be missing.
        place: Where the file holds it.

    Returns:
        What it holds instead. None: nothing is wrong.

    Example:
        >>> fault({"seed": "0"}, ORIGIN, "origin"), fault({"seed": 0}, ORIGIN, "origin")
        ("'0' as origin.seed", None)
    """
    if not isinstance(content, dict):
        return f"{shown(content)} as {place}"
    for name, kind in kinds.items():
        value = content.get(name)
        # A bool is an int to Python, but no number to anybody else.
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            return f"{shown(value)} as {place}.{name}"
        if isinstance(value, list) and not all(isinstance(each, str) for each in value):
            return f"{shown(value)} as {place}.{name}"
    return None


def source_fault(model: object, data: object) -> str | None:
    """Say what is wrong with what a file states of its model and its sets of texts."""
    wrong = fault(model, MODEL, "model") or fault(data, {}, "data")
    if wrong is None and isinstance(data, dict):
        wrong = next(filter(None, (fault(data[name], DATA, f"data.{name}") for name in data)), None)
    return wrong


def shown(value: object) -> str:
    """Return a value in a few characters, none of which a terminal obeys."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def counts_fault(content: Any, place: str) -> str | None:  # noqa: ANN401
    """Say what is wrong with counts by name."""
    if not isinstance(content, dict):
        return f"{shown(content)} as {place}"
    wrong = (name for name, each in content.items() if type(each) is not int or each < 0)
    return next((f"{shown(content[name])} as {place}.{shown(name)}" for name in wrong), None)
