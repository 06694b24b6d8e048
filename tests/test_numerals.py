"""Numbers as people and programs write them."""

import time
from fractions import Fraction

import pytest

from mathneuro.numerals import decimals, is_same_answer, parse_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42),
        ("  42 ", 42),
        ("42.", 42),
        ("42.0", 42),
        (".5", Fraction(1, 2)),
        ("+7", 7),
        ("-7", -7),
        ("\N{MINUS SIGN}7", -7),
        ("- 7", -7),
        ("007", 7),
        ("1,234", 1234),
        ("1,234,567.89", Fraction(123456789, 100)),
        ("$1,234.50", Fraction(2469, 2)),
        ("-$5", -5),
        ("$-5", -5),
        ("5 €", 5),
        ("3/4", Fraction(3, 4)),
        ("-3/4", Fraction(-3, 4)),
        ("1 1/2", Fraction(3, 2)),
        ("-1 1/2", Fraction(-3, 2)),
        ("0.5/0.25", 2),
        ("50%", 50),
        ("12.5 percent", Fraction(25, 2)),
        ("12 apples", 12),
        ("12 apples.", 12),
        ("3.5 km per hour", Fraction(7, 2)),
        ("20°C", 20),
        ("1e3", 1000),
        ("1E+3", 1000),
        ("2.5e-3", Fraction(1, 400)),
        ("1e16", 10**16),
        ("9" * 300, int("9" * 300)),
        ("5000000000000000000000000001", 5000000000000000000000000001),
    ],
)
def test_numbers_are_read_exactly(text: str, number: Fraction | int) -> None:
    """Whatever they are written with."""
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "-", "$", "%", "nan", "inf", "-inf", "Infinity", "True", "None", "apples", "a12",
     "1 2", "3 or 4", "3, 4", "1,23", "12,34,567", "1.2.3", "1/0", "1 1/0", "--5", "-$-5",
     "1e401", "1e999999999", "1e-999999999", "1+2j", "(1+2j)", "[1]", "{}", "0x10", "1_000",
     "9" * 301, "12 apples and 3 pears", "5 m2 5"],
)  # fmt: skip
def test_what_is_no_single_number_is_none(text: str) -> None:
    """Nor is a guess made."""
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("value", "reference", "same"),
    [
        ("42", "42", True),
        ("42.0", "42", True),
        ("42.00003", "42", True),
        ("42.0001", "42", False),
        ("41.5", "42", False),
        ("3.3333333333333335", "3.33", True),
        ("3.336", "3.33", False),
        ("1/3", "0.33", True),
        ("1000000.9", "1000000", True),
        ("1000002", "1000000", False),
        ("0", "0", True),
        ("1e-9", "0", False),
        ("-0.0", "0", True),
        ("-5", "5", False),
        ("0.5", "50%", False),
        ("50.0", "50%", True),
        ("True", "1", False),
        ("nan", "nan", False),
        ("inf", "1e308", False),
        ("1234.5", "$1,234.50", True),
        ("0.1", "0.10", True),
        ("0.30000000000000004", "0.3", True),
        ("12", "apples", False),
    ],
)
def test_answers_are_compared_with_a_tolerance(value: str, reference: str, same: bool) -> None:
    """A millionth, or the rounding of the reference."""
    assert is_same_answer(value, reference) == same


def test_no_text_takes_long() -> None:
    """Whatever it is made of."""
    texts = ["1" + " " * 298 + "1", "-" + " " * 140 + "$" + " " * 140 + "x", "1," * 149 + "1"]
    start = time.perf_counter()
    assert [parse_number(text) for text in texts * 100] == [None] * 300
    assert time.perf_counter() - start < 1


def test_digits_after_the_point() -> None:
    """Only those that are written."""
    assert [decimals(text) for text in ("1.50", "1.", "1", "1.5e3", "$2.25", "x")] == [
        2, 0, 0, 0, 2, 0,
    ]  # fmt: skip
