"""The summary says what was run, what came out, and how sure that is."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from mathneuro.report import ReportFiles, wording
from mathneuro.report.cells import cells
from mathneuro.report.comparing import adjusted_p_values
from mathneuro.report.reading import read_study
from mathneuro.report.roles import find_roles
from mathneuro.report.summary import summary
from tests.report.sweeps import TASKS, Sweep, change, damage


def summary_of(folder: Path) -> str:
    """Write the summary of a folder without the rest of a report."""
    study = read_study(folder)
    return summary(study, cells(study), find_roles(study), ())


def table_rows(page: str, first: str) -> list[list[str]]:
    """Return the cells of the rows that begin with a certain cell."""
    lines = [line for line in page.splitlines() if line.startswith(f"| {first} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def page(report: ReportFiles) -> str:
    """The summary of the whole report."""
    return report.summary.read_text(encoding="utf-8")


def test_it_says_what_was_run(page: str) -> None:
    """The model, the grid, and what stands for what, in full."""
    assert page.startswith("# Sweep of tiny-math\n")
    for line in (
        "- model: org/tiny-math, 100,000 parameters",
        "- settings: all 46 are finished, the model as it was found included",
        "- methods: mathneuro, random, wanda",
        "- calibration: race, mmlu",
        "- repeats: 3",
        "- proportions: 0.001, 0.01, 0.1",
        "- num samples: 500",
        f"- `math` stands for: {TASKS[0]}, as the first task; --math names another",
        "- `others` stands for: race acc",
    ):
        assert f"\n{line}\n" in page


def test_the_baseline_has_its_errors(sweep: Sweep, page: str) -> None:
    """And its number of questions."""
    score = sweep.records["before"]["scores"]["tasks"]["race"]["acc"]
    shown = f"{score['value']:.3f} ± {score['standard_error']:.3f}"
    assert table_rows(page, "race acc") == [["race acc", "others", shown, "60"]]
    assert table_rows(page, "perplexity race")[0][3] == "12"


def test_there_is_a_row_a_cell_with_levels_and_changes(folder: Path, page: str) -> None:
    """As `cells` finds them."""
    study = read_study(folder)
    assert study.before is not None
    assert page.count("### Factor 0, 500 texts a set") == 1
    rows = [row for name in ("mathneuro", "random", "wanda") for row in table_rows(page, name)]
    assert len(rows) == 15
    by_key = {(row[0], row[1], row[2]): row[3:] for row in rows}
    for cell in cells(study):
        key = (cell.series.method, "+".join(cell.series.calibration), f"{cell.proportion:g}")
        repeats, selected, level, changed, others, others_change, *perplexities = by_key[key]
        assert (repeats, selected) == ("3", f"{100 * cell.proportion:g} %")
        assert level == wording.level([TASKS[0]], cell.level([TASKS[0]]))
        assert others == wording.level(["race acc"], cell.level(["race acc"]))
        expected = wording.change(["race acc"], cell.change(study.before, ["race acc"]))
        assert others_change.startswith(f"{expected} ")
        labels = ["perplexity math", "perplexity race"]
        for label, shown in zip(labels, perplexities, strict=True):
            expected = wording.change([label], cell.change(study.before, [label]))
            assert shown.startswith(f"{expected} ")
        assert re.fullmatch(r"[+-]\d\.\d{3} \[[+-].*, [+-].*\] [●○~]", changed)


def test_marks_tell_how_many_repeats_are_significant(folder: Path, page: str) -> None:
    """After the adjustment for all settings; each mark occurs."""
    study = read_study(folder)
    p_values = adjusted_p_values(study, [TASKS[0]])
    seen = set()
    for cell in cells(study):
        below = [(p_values[result.name] or 0) < 0.05 for result in cell.repeats]
        mark = "●" if all(below) else "○" if any(below) else "~"
        key = [cell.series.method, "+".join(cell.series.calibration), f"{cell.proportion:g}"]
        (row,) = [each for each in table_rows(page, key[0]) if each[:3] == key]
        assert row[6][-1] == mark
        seen.add(mark)
    assert {"●", "~"} <= seen
    for mark in "●○~":
        assert f"{mark} " in page.partition("### Factor")[0]


def test_noise_is_marked_as_noise(page: str) -> None:
    """Pruning random parameters does nothing in these data, and reads so."""
    for row in table_rows(page, "random"):
        assert row[6].endswith("~")
        assert row[8].endswith("~")


def test_figures_are_shown(page: str, report: ReportFiles) -> None:
    """By links that lead to files."""
    links = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page)
    assert len(links) == 2
    for link in links:
        assert report.summary.parent / link in report.figures


def test_missing_settings_are_counted(tmp_path: Path) -> None:
    """And the repeats that each row lacks."""
    folder = Sweep().write(tmp_path / "sweep")
    for name in ("mathneuro_race_n500_r2_p0.01_x0", "wanda_n500_r3_p0.1_x0"):
        (folder / "settings" / f"{name}.json").unlink()
    page = summary_of(folder)
    assert (
        "- settings: **44 of 46 are finished**, 2 are missing: mathneuro_race_n500_r2_p0.01_x0, "
        "wanda_n500_r3_p0.1_x0\n" in page
    )
    assert [row[3] for row in table_rows(page, "wanda")] == ["3", "3", "2 of 3"]


def test_without_the_model_as_it_was_found_it_says_so(tmp_path: Path) -> None:
    """And shows levels without changes."""
    page = summary_of(Sweep(methods=("wanda",), before=False).write(tmp_path / "sweep"))
    assert "The model as it was found is not measured yet" in page
    for row in table_rows(page, "wanda"):
        assert (row[6], row[8]) == ("", "")
        assert re.fullmatch(r"0\.\d{3} \[.*\]", row[5])


def test_with_the_model_as_it_was_found_alone_there_are_no_tables(tmp_path: Path) -> None:
    """Of settings; its scores are there."""
    folder = Sweep().write(tmp_path / "sweep")
    for path in (folder / "settings").iterdir():
        if path.stem != "before":
            path.unlink()
    page = summary_of(folder)
    assert "**1 of 46 are finished**, 45 are missing" in page
    assert "## Settings" not in page
    assert len(table_rows(page, "race acc")) == 1


def test_one_repeat_says_which_interval_it_has(tmp_path: Path) -> None:
    """Over questions; nothing is said of repeats."""
    folder = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,)).write(tmp_path / "sweep")
    page = summary_of(folder)
    assert "Where there is one repeat, the brackets after `math` and `others` hold the 95 %" in page
    assert "means over the repeats; the brackets" not in page


def test_perplexities_change_by_ratios(tmp_path: Path) -> None:
    """And have a geometric mean."""
    sweep = Sweep(methods=("wanda",), tasks=(), perplexities=("math", "race", "mmlu"))
    page = summary_of(sweep.write(tmp_path / "sweep"))
    assert "stands for: geometric mean of perplexity race, perplexity mmlu\n" in page
    row = table_rows(page, "wanda")[-1]
    true = math.exp(2 * damage({"method": "wanda", "num_samples": 500, "proportion": 0.1,
                                "factor": 0.0}, is_math=True))  # fmt: skip
    for changed in (row[6], row[8]):
        found = re.fullmatch(r"x (\d.*) \[(\d.*), (\d.*)\] ●", changed)
        assert found
        assert float(found[1]) == pytest.approx(true, rel=0.02)
        assert float(found[2]) < float(found[1]) < float(found[3])


def test_settings_that_changed_nothing_are_named_so(tmp_path: Path) -> None:
    """Rather than as a change of 0."""
    sweep = Sweep(methods=("wanda",), proportions=(1e-6, 0.1))
    page = summary_of(sweep.write(tmp_path / "sweep"))
    none, some = table_rows(page, "wanda")
    assert (none[4], none[6], none[8]) == ("0 %", "unchanged model", "unchanged model")
    assert some[6].startswith("-0.")


def test_overflows_are_no_number(tmp_path: Path) -> None:
    """And have no change."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,), tasks=())
    folder = sweep.write(tmp_path / "sweep")
    change(folder / "settings" / "wanda_n500_r1_p0.1_x0.json",
           **{"scores__perplexity__math__value": None,
              "outcomes__perplexity math__losses": [None] * 12})  # fmt: skip
    (row,) = table_rows(summary_of(folder), "wanda")
    assert (row[5], row[6]) == ("no number", "")


