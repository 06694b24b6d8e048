"""Numbers as people write them, and when two of them are the same answer."""

import re
from decimal import Decimal
from fractions import Fraction

LONGEST = 300
"""Characters of a text that can be a number."""

LARGEST_EXPONENT = 400
"""Of powers of ten; beyond it numbers would take more memory than they are worth."""

RELATIVE = Fraction(1, 10**6)
"""How far a value may be from the reference, as a share of it: the rounding of a program."""

SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{NO-BREAK SPACE}": " ",
                       "\N{NARROW NO-BREAK SPACE}": " ", "\N{THIN SPACE}": " "})  # fmt: skip

MULTIPLES = r"(?i:dozen|hundred|thousand|million|billion|trillion|k|mn|mio|bn|tn)s?\b"
"""Words after a number that make it another one."""

UNSIGNED = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
NUMERAL = re.compile(
    rf"""
    (?P<sign>[-+]?)\s*[$€£¥₹]?\s*(?P<inner>[-+]?)\s*
    (?:
        (?P<whole>\d+)\s+(?P<upper>\d+)\s*/\s*(?P<lower>\d+)
      | (?P<top>{UNSIGNED})\s*/\s*(?P<bottom>{UNSIGNED})
      | (?P<plain>{UNSIGNED})(?:[eE](?P<exponent>[-+]?\d+))?
    )
    \s*[$€£¥₹]?\s*(?:%|percent\b)?\s*
    (?!{MULTIPLES})(?P<unit>[^\W\d_][^\d]*|°[^\d]*)?\.?
    """,
    re.VERBOSE,
)


def parse_number(text: str) -> Fraction | None:
    """Read a number, exactly.

    Thousands separators, fractions, mixed numbers, powers of ten, a currency sign, a percent sign
    and words after it (units) are understood. A percent sign is a unit: ``50%`` is 50. What is
    written with a word for a multiple, such as 2 million, is not.

    Args:
        text: One number, and nothing else but the above.

    Returns:
        The number. None: it is none, infinite, not a number, or there are several.

    Example:
        >>> parse_number("$1,234.50"), parse_number("-3/4"), parse_number("12 apples")
        (Fraction(2469, 2), Fraction(-3, 4), Fraction(12, 1))
        >>> parse_number("3 or 4"), parse_number("nan")
        (None, None)
    """
    found = _match(text)
    if found is None or (found["sign"] and found["inner"]):
        return None
    try:
        number = _magnitude(found)
    except ZeroDivisionError:
        return None
    if number is None:
        return None
    return -number if "-" in (found["sign"], found["inner"]) else number


def decimals(text: str) -> int:
    """Return how many digits a number is written with after its point.

    Example:
        >>> decimals("3.33"), decimals("1,000"), decimals("1/3")
        (2, 0, 0)
    """
    found = _match(text)
    plain = found["plain"] if found is not None and not found["exponent"] else None
    return len(plain.partition(".")[2]) if plain else 0


def is_same_answer(value: str, reference: str) -> bool:
    """Tell whether a value is the answer that a reference states.

    It may be off by a millionth of the reference; or by half a unit of the reference's last digit
    after the point, since references are written rounded.

    Args:
        value: What a program returned.
        reference: What the data state.

    Example:
        >>> is_same_answer("3.3333333333333335", "3.33"), is_same_answer("3.4", "3.33")
        (True, False)
        >>> is_same_answer("41", "42"), is_same_answer("42.0", "$42")
        (False, True)
    """
    number, expected = parse_number(value), parse_number(reference)
    if number is None or expected is None:
        return False
    digits = decimals(reference)
    rounding = Fraction(1, 2 * 10**digits) if digits else Fraction(0)
    return abs(number - expected) <= max(RELATIVE * abs(expected), rounding)


def _match(text: str) -> re.Match[str] | None:
    if len(text) > LONGEST:
        return None
    # Runs of spaces would be divided between the parts of the pattern in every way.
    return NUMERAL.fullmatch(" ".join(text.translate(SIGNS).split()))


def _magnitude(found: re.Match[str]) -> Fraction | None:
    """Return a number without its sign; None if it is too large or too small."""
    if found["whole"] is not None:
        return _plain(found["whole"]) + _plain(found["upper"]) / _plain(found["lower"])
    if found["top"] is not None:
        return _plain(found["top"]) / _plain(found["bottom"])
    exponent = int(found["exponent"] or 0)
    if abs(exponent) > LARGEST_EXPONENT:
        return None
    return _plain(found["plain"]) * Fraction(10) ** exponent


def _plain(text: str) -> Fraction:
    return Fraction(Decimal(text.replace(",", "")))
