"""Exact selection against a naive sort."""

import pytest
import torch

from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.methods import METHODS, select
from mathneuro.selection import difference, top_positions
from mathneuro.weights import Weight
from tests import naive


@pytest.mark.parametrize("kinds", [2, 5, 1000])
def test_top_positions_equal_a_naive_sort(kinds: int) -> None:
    """With many ties, some, and none; for all counts at once."""
    scores = torch.randint(0, kinds, (9, 13)).double()
    counts = [0, 1, 7, 58, 116, 117]
    for count, positions in zip(counts, top_positions(scores, counts), strict=True):
        assert len(positions) == count
        assert positions.tolist() == sorted(naive.top(scores, count))


def test_scores_of_zero_select_the_lowest_positions() -> None:
    """All tie, so the rule for ties decides alone."""
    assert top_positions(torch.zeros(3, 4), [5])[0].tolist() == [0, 1, 2, 3, 4]


def test_difference_equals_set_difference() -> None:
    """For random positions."""
    first = torch.randperm(50)[:20].sort().values
    second = torch.randperm(50)[:20].sort().values
    expected = sorted(set(first.tolist()) - set(second.tolist()))
    assert difference(first, second).tolist() == expected


def test_scores_that_are_not_finite_are_refused() -> None:
    """NaN would win every comparison."""
    with pytest.raises(InputError, match="NaN or Inf"):
        top_positions(torch.tensor([1.0, float("nan")]), [1])


def linear_importance(*names: str) -> tuple[dict[str, Weight], Importance]:
    """Build one linear layer and random importance for some sets of texts."""
    weights = find_linear_weights(torch.nn.Sequential(torch.nn.Linear(11, 7))).weights
    sets = {name: {"0.weight": torch.rand(11, dtype=torch.float64)} for name in names}
    return weights, Importance(sets, dict.fromkeys(names, 5))


@pytest.mark.parametrize("proportion", [0.0, 0.001, 0.05, 0.33, 1.0])
@pytest.mark.parametrize("method", ["mathneuro", "wanda"])
def test_methods_equal_the_naive_ones(method: str, proportion: float) -> None:
    """Including a proportion so small that nothing is selected."""
    weights, importance = linear_importance("math", "language")
    weight = weights["0.weight"].matrix.double().abs()
    math, language = (importance.sets[name]["0.weight"] * weight for name in ("math", "language"))
    selection = select(weights, importance, method, proportion)
    expected = naive.selected(math, language, proportion, method)
    assert set(selection.positions["0.weight"].tolist()) == expected


def test_every_calibration_set_is_removed_or_the_named_ones() -> None:
    """A parameter in the top of any named set is not math-specific."""
    weights, importance = linear_importance("math", "race", "mmlu")
    both = set(select(weights, importance, proportion=0.3).positions["0.weight"].tolist())
    one = {
        name: set(
            select(weights, importance, proportion=0.3, calibration=[name])
            .positions["0.weight"]
            .tolist()
        )
        for name in ("race", "mmlu")
    }
    assert both == one["race"] & one["mmlu"]
    assert both != one["race"]


def test_random_selects_as_many_as_mathneuro_and_is_seeded() -> None:
    """Per matrix; the same for a seed, another for another."""
    weights, importance = linear_importance("math", "language")
    count = select(weights, importance, "mathneuro", 0.3).count
    first, again, other = (
        select(weights, importance, "random", 0.3, seed=seed) for seed in (1, 1, 2)
    )
    positions = first.positions["0.weight"]
    assert first.count == count == len(set(positions.tolist()))
    assert positions.tolist() == sorted(positions.tolist())
    assert torch.equal(positions, again.positions["0.weight"])
    assert not torch.equal(positions, other.positions["0.weight"])


def test_identical_sets_leave_nothing() -> None:
    """What matters for both is never math-specific, also when all scores tie."""
    weights, importance = linear_importance("math", "language")
    importance.sets["language"] = importance.sets["math"]
    assert select(weights, importance, "mathneuro", 0.5).count == 0


def test_a_method_of_ones_own_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods are pluggable functions."""
    monkeypatch.setitem(METHODS, "first", lambda candidates: torch.tensor([0]))
    weights, importance = linear_importance("math")
    assert select(weights, importance, "first", 0.1, calibration=[]).count == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "mathneuron"}, "selection.method: got 'mathneuron'"),
        ({"proportion": 1.5}, "selection.proportion: got 1.5"),
        ({"proportion": float("nan")}, "selection.proportion: got nan"),
        ({"calibration": ["race"]}, "got 'race', but no calibration set of that name was measured"),
        ({"calibration": []}, "needs a calibration set"),
    ],
)
def test_wrong_choices_are_one_sentence(changes: dict[str, object], message: str) -> None:
    """Which field, what it held."""
    weights, importance = linear_importance("math", "language")
    with pytest.raises(InputError, match=message):
        select(weights, importance, **changes)  # type: ignore[arg-type]
