"""Comparisons of questions against naive computations, worked examples and simulated coverage."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from mathneuro.errors import InputError
from mathneuro.questions import compare_questions, compare_repeats
from tests.student import NORMAL, ends, student_p


def table(both: int, lost: int, gained: int, neither: int) -> tuple[list[float], list[float]]:
    """Make outcomes from the four cells of matched pairs."""
    before = [1.0] * both + [1.0] * lost + [0.0] * gained + [0.0] * neither
    after = [1.0] * both + [0.0] * lost + [1.0] * gained + [0.0] * neither
    return before, after


def by_sign_flips(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the p-value of the exact McNemar test by trying every sign of every difference."""
    differences = [b - a for a, b in zip(before, after, strict=True) if a != b]
    observed = abs(sum(differences))
    flips = list(itertools.product((-1, 1), repeat=len(differences)))
    extreme = sum(
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True))) >= observed
        for signs in flips
    )
    return extreme / len(flips)


@pytest.mark.parametrize("cells", [(3, 4, 1, 2), (0, 0, 6, 1), (5, 3, 3, 0), (2, 9, 2, 2)])
def test_mcnemar_is_what_all_sign_flips_give(cells: tuple[int, int, int, int]) -> None:
    """Exactly, two-sided."""
    before, after = table(*cells)
    found = compare_questions(before, after)
    assert found.test == "exact McNemar"
    assert found.p_value == pytest.approx(by_sign_flips(before, after), abs=1e-12)


@pytest.mark.parametrize("cells", [(3, 4, 1, 2), (60, 25, 5, 10), (50, 0, 0, 50)])
def test_binary_interval_is_that_of_wald_with_half_a_pair_in_each_cell(
    cells: tuple[int, int, int, int],
) -> None:
    """Written down from proportions, as the paper has the plain interval."""
    both, lost, gained, neither = (cell + 0.5 for cell in cells)
    total = both + lost + gained + neither
    up, down = gained / total, lost / total
    error = math.sqrt((up + down - (up - down) ** 2) / total)
    found = compare_questions(*table(*cells))
    assert found.difference == pytest.approx((cells[2] - cells[1]) / sum(cells))
    assert ends(found) == pytest.approx(
        ((up - down) - NORMAL * error, (up - down) + NORMAL * error)
    )


def test_no_change_at_all_still_has_an_interval() -> None:
    """That nothing differs among ten questions does not show that nothing ever does."""
    found = compare_questions([1.0] * 5 + [0.0] * 5, [1.0] * 5 + [0.0] * 5)
    assert (found.difference, found.p_value, found.standard_error) == (0.0, 1.0, 0.0)
    assert found.low == pytest.approx(-NORMAL / 12)
    assert found.high == pytest.approx(NORMAL / 12)


def test_intervals_end_at_one() -> None:
    """And hold the plain difference there."""
    found = compare_questions([0.0] * 30, [1.0] * 30)
    assert found.difference == found.high == 1.0
    assert 0.8 < ends(found)[0] < 1


def test_a_gain_of_four_per_cent_on_two_hundred_questions_is_noise() -> None:
    """The example of the README: the standard error of 0.35 is 0.034."""
    before, after = table(both=54, lost=16, gained=24, neither=106)
    error = float(np.std(before, ddof=1)) / math.sqrt(200)
    assert sum(before) / 200 == 0.35
    assert round(error, 3) == 0.034
    found = compare_questions(before, after)
    assert found.difference == pytest.approx(0.04)
    assert found.p_value is not None
    assert found.p_value > 0.2
    assert ends(found)[0] < 0 < ends(found)[1]


@pytest.mark.parametrize("chances", [(0.3, 0.1, 0.02), (0.2, 0.05, 0.05), (0.01, 0.3, 0.05)])
def test_binary_intervals_hold_the_truth_as_often_as_they_say(
    chances: tuple[float, float, float],
) -> None:
    """Of simulated comparisons on 40 questions each; a plain Wald interval holds it less often."""
    both, lost, gained = chances
    generator = np.random.default_rng(1)
    draws = generator.multinomial(40, (both, lost, gained, 1 - sum(chances)), size=1500)
    held = [
        low <= gained - lost <= high
        for low, high in (ends(compare_questions(*table(*draw))) for draw in draws.tolist())
    ]
    assert 0.94 <= np.mean(held) <= 0.985


