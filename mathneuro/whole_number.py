"""The type of options that are whole numbers, however they are written: 100, or 1e2."""

from contextlib import suppress
from typing import TYPE_CHECKING

from jsonargparse.typing import register_type

if TYPE_CHECKING:
    WholeNumber = int
else:

    class WholeNumber(int):
        """A whole number on the command line or in a config."""


def whole_number(value: object) -> int:
    """Read a whole number.

    Args:
        value: What the command line or a config holds.

    Raises:
        ValueError: If it is no whole number.

    Example:
        >>> whole_number("1e2"), whole_number(100.0), whole_number("7")
        (100, 100, 7)
    """
    number: object = value
    if isinstance(value, str):
        with suppress(ValueError):
            number = float(value) if any(letter in value for letter in ".eE") else int(value)
    if isinstance(number, float) and number.is_integer():
        return int(number)
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    raise ValueError(f"Expected a {WholeNumber}. Got value: {value}")


register_type(
    WholeNumber,
    serializer=int,
    deserializer=whole_number,
    type_check=lambda value, _type: type(value) is int,
)
