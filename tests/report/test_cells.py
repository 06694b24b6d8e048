"""Repeats together, against naive computations from the files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mathneuro.questions import compare_repeats
from mathneuro.report.cells import Cell, Series, all_series, by_panel, cells, level
from mathneuro.report.reading import read_study
from mathneuro.statistics import compare_perplexity
from tests.report.sweeps import TASKS, Sweep, change

STUDENT = {2: 4.302653, 4: 2.776445}
"""97.5 % quantiles of Student's t by degrees of freedom, from a table."""


def cell_of(found: list[Cell], series: Series, proportion: float) -> Cell:
    """Return one cell."""
    (cell,) = [each for each in found if (each.series, each.proportion) == (series, proportion)]
    return cell


def records(sweep: Sweep, **wanted: Any) -> list[dict[str, Any]]:
    """Return the records of settings with certain values."""
    return [
        record
        for record in sweep.records.values()
        if record["setting"] and wanted.items() <= record["setting"].items()
    ]


def test_repeats_are_put_together(sweep: Sweep, folder: Path) -> None:
    """Nothing else is; methods and proportions keep an order."""
    found = cells(read_study(folder))
    assert len(found) == 15
    assert all([each.setting.repeat for each in cell.repeats if each.setting] == [1, 2, 3]
               for cell in found)  # fmt: skip
    assert [cell.proportion for cell in found] == [0.001] * 5 + [0.01] * 5 + [0.1] * 5
    assert [str(series) for series in all_series(found)] == [
        "mathneuro, race", "mathneuro, mmlu", "random, race", "random, mmlu", "wanda",
    ]  # fmt: skip


def test_panels_go_through_texts_and_factors(tmp_path: Path) -> None:
    """All texts last."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,), factors=(1.1, 0.0),
                  num_samples=(None, 10, 2))  # fmt: skip
    found = cells(read_study(sweep.write(tmp_path / "sweep")))
    places = [(samples, factor) for samples, factor, _ in by_panel(found)]
    assert places == [(2, 0), (2, 1.1), (10, 0), (10, 1.1), (None, 0), (None, 1.1)]
    assert all(len(mine) == 1 for _, _, mine in by_panel(found))


def test_levels_are_means_over_repeats(sweep: Sweep, folder: Path) -> None:
    """Of one score, or of the mean of two, with Student's interval."""
    cell = cell_of(cells(read_study(folder)), Series("mathneuro", ("mmlu",)), 0.01)
    mine = records(sweep, method="mathneuro", calibration=["mmlu"], proportion=0.01)
    for labels in ([TASKS[0]], [TASKS[0], "race acc"]):
        means = [
            np.mean([np.mean(record["outcomes"][label]["values"]) for label in labels])
            for record in mine
        ]
        half = STUDENT[2] * np.std(means, ddof=1) / math.sqrt(3)
        found = cell.level(labels)
        assert found.value == pytest.approx(np.mean(means))
        assert found.low == pytest.approx(np.mean(means) - half, rel=1e-5)
        assert found.high == pytest.approx(np.mean(means) + half, rel=1e-5)


def test_perplexities_are_averaged_by_their_logarithms(tmp_path: Path) -> None:
    """Over sets and repeats."""
    labels = ["perplexity math", "perplexity race"]
    folder = Sweep(methods=("wanda",), proportions=(0.1,)).write(tmp_path / "sweep")
    values = [(2.0, 8.0), (5.0, 45.0), (3.0, 30.0)]
    for repeat, (first, second) in enumerate(values, 1):
        change(folder / "settings" / f"wanda_n500_r{repeat}_p0.1_x0.json",
               scores__perplexity__math__value=first,
               scores__perplexity__race__value=second)  # fmt: skip
    (cell,) = cells(read_study(folder))
    logarithms = [(math.log(first) + math.log(second)) / 2 for first, second in values]
    half = STUDENT[2] * np.std(logarithms, ddof=1) / math.sqrt(3)
    found = cell.level(labels)
    assert found.value == pytest.approx(math.exp(np.mean(logarithms)))
    assert found.low == pytest.approx(math.exp(np.mean(logarithms) - half), rel=1e-5)