def test_other_outcomes_get_the_paired_t_test() -> None:
    """By its textbook formulas."""
    before, after = [0.1, 0.5, 0.9, 0.4, 0.3], [0.2, 0.4, 1.3, 0.9, 0.35]
    differences = [b - a for a, b in zip(before, after, strict=True)]
    mean = sum(differences) / 5
    error = math.sqrt(sum((each - mean) ** 2 for each in differences) / 4 / 5)
    found = compare_questions(before, after)
    assert found.test == "paired t"
    assert found.difference == pytest.approx(mean)
    assert found.standard_error == pytest.approx(error)
    assert found.p_value == pytest.approx(student_p(mean / error, 4), abs=1e-6)
    # 2.776 is the 97.5 % quantile of Student's t with four degrees of freedom in any table.
    assert ends(found) == pytest.approx((mean - 2.7764 * error, mean + 2.7764 * error), abs=1e-4)


@pytest.mark.parametrize(("shift", "p_value"), [(0.0, 1.0), (0.1, None)])
def test_equal_differences_tell_nothing_about_their_spread(
    shift: float, p_value: float | None
) -> None:
    """So there is neither an interval nor, if something changed, a p-value."""
    before = [0.3, 0.7, 0.55]
    found = compare_questions(before, [each + shift for each in before])
    assert found.difference == pytest.approx(shift)
    assert (found.standard_error, found.low, found.high) == (None, None, None)
    assert found.p_value == p_value


def test_a_single_question_tells_no_spread() -> None:
    """Whatever its outcome."""
    graded = compare_questions([0.2], [0.4])
    assert graded.difference == pytest.approx(0.2)
    assert (graded.p_value, graded.low) == (None, None)
    binary = compare_questions([0.0], [1.0])
    assert (binary.difference, binary.p_value, binary.standard_error) == (1.0, 1.0, None)


@pytest.mark.parametrize(("before", "after"), [([], []), ([1.0], [1.0, 0.0])])
def test_other_questions_are_refused(before: list[float], after: list[float]) -> None:
    """Both that there are none, and that there are others."""
    with pytest.raises(InputError, match="as many of both, and at least one"):
        compare_questions(before, after)


def test_outcomes_that_are_no_numbers_are_unknown() -> None:
    """And do not become a NaN."""
    found = compare_questions([0.0, math.nan], [1.0, 1.0])
    assert (found.difference, found.low, found.p_value) == (None, None, None)
    assert found.test == "unknown: an outcome is no number"


def test_one_repeat_is_the_plain_comparison() -> None:
    """And so are several that agree on every question."""
    before, after = table(3, 4, 1, 2)
    assert compare_repeats(before, [after]) == compare_questions(before, after)
    assert compare_repeats(before, [after, after]) == compare_questions(before, after)


def test_repeats_are_averaged_question_by_question() -> None:
    """The interval is that of the two added pairs: one of no change, half of each other."""
    before = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    repeats = [[1.0, 0.0, 0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]]
    differences = [0.0, -1.0, -0.5, 0.0, 0.5, 0.0]
    mean = sum(differences) / 8
    square = (sum(each**2 for each in differences) + 1) / 8
    error = math.sqrt((square - mean**2) / 8)
    found = compare_repeats(before, repeats)
    assert found.difference == pytest.approx(-1 / 6)
    assert ends(found) == pytest.approx((mean - NORMAL * error, mean + NORMAL * error))
    assert found.test == "paired t"


def test_graded_repeats_get_the_interval_of_the_t_test() -> None:
    """As single graded outcomes do."""
    before, repeats = [0.1, 0.5, 0.9], [[0.2, 0.5, 0.7], [0.4, 0.1, 0.9]]
    means = [(a + b) / 2 for a, b in zip(*repeats, strict=True)]
    assert compare_repeats(before, repeats) == compare_questions(before, means)
    with pytest.raises(InputError, match=r"^repeats: got none"):
        compare_repeats(before, [])
    with pytest.raises(InputError, match="as many of both"):
        compare_repeats(before, [[0.1]])


@pytest.mark.parametrize("rare", [0.02, 0.3])
def test_intervals_over_repeats_hold_the_truth_as_often_as_they_say(rare: float) -> None:
    """Of three repeats on 60 questions, of which a few change, each in some of the repeats."""
    generator, held = np.random.default_rng(3), []
    for _ in range(1000):
        before = (generator.random(60) < 0.8).astype(float)
        fragile = generator.random(60) < rare
        broken = fragile & (generator.random((3, 60)) < 0.6)
        low, high = ends(compare_repeats(before.tolist(), (before * ~broken).tolist()))
        held.append(low <= -0.8 * rare * 0.6 <= high)
    assert np.mean(held) >= 0.94
