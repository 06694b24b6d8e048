"""What an analysis leaves in its folder: a summary, tables, figures and a page for TensorBoard."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mathneuro.analysis.ranges import Range
from mathneuro.errors import InputError
from mathneuro.files import write_text
from mathneuro.folders import replace_folder
from mathneuro.report.drawn import Drawn, save_figure, write_summary_page
from mathneuro.report.style import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES, BOARD, SUMMARY = "figures", "tensorboard", "summary.md"

RUNS = ("study.json", "results.json")
"""Files that a run or a sweep leaves in its folder."""

NO_NUMBER = "-"
"""What is written where a share has nothing to be a share of."""

Cell = str | float | int | None
"""A cell of a table; None and NaN are unknown."""


@dataclass(frozen=True)
class Table:
    """One row a fact, for programs that read tables.

    Attributes:
        columns: Names of the columns.
        rows: Their cells.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def csv(self) -> str:
        r"""Write it as CSV; what is unknown is an empty cell.

        Example:
            >>> Table(("a", "b"), [(1, math.nan), ("x,y", None)]).csv()
            'a,b\n1,\n"x,y",\n'
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow(["" if _is_unknown(cell) else cell for cell in row])
        return text.getvalue()


def check_folder(folder: Path) -> None:
    """Refuse a folder whose own summary and pages would be overwritten.

    Raises:
        InputError: If a run or a sweep left its results there.
    """
    for name in RUNS:
        if (folder / name).exists():
            raise InputError(
                f"folder: {folder} holds the results of a run ({name}); give a folder of its own"
            )


def write_analysis(
    folder: Path,
    summary: Sequence[str],
    tables: Mapping[str, Table | None],
    figures: Iterable[tuple[str, "Figure"]],
) -> list[Drawn]:
    """Write all files of an analysis; those of an earlier one are replaced.

    Args:
        folder: Where they go.
        summary: Lines of Markdown.
        tables: By the name of their files; None: there is none this time.
        figures: With the names of their files, without an ending.

    Returns:
        The figures.
    """
    drawn: list[Drawn] = []

    def draw(unfinished: Path) -> None:
        with drawing():
            drawn.extend(save_figure(figure, unfinished / name) for name, figure in figures)

    replace_folder(folder / FIGURES, draw, beside=folder)
    final = folder / FIGURES
    kept = [Drawn(each.title, final / each.png.name, final / each.svg.name) for each in drawn]
    for name, table in tables.items():
        if table is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_text(folder / name, table.csv())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(summary).strip()) + "\n"
    replace_folder(
        folder / BOARD, lambda run: write_summary_page(run, "summary", text, kept), beside=folder
    )
    links = [line for each in kept for line in (f"![{each.title}]({FIGURES}/{each.png.name})", "")]
    write_text(folder / SUMMARY, "\n".join([text, "## Figures", "", *links]))
    return kept


def percent(share: float) -> str:
    """Write a share; a share of nothing is no number.

    Example:
        >>> percent(0.01234), percent(math.nan)
        ('1.23 %', '-')
    """
    return NO_NUMBER if math.isnan(share) else f"{100 * share:.3g} %"


def percents(found: Range) -> str:
    """Write a share with its ends.

    Example:
        >>> percents(Range(0.5, 0.25, 0.75))
        '50 % [25, 75]'
    """
    return f"{percent(found.value)} [{100 * found.low:.3g}, {100 * found.high:.3g}]"


def number_of_texts(num_samples: int | None) -> str | int:
    """Return the cell of a number of texts."""
    return "all" if num_samples is None else num_samples


def _is_unknown(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))
