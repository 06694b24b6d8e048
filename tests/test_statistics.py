"""Comparisons of perplexities and scores against naive computations and simulated coverage."""

import math

import numpy as np
import pytest

from mathneuro.errors import InputError
from mathneuro.scores import Score
from mathneuro.statistics import adjusted, compare_perplexity, compare_unpaired
from tests.student import NORMAL, ends, student_p

LENGTHS = [10, 40, 25, 5, 60, 33]
OLD = [21.0, 70.0, 51.0, 14.0, 100.0, 71.0]
NEW = [30.0, 81.0, 70.0, 15.0, 150.0, 79.0]


def test_the_ratio_of_perplexities_is_that_of_the_two() -> None:
    """Of all tokens together, not a mean over texts."""
    found = compare_perplexity(OLD, NEW, LENGTHS)
    before = math.exp(sum(OLD) / sum(LENGTHS))
    after = math.exp(sum(NEW) / sum(LENGTHS))
    assert found.difference == pytest.approx(after / before)


def test_the_error_of_a_ratio_comes_from_texts() -> None:
    """As the formula says, and close to what leaving out one text at a time gives."""
    found = compare_perplexity(OLD, NEW, LENGTHS)
    changes = [b - a for a, b in zip(OLD, NEW, strict=True)]
    rate, tokens = sum(changes) / sum(LENGTHS), sum(LENGTHS)
    squares = sum((c - rate * n) ** 2 for c, n in zip(changes, LENGTHS, strict=True))
    error = math.sqrt(squares * 6 / 5) / tokens
    assert found.standard_error == pytest.approx(error)
    without = [(sum(changes) - c) / (tokens - n) for c, n in zip(changes, LENGTHS, strict=True)]
    mean = sum(without) / 6
    jackknife = math.sqrt(5 / 6 * sum((each - mean) ** 2 for each in without))
    assert found.standard_error == pytest.approx(jackknife, rel=0.35)
    # 2.5706 is the 97.5 % quantile of Student's t with five degrees of freedom in any table.
    low, high = math.exp(rate - 2.5706 * error), math.exp(rate + 2.5706 * error)
    assert ends(found) == pytest.approx((low, high), rel=1e-4)
    assert found.p_value == pytest.approx(student_p(rate / error, 5), abs=1e-6)


def test_perplexity_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of simulated sets of 30 texts whose tokens share their text's own change."""
    generator = np.random.default_rng(2)
    held = []
    for _ in range(1500):
        tokens = generator.integers(10, 100, 30)
        change = 0.1 + 0.3 * generator.standard_normal(30)
        losses = ((2 * tokens).tolist(), ((2 + change) * tokens).tolist())
        found = compare_perplexity(*losses, tokens.tolist())
        low, high = ends(found)
        held.append(low <= math.exp(0.1) <= high)
    assert 0.93 <= np.mean(held) <= 0.97


def test_one_text_tells_no_spread() -> None:
    """The ratio alone is known."""
    found = compare_perplexity([2.0], [4.0], [2])
    assert found.difference == pytest.approx(math.e)
    assert (found.standard_error, found.low, found.p_value) == (None, None, None)


@pytest.mark.parametrize(("shift", "p_value"), [(0.0, 1.0), (0.5, None)])
def test_texts_that_all_change_alike_tell_no_spread(shift: float, p_value: float | None) -> None:
    """As with questions."""
    after = [loss + shift * n for loss, n in zip(OLD, LENGTHS, strict=True)]
    found = compare_perplexity(OLD, after, LENGTHS)
    assert found.difference == pytest.approx(math.exp(shift))
    assert (found.low, found.p_value) == (None, p_value)


def test_overflowing_losses_are_unknown() -> None:
    """And a ratio that no float holds too."""
    assert compare_perplexity([1.0, 2.0], [1.0, math.inf], [1, 1]).difference is None
    assert compare_perplexity([1.0, 2.0], [1e4, 1e4], [1, 1]).difference is None


def test_texts_without_tokens_are_refused() -> None:
    """There is nothing to divide by."""
    with pytest.raises(InputError, match=r"^tokens: none was predicted"):
        compare_perplexity([0.0], [0.0], [0])


def test_scores_without_outcomes_are_compared_by_their_errors() -> None:
    """As independent ones: 2 standard errors have a p-value of 0.0455."""
    found = compare_unpaired(Score(0.6, 0.03, 100), Score(0.7, 0.04, 90))
    assert found.standard_error == pytest.approx(0.05)
    assert found.p_value == pytest.approx(math.erfc(2 / math.sqrt(2)))
    assert ends(found) == pytest.approx((0.1 - NORMAL * 0.05, 0.1 + NORMAL * 0.05))
    assert (found.test, found.count) == ("unpaired z", 90)


def test_perplexities_without_losses_are_compared_by_logarithms() -> None:
    """With relative standard errors."""
    found = compare_unpaired(Score(10.0, 0.3, 50), Score(20.0, 0.8, 50), ratio=True)
    error = math.hypot(0.03, 0.04)
    assert found.difference == pytest.approx(2)
    assert found.standard_error == pytest.approx(error)
    assert ends(found) == pytest.approx(
        (2 * math.exp(-NORMAL * error), 2 * math.exp(NORMAL * error))
    )


@pytest.mark.parametrize("errors", [(None, 0.1), (0.1, None), (None, None)])
def test_an_unknown_error_leaves_the_difference(errors: tuple[float | None, float | None]) -> None:
    """And nothing else."""
    found = compare_unpaired(Score(0.5, errors[0], 9), Score(0.75, errors[1], 9))
    assert (found.difference, found.standard_error, found.p_value) == (0.25, None, None)


def test_adjusted_p_values_are_those_of_the_definition() -> None:
    """The smallest of p m / rank over this and all higher ranks; unknown ones do not count."""
    values = [0.03, None, 0.001, 0.04, 0.9, 0.012]
    known = sorted(value for value in values if value is not None)
    for value, found in zip(values, adjusted(values), strict=True):
        if value is None:
            assert found is None
            continue
        scaled = [p * len(known) / (rank + 1) for rank, p in enumerate(known) if p >= value]
        assert found == pytest.approx(min(1, *scaled))
    assert adjusted([None, None]) == [None, None]
    assert adjusted([]) == []
