"""Whole reports of small and unfinished sweeps."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from mathneuro.report import ReportFiles, write_report
from tests.report.sweeps import TASKS, Sweep


def test_it_says_what_it_wrote(report: ReportFiles, folder: Path) -> None:
    """And everything that it names is there."""
    assert report.summary == folder / "report" / "summary.md"
    assert report.results == folder / "report" / "results.csv"
    for path in (report.summary, report.results, report.tensorboard, *report.figures):
        assert path.exists()
    assert report.lines == [
        "tiny-math: 46 of 46 settings are finished",
        f"math: {TASKS[0]}, as the first task; --math names another",
        "others: race acc",
        f"{report.summary}, results.csv, 2 figures (PNG and SVG) in figures",
        f"curves, figures, summary: tensorboard --logdir {folder}/tensorboard/overview",
        f"one row a setting (page HParams): tensorboard --logdir {folder}/tensorboard/settings",
    ]


def test_scores_can_be_chosen(tmp_path: Path) -> None:
    """In every part of the report."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.01, 0.1))
    report = write_report(sweep.write(tmp_path / "sweep"), ["race"], ["gsm8k_cot"])
    assert report.lines[1:3] == ["math: race acc", f"others: {TASKS[0]}"]
    page = report.summary.read_text(encoding="utf-8")
    assert "- `math` stands for: race acc\n" in page
    with report.results.open(encoding="utf-8") as file:
        roles = {row["score"]: row["role"] for row in csv.DictReader(file)}
    assert (roles["race acc"], roles[TASKS[0]], roles[TASKS[1]]) == ("math", "other", "")
    svg = (tmp_path / "sweep" / "report" / "figures" / "scatter_n500.svg").read_text()
    assert TASKS[0] in svg


@pytest.mark.parametrize(
    ("sweep", "kept", "figures", "words"),
    [
        (Sweep(), 1, 0, "1 of 46 settings are finished"),
        (Sweep(methods=("wanda",), repeats=1, before=False), 3, 4, "before: not measured yet"),
        (Sweep(methods=("mathneuro",), sets=("race",), repeats=1, proportions=(0.05,)), 2, 4,
         "2 of 2 settings are finished"),
        (Sweep(methods=("wanda",), repeats=2, tasks=()), 7, 4, "others: perplexity race"),
        (Sweep(methods=("wanda",), repeats=1, tasks=TASKS[:1], perplexities=()), 4, 2,
         "others: no score"),
        (Sweep(methods=("wanda",), repeats=1, proportions=(1e-6,)), 2, 4, "2 of 2"),
    ],
    ids=["only before", "no before", "one setting", "perplexities", "only math", "nothing chosen"],
)  # fmt: skip
def test_small_sweeps_have_a_report(
    tmp_path: Path, sweep: Sweep, kept: int, figures: int, words: str
) -> None:
    """With one row a finished setting and score, and the figures that make sense."""
    folder = sweep.write(tmp_path / "sweep")
    if kept == 1:
        for path in (folder / "settings").iterdir():
            if path.stem != "before":
                path.unlink()
    report = write_report(folder)
    assert words in "\n".join(report.lines)
    assert len(report.figures) == figures
    with report.results.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == kept * (len(sweep.tasks) + len(sweep.perplexities))
    assert report.summary.read_text(encoding="utf-8").startswith("# Sweep of tiny-math")


def test_no_model_library_is_needed() -> None:
    """Nor matplotlib and scipy before there is something to draw or compare."""
    code = (
        "import sys, mathneuro.report; heavy = {'transformers', 'lm_eval', 'lightning', "
        "'matplotlib', 'scipy', 'tensorboard'}; print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
