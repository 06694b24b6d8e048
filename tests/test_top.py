"""The highest scores of a weight against a naive sort."""

import math

import pytest
import torch
from torch import Tensor

from mathneuro import blocks
from mathneuro import cutoffs as cutoffs_module
from mathneuro.cutoffs import find_cutoffs
from mathneuro.errors import InputError
from mathneuro.importance import scores
from mathneuro.kernels import find_highest
from mathneuro.top import find_tops
from tests import naive

ROWS, COLUMNS = 9, 13
COUNTS = (0, 1, 2, 7, 58, 116, 117)
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

WEIGHTS = {
    "distinct": lambda: torch.randn(ROWS, COLUMNS),
    "few": lambda: torch.randint(-2, 3, (ROWS, COLUMNS)),
    "equal": lambda: torch.full((ROWS, COLUMNS), -0.3),
    "zero": lambda: torch.zeros(ROWS, COLUMNS) * -1,
    "smallest": lambda: torch.randint(-3, 4, (ROWS, COLUMNS)) * 6e-8,
}
VECTORS = {
    "distinct": lambda: torch.rand(COLUMNS).double(),
    "few": lambda: torch.randint(0, 3, (COLUMNS,)).double(),
    "equal": lambda: torch.full((COLUMNS,), 0.7).double(),
    "zero": lambda: torch.zeros(COLUMNS).double(),
    "subnormal": lambda: torch.randint(1, 9, (COLUMNS,)).double() * 1e-322,
    "huge": lambda: torch.rand(COLUMNS).double() * 1e300,
    "of either sign": lambda: torch.randint(-3, 4, (COLUMNS,)).double(),
}


@pytest.fixture(autouse=True, params=[(2**16, 2**13), (1, 58), (26, 3)], ids=str)
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in one block, row by row, and two rows at a time; all scores, many, or few."""
    block, sample = request.param
    monkeypatch.setattr(blocks, "BLOCK", block)
    monkeypatch.setattr(cutoffs_module, "SAMPLE", sample)


def tops(weight: Tensor, vector: Tensor) -> list[tuple[Tensor, set[int]]]:
    """Return what is found for each count, and what is to be found."""
    cutoffs = find_cutoffs(weight, vector, COUNTS)
    found = find_tops(weight, [vector], [[cutoffs[count]] for count in COUNTS])
    expected = [naive.top(scores(weight, vector), count) for count in COUNTS]
    return list(zip(found, expected, strict=True))


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tops_equal_a_naive_sort(dtype: torch.dtype, kind: str, vector: str) -> None:
    """Ties and rounding of every kind, for all counts at once; whichever way it is stored."""
    weight = WEIGHTS[kind]().to(dtype)
    for matrix in (weight, weight.t().contiguous().t(), torch.stack([weight, weight])[1]):
        for found, expected in tops(matrix, VECTORS[vector]()):
            assert found.dtype == torch.int64
            assert found.tolist() == sorted(expected)


@pytest.mark.parametrize("others", [1, 2])
@pytest.mark.parametrize("kind", ["distinct", "few", "equal"])
@pytest.mark.parametrize("vector", ["few", "of either sign"])
def test_other_tops_are_left_out(vector: str, kind: str, others: int) -> None:
    """As sets are subtracted, also where ties divide both tops."""
    weight = WEIGHTS[kind]().bfloat16()
    vectors = [VECTORS[vector]() for _ in range(1 + others)]
    cutoffs = [find_cutoffs(weight, each, COUNTS) for each in vectors]
    ends = {count: [found[count] for found in cutoffs] for count in COUNTS}
    together = find_tops(weight, vectors, list(ends.values()))
    for count, found in zip(COUNTS, together, strict=True):
        first, *rest = (naive.top(scores(weight, each), count) for each in vectors)
        assert found.tolist() == sorted(first.difference(*rest))
        [alone] = find_tops(weight, vectors, [ends[count]])
        assert torch.equal(alone, found)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_is_found_in_a_weight_of_no_parameters(shape: tuple[int, int]) -> None:
    """Which has a cutoff all the same."""
    weight, vector = torch.empty(shape), torch.ones(shape[1]).double()
    cutoffs = find_cutoffs(weight, vector, [0])
    assert find_tops(weight, [vector], [[cutoffs[0]]])[0].tolist() == []


@pytest.mark.parametrize("counts", [[0], [1], [0, 1, 117]])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_refused(
    number: float, sign: int, counts: list[int]
) -> None:
    """Wherever they stand, however few are selected; also Inf times 0."""
    for place in ((0, 0), (ROWS - 1, COLUMNS - 1), (4, 5)):
        for vector in (torch.ones(COLUMNS), torch.arange(COLUMNS)):
            weight = torch.randn(ROWS, COLUMNS)
            weight[place] = number
            with pytest.raises(InputError, match=r"^scores: a weight or its importance holds NaN"):
                find_cutoffs(weight, vector.double() * sign, counts)


def test_scores_whose_sum_alone_is_infinite_are_not_refused() -> None:
    """Since each is finite."""
    weight = torch.full((ROWS, COLUMNS), 3.0)
    vector = torch.full((COLUMNS,), 5e307, dtype=torch.float64)
    assert math.isinf(float(scores(weight, vector).sum()))
    assert [found.tolist() for found, _ in tops(weight, vector)] == [
        list(range(count)) for count in COUNTS
    ]


@pytest.mark.parametrize("rare", [0, 3, 40])
def test_cutoffs_do_not_depend_on_the_sample(rare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large weights, of which a sample may tell the wrong thing, such as that most is 0."""
    weight, vector = torch.randn(300, 200), torch.rand(200).double()
    if rare:
        weight[torch.randperm(300)[rare:]] = 0.0
    counts = [1, 6, 60, 600, 9000, 60_000]
    expected = [sorted(naive.top(scores(weight, vector), count)) for count in counts]
    for sample in (1, 64, 2**13, 2**20):
        monkeypatch.setattr(cutoffs_module, "SAMPLE", sample)
        ends = find_cutoffs(weight, vector, counts)
        found = find_tops(weight, [vector], [[ends[count]] for count in counts])
        assert [each.tolist() for each in found] == expected


def test_few_scores_are_looked_at_in_a_large_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A little more than are asked for."""
    weight, vector = torch.randn(500, 400), torch.rand(400).double()
    seen = []

    def noted(flat: Tensor, count: int) -> object:
        seen.append(len(flat))
        return find_highest(flat, count)

    monkeypatch.setattr(cutoffs_module, "SAMPLE", 2**13)
    monkeypatch.setattr(cutoffs_module, "find_highest", noted)
    find_cutoffs(weight, vector, [20_000])
    assert seen[0] == 2**13
    assert 20_000 <= seen[1] < 24_000