def test_notes_and_places_are_remarked(tmp_path: Path) -> None:
    """With how many settings they concern."""
    sweep = Sweep(methods=("wanda",), repeats=1)
    folder = sweep.write(tmp_path / "sweep")
    for name in ("wanda_n500_r1_p0.1_x0", "wanda_n500_r1_p0.01_x0"):
        change(folder / "settings" / f"{name}.json", scores__notes=["2 prompts were cut"])
    change(folder / "settings" / "before.json", run__device="cuda:0", run__host="b")
    page = summary_of(folder)
    assert "- 2 prompts were cut (2 settings)\n" in page
    assert "measured in 2 places, whose rounding may differ (cpu on a: 3, cuda:0 on b: 1)" in page


def test_one_place_is_no_remark(page: str, sweep: Sweep, folder: Path) -> None:
    """Nothing to remark, no section; what the scores depend on is there as JSON."""
    assert "## Remarks" not in page
    block = page.partition("```json\n")[2].partition("```")[0]
    assert json.loads(block) == json.loads((folder / "study.json").read_text())["matters"]


def test_the_largest_change_of_a_mean_of_scores_is_tested(tmp_path: Path) -> None:
    """All answers right before and wrong after leave no spread to divide by."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,), tasks=("a acc", "b acc"))
    folder = sweep.write(tmp_path / "sweep")
    for name, value in (("before", 1.0), ("wanda_n500_r1_p0.1_x0", 0.0)):
        changes: dict[str, Any] = {}
        for task in ("a", "b"):
            changes[f"outcomes__{task} acc__values"] = [value] * 60
            changes[f"scores__tasks__{task}__acc__value"] = value
            changes[f"scores__tasks__{task}__acc__standard_error"] = 0.0
        change(folder / "settings" / f"{name}.json", **changes)
    found = adjusted_p_values(read_study(folder), ["a acc", "b acc"])["wanda_n500_r1_p0.1_x0"]
    assert found is not None
    assert found < 1e-6
