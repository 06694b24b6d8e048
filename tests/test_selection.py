"""Methods against naive ones."""

from dataclasses import replace

import pytest
import torch

from mathneuro import tops as tops_module
from mathneuro.cutoffs import find_cutoffs
from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.methods import METHODS, Candidates, select
from mathneuro.tops import Tops
from mathneuro.weights import Weight
from tests import naive


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


def test_a_method_of_ones_own_can_rank_by_any_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as differences of importance, some of them negative, at a proportion of its own."""

    def contrast(candidates: Candidates) -> torch.Tensor:
        more = replace(candidates, proportion=2 * candidates.proportion)
        return more.top(candidates.math - candidates.calibration[0])

    monkeypatch.setitem(METHODS, "contrast", contrast)
    weights, importance = linear_importance("math", "language")
    vector = importance.sets["math"]["0.weight"] - importance.sets["language"]["0.weight"]
    assert bool((vector < 0).any())
    expected = naive.top(weights["0.weight"].matrix.double().abs() * vector, 2 * 23)
    kept = Tops([0.1])
    for _ in range(2):
        selection = select(weights, importance, "contrast", 0.3, tops=kept)
        assert selection.positions["0.weight"].tolist() == sorted(expected)


@pytest.mark.parametrize("method", ["mathneuro", "wanda", "random"])
def test_importance_with_a_gradient_is_taken_as_it_is(method: str) -> None:
    """As it is measured outside of `torch.no_grad`."""
    weights, importance = linear_importance("math", "language")
    expected = select(weights, importance, method, 0.3).sha256()
    for vectors in importance.sets.values():
        vectors["0.weight"].requires_grad_()
    assert weights["0.weight"].parameter.requires_grad
    assert select(weights, importance, method, 0.3).sha256() == expected


@pytest.mark.parametrize("together", [False, True])
def test_kept_tops_change_nothing_and_cutoffs_are_found_once(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever method, proportion and importance they are asked for, in whatever order."""
    calls = []

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return find_cutoffs(*arguments)  # type: ignore[arg-type]

    weights, first = linear_importance("math", "race", "mmlu")
    second = linear_importance("math", "race", "mmlu")[1]
    settings = [
        (importance, method, proportion, calibration)
        for method in ("wanda", "mathneuro", "random")
        for importance in (first, second)
        for calibration in (["race"], ["mmlu"], ["race", "mmlu"])
        for proportion in (0.3, 0.0, 0.02, 0.1)
    ]
    alone = [select(weights, *setting) for setting in settings]
    monkeypatch.setattr(tops_module, "find_cutoffs", counted)
    kept = Tops([0.02, 0.1, 0.3, 0.0], together)
    later = [select(weights, *setting, tops=kept) for setting in settings]
    assert [each.sha256() for each in later] == [each.sha256() for each in alone]
    assert len({each.sha256() for each in alone}) > 20
    assert len(calls) == 6


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