def test_changes_average_each_question_over_the_repeats(sweep: Sweep, folder: Path) -> None:
    """So that the interval is over questions, not over questions times repeats."""
    study = read_study(folder)
    assert study.before is not None
    cell = cell_of(cells(study), Series("wanda", ()), 0.01)
    mine = records(sweep, method="wanda", proportion=0.01)
    before = sweep.records["before"]["outcomes"]
    values = [record["outcomes"]["race acc"]["values"] for record in mine]
    means = np.mean(values, axis=0)
    expected = compare_repeats(before["race acc"]["values"], values)
    found = cell.change(study.before, ["race acc"])
    assert found.value == pytest.approx(means.mean() - np.mean(before["race acc"]["values"]))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    old = before["perplexity race"]
    losses = np.mean([record["outcomes"]["perplexity race"]["losses"] for record in mine], axis=0)
    ratio = compare_perplexity(old["losses"], losses.tolist(), old["tokens"])
    found = cell.change(study.before, ["perplexity race"])
    assert found.value == pytest.approx(ratio.difference)
    assert (found.low, found.high) == pytest.approx((ratio.low, ratio.high))


def test_changes_of_several_scores_are_averaged(folder: Path) -> None:
    """With the interval of a mean of independent ones."""
    study = read_study(folder)
    assert study.before is not None
    cell = cell_of(cells(study), Series("wanda", ()), 0.01)
    first, second = (cell.change(study.before, [label]) for label in (TASKS[0], "race acc"))
    both = cell.change(study.before, [TASKS[0], "race acc"])
    assert both.value == pytest.approx((first.value + second.value) / 2)
    for end in ("low", "high"):
        reach = [getattr(each, end) - each.value for each in (first, second)]
        assert abs(getattr(both, end) - both.value) == pytest.approx(math.hypot(*reach) / 2)


def test_one_repeat_has_the_interval_over_questions(tmp_path: Path) -> None:
    """Wilson's, for answers that are right or wrong."""
    folder = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,)).write(tmp_path / "sweep")
    study = read_study(folder)
    (cell,) = cells(study)
    assert cell.level(["race acc"]) == level(study.results["wanda_n500_r1_p0.1_x0"], ["race acc"])
    found = cell.level(["race acc"])
    assert found.low is not None
    error = math.sqrt(found.low * (1 - found.low) / 60)
    assert found.value - found.low == pytest.approx(1.96 * error, rel=1e-3)


def test_a_repeat_that_overflows_is_not_left_out(tmp_path: Path) -> None:
    """The mean is no number then; other scores keep theirs."""
    folder = Sweep(methods=("wanda",), repeats=2, proportions=(0.1,)).write(tmp_path / "sweep")
    change(folder / "settings" / "wanda_n500_r2_p0.1_x0.json",
           **{"scores__perplexity__math__value": None,
              "outcomes__perplexity math__losses": [None] * 12})  # fmt: skip
    study = read_study(folder)
    assert study.before is not None
    (cell,) = cells(study)
    assert math.isnan(cell.level(["perplexity math"]).value)
    assert math.isnan(cell.change(study.before, ["perplexity math"]).value)
    assert cell.level(["perplexity race"]).value > 1


def test_scores_without_outcomes_have_a_change(tmp_path: Path) -> None:
    """Of means of values, with the errors of one repeat."""
    sweep = Sweep(methods=("wanda",), repeats=2, proportions=(0.1,))
    folder = sweep.write(tmp_path / "sweep")
    for name in sweep.records:
        change(folder / "settings" / f"{name}.json", outcomes={})
    study = read_study(folder)
    assert study.before is not None
    (cell,) = cells(study)
    old = study.before.scores.tasks["race"]["acc"]
    new = [result.scores.tasks["race"]["acc"] for result in cell.repeats]
    errors = [score.standard_error for score in new if score.standard_error is not None]
    assert old.standard_error is not None
    half = 1.959964 * math.hypot(old.standard_error, sum(errors) / 2)
    found = cell.change(study.before, ["race acc"])
    assert found.value == pytest.approx((new[0].value + new[1].value) / 2 - old.value)
    assert found.high == pytest.approx(found.value + half, rel=1e-5)
