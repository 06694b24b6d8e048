"""Tables, figures and TensorBoard's pages of a sweep, from the files in its folder alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mathneuro.files import write_text
from mathneuro.report import wording
from mathneuro.report.board import OVERVIEW, SETTINGS, write_board, write_setting_board
from mathneuro.report.cells import cells
from mathneuro.report.figures import draw_figures
from mathneuro.report.reading import read_study
from mathneuro.report.roles import find_roles
from mathneuro.report.rows import as_csv, rows
from mathneuro.report.summary import summary

__all__ = ["ReportFiles", "write_report", "write_setting_board"]


@dataclass(frozen=True)
class ReportFiles:
    """What a report consists of.

    Attributes:
        summary: The summary, Markdown.
        results: One row a setting and score, CSV.
        figures: All figures, PNG and SVG.
        tensorboard: The folder to give to TensorBoard.
        lines: What to tell on the terminal.
    """

    summary: Path
    results: Path
    figures: list[Path]
    tensorboard: Path
    lines: list[str]


def write_report(
    folder: Path, math: Sequence[str] | None = None, others: Sequence[str] | None = None
) -> ReportFiles:
    """Make the report of a sweep, finished or not, without loading a model.

    Args:
        folder: The folder of the sweep; the report goes into ``report`` and ``tensorboard`` there.
        math: Which scores stand for math: labels, or names of tasks for their first metric. None:
            what the sweep says, or else the first task.
        others: Which stand for the rest. None: what the sweep says, or else all other tasks.

    Returns:
        The files that were written.

    Raises:
        InputError: If the folder holds no sweep, a damaged file or no finished setting, there is no
            such score, or a file cannot be written.
    """
    study = read_study(folder)
    roles = find_roles(study, math, others)
    found = cells(study)
    target = folder / "report"
    results = target / "results.csv"
    write_text(results, as_csv(rows(study), study, roles))
    drawn = draw_figures(study, found, roles, target / "figures")
    links = [(each.title, each.png.relative_to(target)) for each in drawn]
    page = target / "summary.md"
    write_text(page, summary(study, found, roles, links))
    board = write_board(study, found, drawn, summary(study, found, roles, ()))
    done, planned = len(study.results), len(study.planned)
    return ReportFiles(
        summary=page,
        results=results,
        figures=[path for each in drawn for path in (each.png, each.svg)],
        tensorboard=board,
        lines=[
            f"{wording.model_name(study.model)}: {done:,} of {planned:,} settings are finished",
            f"math: {wording.math_name(roles)}",
            f"others: {wording.scores_name(roles.others) if roles.others else 'no score'}",
            *([] if study.before else ["before: not measured yet, so that no change is known"]),
            f"{page}, {results.name}, {len(drawn)} figures (PNG and SVG) in figures",
            f"curves, figures, summary: tensorboard --logdir {board / OVERVIEW}",
            f"one row a setting (page HParams): tensorboard --logdir {board / SETTINGS}",
        ],
    )
