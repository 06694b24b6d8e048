"""Eight worked programs, which show a model what to write."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A question and the program that answers it.

    Attributes:
        question: The question.
        program: The program.
        answer: What it returns.
    """

    question: str
    program: str
    answer: str


EXAMPLES = (
    Example(
        "A baker fills 14 trays with 6 rolls each and sells 59 of the rolls. How many rolls are "
        "left?",
        """def solution():
    trays = 14
    rolls_per_tray = 6
    rolls_sold = 59
    rolls_baked = trays * rolls_per_tray
    rolls_left = rolls_baked - rolls_sold
    return rolls_left""",
        "25",
    ),
    Example(
        "Noor saves $3.75 every week. A lamp costs $60. After how many weeks can she buy it?",
        """def solution():
    saved_per_week = 3.75
    price = 60
    weeks = price / saved_per_week
    return weeks""",
        "16",
    ),
    Example(
        "A train leaves with 240 passengers. At the first stop a third of them get off and 25 get "
        "on. How many passengers are on the train then?",
        """def solution():
    passengers = 240
    got_off = passengers / 3
    got_on = 25
    passengers_then = passengers - got_off + got_on
    return passengers_then""",
        "185",
    ),
    Example(
        "Ilya reads 18 pages on Monday. Each day after that he reads 4 pages more than the day "
        "before. How many pages has he read by the end of Thursday?",
        """def solution():
    pages_on_monday = 18
    more_each_day = 4
    days = 4
    pages_read = 0
    for day in range(days):
        pages_read += pages_on_monday + day * more_each_day
    return pages_read""",
        "96",
    ),
    Example(
        "A jacket that costs $80 is reduced by 15%. Rosa pays with a $100 note. How much does she "
        "get back?",
        """def solution():
    price = 80
    reduction = price * 15 / 100
    reduced_price = price - reduction
    note = 100
    money_back = note - reduced_price
    return money_back""",
        "32",
    ),
    Example(
        "Three gardeners plant 45 bulbs in 2 hours. How many bulbs do five gardeners plant in 4 "
        "hours at the same rate?",
        """def solution():
    bulbs = 45
    bulbs_per_gardener_and_hour = bulbs / (3 * 2)
    bulbs_planted = bulbs_per_gardener_and_hour * 5 * 4
    return bulbs_planted""",
        "150",
    ),
    Example(
        "A tank holds 500 liters. It loses 12 liters an hour and is refilled with 90 liters once "
        "after 10 hours. How many liters does it hold after 15 hours if it was full at first?",
        """def solution():
    liters = 500
    lost_per_hour = 12
    refilled = 90
    hours = 15
    liters_left = liters - lost_per_hour * hours + refilled
    return liters_left""",
        "410",
    ),
    Example(
        "Mina is 4 years older than twice the age of her brother, who is 9. How old will she be in "
        "6 years?",
        """def solution():
    age_of_brother = 9
    age_of_mina = 2 * age_of_brother + 4
    age_in_six_years = age_of_mina + 6
    return age_in_six_years""",
        "28",
    ),
)
