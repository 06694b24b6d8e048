"""LAPE's choice of neurons against a naive one, and its edges."""

import numpy as np
import pytest
import torch

from mathneuro.activations import ActivationCounts
from mathneuro.decoder import run_decoder
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.loading import weight_hash
from mathneuro.methods import select
from mathneuro.methods.lape import activity_threshold, choose_neurons, entropies
from mathneuro.neurons import find_neurons
from mathneuro.suitability import check_model
from mathneuro.weights import Weight
from tests import naive_lape
from tests.families import FAMILIES
from tests.test_neurons import WITH
from tests.test_norms import TEXTS, padded

SETS = {"math": TEXTS[:2], "race": TEXTS[2:4], "mmlu": TEXTS[3:]}


def math_neurons(probabilities: np.ndarray, proportion: float) -> list[int]:
    """Which neurons are kept and belong to the first set."""
    chosen = choose_neurons(probabilities, proportion)
    return [int(each) for each in chosen.kept[chosen.belongs[:, 0]]]


@pytest.mark.parametrize("proportion", [0.0, 0.01, 0.03, 0.2, 1.0])
@pytest.mark.parametrize("sets", [2, 3])
@pytest.mark.parametrize("tokens", [5, 40, 100_000])
def test_the_choice_equals_the_naive_one(sets: int, tokens: int, proportion: float) -> None:
    """With many ties, some and none."""
    random = np.random.default_rng(0)
    probabilities = random.binomial(tokens, random.beta(0.5, 4, (400, sets))) / tokens
    found = math_neurons(probabilities, proportion)
    assert found == naive_lape.math_neurons(probabilities.tolist(), proportion)
    chosen = choose_neurons(probabilities, proportion)
    assert len(chosen.kept) <= int(400 * proportion)
    assert bool(found) or proportion < 0.02


@pytest.mark.parametrize("level", [0.0, 0.3, 1.0])
def test_nothing_is_above_the_percentile_if_all_are_equal(level: float) -> None:
    """Not even at 0, where no entropy is defined."""
    chosen = choose_neurons(np.full((50, 2), level), 1.0)
    assert chosen.kept.size == 0
    assert chosen.belongs.shape == (0, 2)


def test_the_percentile_is_interpolated_linearly() -> None:
    """Between the two neighbours, over all neurons and sets."""
    probabilities = np.arange(10.0).reshape(5, 2) / 10
    assert activity_threshold(probabilities) == pytest.approx(0.8 + 0.55 * 0.1)


def test_entropies() -> None:
    """0 log 0 is 0, and a multiple has the same."""
    found = entropies(np.array([[0.2, 0.0, 0.0], [0.1, 0.1, 0.0], [0.3, 0.3, 0.3], [1, 1, 1]]))
    assert found.tolist() == pytest.approx([0, np.log(2), np.log(3), np.log(3)])


def test_of_equal_entropies_the_lower_neuron_is_kept() -> None:
    """Also where rounding tells multiples of the same probabilities apart."""
    probabilities = np.zeros((200, 2))
    some = [3, 50, 120, 199]
    for neuron, scale in zip(some, (0.7, 0.3, 0.9, 0.1), strict=True):
        probabilities[neuron] = np.array([0.9, 0.1]) * scale
    for number in range(5):
        assert math_neurons(probabilities, number / 200) == some[:number]


def test_neurons_of_other_sets_take_places_and_are_not_selected() -> None:
    """They are kept, but belong to the other set; one of both sets belongs to math too."""
    probabilities = np.full((100, 2), 0.01)
    probabilities[[10, 20, 30]] = [[0.0, 0.9], [0.9, 0.1], [0.9, 0.8]]
    assert [math_neurons(probabilities, each / 100) for each in (1, 2, 3)] == [[], [20], [20, 30]]


