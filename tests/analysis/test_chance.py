"""Overlap by chance against enumeration, scipy and simulation."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from mathneuro.analysis import chance as chances
from mathneuro.analysis.chance import (
    Chance,
    Sizes,
    common_by_chance,
    common_share,
    expected_jaccard,
    jaccard,
)


def enumerated(weights: list[Sizes]) -> dict[int, float]:
    """Return the distribution by going through every selection of every weight."""
    found = {0: 1.0}
    for each in weights:
        first = set(range(each.first))
        counts: dict[int, int] = {}
        for second in combinations(range(each.parameters), each.second):
            common = len(first & set(second))
            counts[common] = counts.get(common, 0) + 1
        total = sum(counts.values())
        together: dict[int, float] = {}
        for (before, p), (common, count) in product(found.items(), counts.items()):
            together[before + common] = together.get(before + common, 0.0) + p * count / total
        found = together
    return found


SMALL = [
    [Sizes(5, 2, 3)],
    [Sizes(6, 3, 3), Sizes(4, 1, 4), Sizes(3, 0, 2)],
    [Sizes(2, 1, 1), Sizes(1, 1, 1), Sizes(1, 0, 1)],
    [Sizes(4, 4, 4)],
    [Sizes(7, 6, 5), Sizes(6, 2, 2)],
    [Sizes(0, 0, 0), Sizes(3, 1, 1)],
]


@pytest.mark.parametrize("weights", SMALL)
def test_small_distributions_are_exact(weights: list[Sizes]) -> None:
    """K = 0, k = n and odd shapes included."""
    expected, found = enumerated(weights), common_by_chance(weights)
    assert found.probabilities is not None
    for place, probability in enumerate(found.probabilities):
        assert probability == pytest.approx(expected.get(found.start + place, 0.0), abs=1e-12)
    mean = sum(common * p for common, p in expected.items())
    assert found.mean == pytest.approx(mean)
    assert found.variance == pytest.approx(
        sum((common - mean) ** 2 * p for common, p in expected.items())
    )
    below = [sum(p for common, p in expected.items() if common < end)
             for end in (found.low, found.high)]  # fmt: skip
    reached = [sum(p for common, p in expected.items() if common <= end)
               for end in (found.low, found.high)]  # fmt: skip
    assert below[0] < 0.025 <= reached[0] + 1e-12
    assert below[1] < 0.975 <= reached[1] + 1e-12
    sizes = [sum(getattr(each, side) for each in weights) for side in ("first", "second")]
    assert expected_jaccard(found, *sizes) == pytest.approx(
        sum(common / (sum(sizes) - common) * p for common, p in expected.items())
    )


def test_nothing_selected_is_no_number() -> None:
    """Neither what is in common nor what chance would give."""
    found = common_by_chance([Sizes(9, 0, 0)])
    assert (found.mean, found.low, found.high) == (0.0, 0, 0)
    assert math.isnan(jaccard(0, 0, 0))
    assert math.isnan(common_share(0, 0, 0))
    assert math.isnan(expected_jaccard(found, 0, 0))
    assert common_by_chance([]).mean == 0
    # One of them empty: nothing is in common, and that is known.
    assert jaccard(0, 0, 3) == common_share(0, 0, 3) == 0


@pytest.mark.parametrize(
    "sizes",
    [Sizes(10**8, 10**4, 10**4), Sizes(10**6, 3000, 900_000), Sizes(10**9, 10**6, 10**6)],
)
def test_one_large_weight_is_hypergeometric(sizes: Sizes) -> None:
    """As scipy computes it, of very many parameters."""
    found = common_by_chance([sizes])
    reference = stats.hypergeom(sizes.parameters, sizes.first, sizes.second)
    assert found.mean == pytest.approx(reference.mean())
    assert found.variance == pytest.approx(reference.var(), rel=1e-6)
    assert [found.low, found.high] == [reference.ppf(0.025), reference.ppf(0.975)]


@pytest.mark.parametrize(
    "weights",
    [
        [Sizes(400_000, 40_000, 30_000)] * 4,
        [Sizes(90_000, 60_000, 500)] * 40,
        [Sizes(10_000, 9_000, 9_500)] * 300,
        [Sizes(100_000, 5_000, 5_000), Sizes(20_000, 10_000, 10_000), Sizes(50, 49, 1)],
    ],
)
def test_the_approximation_agrees_with_the_exact_distribution(
    weights: list[Sizes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To one parameter at either end, where the one takes over from the other."""
    monkeypatch.setattr(chances, "EXACT", math.inf)
    exact = common_by_chance(weights)
    monkeypatch.setattr(chances, "EXACT", 0.0)
    found = common_by_chance(weights)
    assert found.probabilities is None
    assert found.variance > 1000
    assert abs(found.low - exact.low) <= 1
    assert abs(found.high - exact.high) <= 1
    sizes = [sum(getattr(each, side) for each in weights) for side in ("first", "second")]
    assert expected_jaccard(found, *sizes) == pytest.approx(expected_jaccard(exact, *sizes), 1e-7)


@pytest.mark.parametrize(
    "weights",
    [
        [Sizes(12, 3, 5), Sizes(30, 2, 2)],
        [Sizes(2000, 20, 50)] * 10,
        [Sizes(4096, 1000, 2000), Sizes(600, 500, 60), Sizes(100, 0, 10), Sizes(64, 64, 3)],
        [Sizes(200_000, 60_000, 50_000)] * 2,
    ],
)
def test_chance_agrees_with_simulation(weights: list[Sizes]) -> None:
    """Selections that are drawn and compared as sets: mean of the index, and its interval."""
    generator, draws = np.random.default_rng(0), 400
    sizes = [sum(getattr(each, side) for each in weights) for side in ("first", "second")]
    common = np.zeros(draws)
    for draw in range(draws):
        for each in weights:
            mask = np.zeros(each.parameters, dtype=bool)
            mask[generator.choice(each.parameters, each.first, replace=False)] = True
            second = generator.choice(each.parameters, each.second, replace=False)
            common[draw] += mask[second].sum()
    found = common_by_chance(weights)
    indices = common / (sum(sizes) - common)
    error = indices.std() / math.sqrt(draws)
    assert abs(indices.mean() - expected_jaccard(found, *sizes)) < 4 * error
    assert common.std() == pytest.approx(math.sqrt(found.variance), rel=0.15)
    inside = ((common >= found.low) & (common <= found.high)).mean()
    # At least 95 % of what chance gives, and more only as far as single numbers weigh.
    heaviest = float(found.probabilities.max()) if found.probabilities is not None else 0.0
    assert 0.95 - 0.044 < inside < 0.95 + 2 * heaviest + 0.044


def test_the_shown_share_of_the_paper() -> None:
    """Equal sizes: what is in common, divided by the size."""
    assert common_share(30, 120, 120) == 30 / 120
    assert common_share(30, 100, 140) == 30 / 120
    chance = Chance(mean=10.0, variance=4.0, low=6, high=14)
    assert expected_jaccard(chance, 50, 50) == pytest.approx(10 / 90 + 4 * 100 / 90**3)
