"""The table for programs, against naive computations from the files."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from mathneuro.errors import InputError
from mathneuro.questions import compare_questions
from mathneuro.report import ReportFiles, write_report
from mathneuro.report.reading import read_study
from mathneuro.report.roles import find_roles
from mathneuro.report.rows import as_csv, rows
from mathneuro.statistics import adjusted, compare_perplexity, compare_unpaired
from tests.report.sweeps import TASKS, Sweep, change

Table = dict[tuple[str, str], dict[str, str]]


def read(text: str) -> Table:
    """Read the table by setting and score."""
    return {(row["setting"], row["score"]): row for row in csv.DictReader(io.StringIO(text))}


def table_of(folder: Path) -> Table:
    """Make the table of a folder without the rest of a report."""
    study = read_study(folder)
    return read(as_csv(rows(study), study, find_roles(study)))


@pytest.fixture(scope="module")
def table(report: ReportFiles) -> Table:
    """The table of the whole report."""
    return read(report.results.read_text(encoding="utf-8"))


def outcomes(record: dict[str, Any], label: str) -> Any:  # noqa: ANN401
    """Return what a score is made of."""
    return record["outcomes"][label]


def test_there_is_a_row_a_setting_and_score(sweep: Sweep, table: Table) -> None:
    """With the setting, the share of the parameters and the score."""
    labels = [*TASKS, "perplexity math", "perplexity race"]
    assert list(table) == [(name, label) for name in sweep.records for label in labels]
    row = table["mathneuro_mmlu_n500_r2_p0.01_x0", "race acc"]
    shown = {"method": "mathneuro", "calibration": "mmlu", "num_samples": "500", "repeat": "2",
             "proportion": "0.01", "factor": "0.0", "selected_parameters": "1000",
             "selected_share": "0.01", "role": "other", "n": "60", "change": "difference",
             "same_as": "", "test": "exact McNemar"}  # fmt: skip
    assert {name: row[name] for name in shown} == shown
    score = sweep.records["mathneuro_mmlu_n500_r2_p0.01_x0"]["scores"]["tasks"]["race"]["acc"]
    assert float(row["value"]) == score["value"]
    assert float(row["standard_error"]) == score["standard_error"]
    assert table["wanda_n500_r1_p0.01_x0", TASKS[0]]["role"] == "math"
    assert table["wanda_n500_r1_p0.01_x0", TASKS[1]]["role"] == ""


def test_the_model_as_it_was_found_has_rows_without_a_change(table: Table) -> None:
    """And no setting."""
    row = table["before", "race acc"]
    assert row["method"] == "none"
    assert row["before"] == row["value"]
    empty = ("calibration", "num_samples", "proportion", "factor", "difference", "p_value", "test")
    assert all(row[name] == "" for name in empty)


def test_changes_are_paired_with_the_model_as_it_was_found(sweep: Sweep, table: Table) -> None:
    """Questions with questions, texts with texts."""
    for (name, label), row in table.items():
        if name == "before":
            continue
        old, new = (outcomes(sweep.records[which], label) for which in ("before", name))
        if label.startswith("perplexity"):
            expected = compare_perplexity(old["losses"], new["losses"], old["tokens"])
            ratio = math.exp((sum(new["losses"]) - sum(old["losses"])) / sum(old["tokens"]))
            assert row["change"] == "ratio"
            assert float(row["difference"]) == pytest.approx(ratio)
        else:
            expected = compare_questions(old["values"], new["values"])
            plain = (sum(new["values"]) - sum(old["values"])) / 60
            assert float(row["difference"]) == pytest.approx(plain)
        assert float(row["difference_low"]) == pytest.approx(expected.low)
        assert float(row["difference_high"]) == pytest.approx(expected.high)
        assert float(row["p_value"]) == pytest.approx(expected.p_value)


def test_p_values_are_adjusted_score_by_score(table: Table) -> None:
    """Over all settings."""
    for label in (TASKS[0], "perplexity race"):
        mine = [row for (name, each), row in table.items() if each == label and name != "before"]
        assert len(mine) == 45
        expected = adjusted([float(row["p_value"]) for row in mine])
        found = [float(row["p_adjusted"]) for row in mine]
        assert found == pytest.approx(expected)
        assert found != pytest.approx([float(row["p_value"]) for row in mine])


def test_settings_that_are_one_model_are_named_and_counted_once(tmp_path: Path) -> None:
    """One with the selection of another, one that selected nothing, one with factor 1."""
    sweep = Sweep(methods=("mathneuro",), sets=("race",), repeats=2, proportions=(1e-6, 0.01, 0.1),
                  factors=(0.0, 1.0))  # fmt: skip
    folder = sweep.write(tmp_path / "sweep")
    first, second = (f"mathneuro_race_n500_r{repeat}_p0.01_x0" for repeat in (1, 2))
    source = json.loads((folder / "settings" / f"{first}.json").read_text())
    change(folder / "settings" / f"{second}.json",
           **{name: source[name] for name in ("selection", "scores", "outcomes")})  # fmt: skip
    table = table_of(folder)
    assert table[first, "race acc"]["same_as"] == ""
    assert table[second, "race acc"]["same_as"] == first
    for name in ("mathneuro_race_n500_r1_p1e-06_x0", "mathneuro_race_n500_r1_p0.1_x1"):
        row = table[name, "race acc"]
        assert row["same_as"] == "before"
        assert (row["difference"], row["difference_low"], row["p_value"]) == ("0.0", "0.0", "")
        assert row["test"] == "same model as before"
        assert table[name, "perplexity math"]["difference"] == "1.0"
    own = [f"mathneuro_race_n500_r{repeat}_p{proportion}_x0"
           for repeat, proportion in ((1, 0.01), (1, 0.1), (2, 0.1))]  # fmt: skip
    expected = adjusted([float(table[name, TASKS[0]]["p_value"]) for name in own])
    assert [float(table[name, TASKS[0]]["p_adjusted"]) for name in own] == pytest.approx(expected)
    assert table[second, TASKS[0]]["p_adjusted"] == table[first, TASKS[0]]["p_adjusted"]


def test_without_the_model_as_it_was_found_changes_are_empty(tmp_path: Path) -> None:
    """The scores are not."""
    folder = Sweep(methods=("wanda",), repeats=1, before=False).write(tmp_path / "sweep")
    table = table_of(folder)
    assert len(table) == 3 * 5
    for row in table.values():
        assert float(row["value"]) >= 0
        for name in ("before", "difference", "difference_low", "p_value", "p_adjusted", "test"):
            assert row[name] == ""


def test_scores_without_outcomes_are_compared_by_standard_errors(tmp_path: Path) -> None:
    """As those of a group of tasks, or of a metric that is no mean."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,))
    folder = sweep.write(tmp_path / "sweep")
    for name, record in sweep.records.items():
        kept = {label: each for label, each in record["outcomes"].items() if label != "race acc"}
        change(folder / "settings" / f"{name}.json", outcomes=kept)
    study = read_study(folder)
    row = table_of(folder)["wanda_n500_r1_p0.1_x0", "race acc"]
    scores = [study.results[name].scores.tasks["race"]["acc"] for name in study.planned]
    expected = compare_unpaired(scores[0], scores[1])
    assert row["test"] == "unpaired z"
    assert float(row["difference_low"]) == expected.low
    assert float(row["p_value"]) == expected.p_value


def test_overflows_leave_cells_empty(tmp_path: Path) -> None:
    """Not the text nan."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,))
    folder = sweep.write(tmp_path / "sweep")
    change(folder / "settings" / "wanda_n500_r1_p0.1_x0.json",
           **{"scores__perplexity__math__value": None,
              "outcomes__perplexity math__losses": [None] * 12})  # fmt: skip
    row = table_of(folder)["wanda_n500_r1_p0.1_x0", "perplexity math"]
    assert (row["value"], row["difference"], row["p_value"]) == ("", "", "")
    assert row["test"] == "unknown: a loss is no number"


@pytest.mark.parametrize(
    "field", ["outcomes__race acc__values", "outcomes__perplexity math__tokens"]
)
def test_other_questions_are_refused(tmp_path: Path, field: str) -> None:
    """Naming the file."""
    folder = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,)).write(tmp_path / "sweep")
    change(folder / "settings" / "wanda_n500_r1_p0.1_x0.json", **{field: [1] * 12})
    with pytest.raises(
        InputError, match=r"^folder: settings/wanda_n500_r1_p0\.1_x0\.json holds ot"
    ):
        write_report(folder)
