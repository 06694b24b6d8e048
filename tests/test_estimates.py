"""Intervals of scores and of means."""

import math

import numpy as np
import pytest

from mathneuro.errors import InputError
from mathneuro.estimates import Estimate, average, mean_over_repeats, score_estimate
from mathneuro.scores import Score

NORMAL = 1.959963984540054


def test_the_mean_over_repeats_has_students_interval() -> None:
    """2.776 is the quantile for five repeats in any table."""
    values = [0.31, 0.35, 0.29, 0.4, 0.33]
    mean = sum(values) / 5
    error = math.sqrt(sum((each - mean) ** 2 for each in values) / 4 / 5)
    found = mean_over_repeats(values)
    assert found.value == pytest.approx(mean)
    assert (found.low, found.high) == pytest.approx(
        (mean - 2.7764 * error, mean + 2.7764 * error), abs=1e-4
    )


def test_the_geometric_mean_is_that_of_logarithms() -> None:
    """With its interval."""
    found = mean_over_repeats([2.0, 8.0], geometric=True)
    plain = mean_over_repeats([math.log(2), math.log(8)])
    assert found.value == pytest.approx(4)
    assert plain.low is not None
    assert found.low == pytest.approx(math.exp(plain.low))


def test_one_repeat_has_no_interval() -> None:
    """And none has no mean."""
    assert mean_over_repeats([0.4]) == Estimate(0.4, None, None)
    with pytest.raises(InputError, match="at least one"):
        mean_over_repeats([])


def test_a_repeat_that_is_no_number_makes_the_mean_none() -> None:
    """Leaving it out would flatter the others."""
    assert math.isnan(mean_over_repeats([1.0, math.nan, 2.0]).value)
    assert math.isnan(mean_over_repeats([1.0, math.inf], geometric=True).value)


@pytest.mark.parametrize("right", [0, 3, 20])
def test_answers_that_are_right_or_wrong_get_wilsons_interval(right: int) -> None:
    """Its ends are the chances that lie just 1.96 standard errors of their own from the score."""
    found = score_estimate(Score(right / 20, 0.0, 20), [1.0] * right + [0.0] * (20 - right))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.high
    for end in (found.low, found.high):
        error = math.sqrt(end * (1 - end) / 20)
        assert abs(right / 20 - end) == pytest.approx(NORMAL * error, abs=1e-6)


def test_other_scores_get_the_normal_interval() -> None:
    """Symmetric on the logarithmic scale for perplexities."""
    plain = score_estimate(Score(0.5, 0.1, 9), [0.25, 0.75])
    assert (plain.low, plain.high) == pytest.approx((0.5 - 0.1 * NORMAL, 0.5 + 0.1 * NORMAL))
    ratio = score_estimate(Score(10.0, 1.0, 9), None, ratio=True)
    half = math.exp(0.1 * NORMAL)
    assert (ratio.low, ratio.high) == pytest.approx((10 / half, 10 * half))
    assert score_estimate(Score(0.5, None, 9), None) == Estimate(0.5)


def test_means_of_scores_have_the_interval_of_their_sum() -> None:
    """Of symmetric intervals, what adding variances gives."""
    found = average([Estimate(0.2, 0.1, 0.3), Estimate(0.6, 0.4, 0.8)])
    half = math.hypot(0.1, 0.2) / 2
    assert found.value == pytest.approx(0.4)
    assert (found.low, found.high) == pytest.approx((0.4 - half, 0.4 + half))


def test_means_of_scores_hold_the_truth_as_often_as_they_say() -> None:
    """Also of scores near 1, whose intervals are lopsided."""
    generator, held = np.random.default_rng(0), []
    for _ in range(800):
        estimates = []
        for chance in (0.95, 0.6):
            outcomes = (generator.random(50) < chance).astype(float).tolist()
            estimates.append(score_estimate(Score(sum(outcomes) / 50, None, 50), outcomes))
        found = average(estimates)
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= 0.775 <= found.high)
    assert 0.93 <= np.mean(held) <= 0.98


def test_geometric_means_and_unknown_parts() -> None:
    """What is unknown of one is unknown of the mean."""
    found = average([Estimate(2.0, 1.0, 4.0), Estimate(8.0, 4.0, 16.0)], geometric=True)
    half = math.exp(math.hypot(math.log(2), math.log(2)) / 2)
    assert (found.value, found.low, found.high) == pytest.approx((4, 4 / half, 4 * half))
    unknown = average([Estimate(0.2, 0.1, None), Estimate(0.4, 0.3, 0.5)])
    assert unknown.low is not None
    assert unknown.high is None
    assert math.isnan(average([]).value)
    assert math.isnan(average([Estimate(0.5), Estimate(math.nan)]).value)


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    """Student's t knows no bounds; a share of questions does."""
    values = [1.0, 0.9]
    free, share = mean_over_repeats(values), mean_over_repeats(values, share=True)
    assert free.high is not None
    assert free.high > 1
    assert (share.value, share.high, share.low) == (free.value, 1.0, free.low)
    assert mean_over_repeats([0.0, 0.1], share=True).low == 0.0
