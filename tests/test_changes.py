"""Changes between two states of a model are paired wherever they can be."""

import math

import pytest

from mathneuro.changes import changes
from mathneuro.questions import compare_questions
from mathneuro.scores import Score, Scores
from mathneuro.statistics import compare_perplexity, compare_unpaired
from mathneuro.table import table

BEFORE = Scores(
    perplexity={"math": Score(2.0, 0.1, 3)},
    tasks={"sums": {"acc": Score(0.75, 0.2, 4), "f1": Score(0.8, 0.1, 4)}},
    outcomes={
        "sums acc": {"values": [1.0, 1.0, 0.0, 1.0]},
        "perplexity math": {"losses": [1.0, 2.0, 3.0], "tokens": [2, 3, 4]},
    },
)
AFTER = Scores(
    perplexity={"math": Score(3.0, 0.1, 3)},
    tasks={"sums": {"acc": Score(0.25, 0.2, 4), "f1": Score(0.1, 0.1, 4)}},
    outcomes={
        "sums acc": {"values": [0.0, 1.0, 0.0, 0.0]},
        "perplexity math": {"losses": [2.0, 2.5, 5.0], "tokens": [2, 3, 4]},
    },
)


def test_each_kind_of_score_has_its_comparison() -> None:
    """Questions, texts, and scores of which only a standard error is known."""
    found = changes(BEFORE, AFTER)
    assert found == {
        "sums acc": compare_questions([1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]),
        "sums f1": compare_unpaired(Score(0.8, 0.1, 4), Score(0.1, 0.1, 4)),
        "perplexity math": compare_perplexity([1.0, 2.0, 3.0], [2.0, 2.5, 5.0], [2, 3, 4]),
    }
    assert found["sums acc"].difference == -0.5
    # Two questions, both lost: McNemar's exact p is 2 * (1/2)^2.
    assert found["sums acc"].p_value == pytest.approx(0.5)
    assert found["perplexity math"].difference == pytest.approx(math.exp(3.5 / 9))


def test_the_table_shows_intervals_and_p_values() -> None:
    """Or as much of them as is known."""
    rows = {row.label: row.change for row in table({"before": BEFORE, "after": AFTER})}
    assert rows["sums acc"].startswith("-0.500 [-")
    assert rows["sums acc"].endswith("] p = 0.500")
    assert rows["sums f1"].endswith("] p < 0.001")
    assert rows["perplexity math"].startswith("x 1.475 [")


def test_a_score_that_is_no_number_has_no_change() -> None:
    """An edit can make a model overflow."""
    broken = Scores(perplexity={"math": Score(math.inf, None, 3)})
    rows = {row.label: row.change for row in table({"before": BEFORE, "after": broken})}
    assert rows["perplexity math"] == ""
    assert rows["sums acc"] == ""