@pytest.mark.parametrize("name", WITH)
def test_what_is_selected_equals_the_naive_choice(name: str) -> None:
    """In every family, from texts to positions; the edit is undone bit for bit."""
    model = FAMILIES[name].build()
    coverage = check_model(model, find_linear_weights(model))
    neurons = find_neurons(model, coverage).neurons
    importance = Importance({each: {} for each in SETS}, {})
    expected: list[list[float]] = []
    for each, texts in SETS.items():
        counts = ActivationCounts(neurons)
        ids, mask = padded(texts, "right")
        with counts.recording(), counts.batch(mask), torch.no_grad():
            run_decoder(model, ids, mask)
        importance.activations[each] = counts.counts()
        importance.tokens[each] = int(counts.tokens)
        naive = naive_lape.counts(model, texts, list(neurons))
        flat = [count for key in neurons for count in naive[key]]
        expected.append([count / sum(map(len, texts)) for count in flat])
    rows = [list(row) for row in zip(*expected, strict=True)]
    owners = [(key, column) for key, each in neurons.items() for column in range(each.count)]
    for proportion in (0.05, 0.5):
        selection = select(coverage.weights, importance, "lape", proportion)
        chosen = {owners[each] for each in naive_lape.math_neurons(rows, proportion)}
        found = set()
        for key, weight in coverage.weights.items():
            mask = selection.mask(key).t() if weight.transposed else selection.mask(key)
            columns = mask.any(dim=0)
            assert torch.equal(mask, columns.expand_as(mask))
            found |= {(key, column) for column in columns.nonzero().flatten().tolist()}
        assert found == chosen
        origin = selection.origin
        assert (origin["neurons"], origin["of_neurons"]) == (len(chosen), len(owners))
    before = weight_hash(model)
    with Edit(selection, 0.0).applied(model):
        assert (weight_hash(model) != before) == bool(chosen)
    assert weight_hash(model) == before


def two_weights() -> tuple[dict[str, Weight], Importance]:
    """Make two output projections of 40 neurons each, and one weight without neurons."""
    sizes = ((40, 3), (40, 2), (5, 5))
    linears = [torch.nn.Linear(*size) for size in sizes]
    weights = {f"{name}.weight": Weight(f"{name}.weight", linear)
               for name, linear in zip("abc", linears, strict=True)}  # fmt: skip
    counts = {name: torch.zeros(40, dtype=torch.int64) for name in ("a.weight", "b.weight")}
    active = {name: each.clone() for name, each in counts.items()}
    active["a.weight"][7], active["b.weight"][[0, 39]] = 6, 9
    names = ("math", "race", "mmlu")
    importance = Importance(
        {each: {} for each in names},
        {},
        activations={"math": active, "race": counts, "mmlu": active},
        tokens=dict.fromkeys(names, 10),
    )
    return weights, importance


def test_columns_are_selected_and_other_weights_are_empty() -> None:
    """In the order of the model, so that the first weight's neurons come first."""
    weights, importance = two_weights()
    selection = select(weights, importance, "lape", 0.025, calibration=["race"])
    assert selection.positions["a.weight"].tolist() == [7, 47, 87]
    assert selection.positions["b.weight"].tolist() == [0, 40]
    assert selection.positions["c.weight"].tolist() == []
    assert selection.origin["neurons"] == 2
    every = select(weights, importance, "lape", 1.0, calibration=["race"])
    assert every.origin["neurons"] == 3
    assert every.positions["b.weight"].tolist() == [0, 39, 40, 79]


def test_only_the_named_sets_are_compared() -> None:
    """The percentile too is that of these sets alone."""
    weights, importance = two_weights()
    both = select(weights, importance, "lape", 0.025)
    assert both.origin["calibration"] == ["race", "mmlu"]
    assert both.origin["neurons"] == 2
    importance.activations["mmlu"] = importance.activations["race"]
    one = select(weights, importance, "lape", 1 / 80)
    assert one.positions["a.weight"].tolist() == [7, 47, 87]


def test_neurons_of_weights_that_do_not_take_part_are_left_out() -> None:
    """Of the number of neurons too."""
    weights, importance = two_weights()
    weights.pop("a.weight")
    origin = select(weights, importance, "lape", 1.0).origin
    assert (origin["neurons"], origin["of_neurons"]) == (2, 40)


def test_without_activations_it_is_refused() -> None:
    """And other methods are not."""
    weights, importance = two_weights()
    importance.tokens["race"] = 0
    with pytest.raises(InputError, match="set race has no tokens"):
        select(weights, importance, "lape")
    importance.activations.pop("race")
    with pytest.raises(InputError, match="holds no activations of neurons, which the method lape"):
        select(weights, importance, "lape")
    importance.activations.clear()
    with pytest.raises(InputError, match=r"measure again with selection\.method lape, or with"):
        select(weights, importance, "lape")
    with pytest.raises(InputError, match="the method lape needs a calibration set"):
        select(weights, importance, "lape", calibration=[])
