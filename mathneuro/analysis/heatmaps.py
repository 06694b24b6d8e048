"""Figures of numbers in two dimensions: block by projection, and edit by edit."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mathneuro.analysis.overlap import Overlap, Pair
from mathneuro.groups import OUTSIDE, Place
from mathneuro.report.style import SMALL, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERS = 120
"""Cells of a panel into which numbers are written; more are told by colour alone."""

MOST_NAMES = 26
"""Rows that are named; of more every so many are."""

ROW, COLUMN = 0.28, 0.62
"""Height and width of a cell in inches; of many rows each is lower."""

WIDE = 0.9
"""Height and width of a cell in inches that holds two numbers."""

TALL, LOW = 8.0, 4.6
"""Height in inches that all rows of a panel have together, in few panels and in many."""

COLOURS, BLANK = "viridis", "#E8E8E8"

Matrix = Sequence[Sequence[float]]


def block_heatmap(
    panels: Mapping[str, Mapping[Place, float]], title: str, caption: str, percents: bool
) -> "Figure":
    """Draw blocks against projections, in panels.

    Args:
        panels: Titles of panels, and the value of every cell that the model has.
        title: Above all.
        caption: Below all.
        percents: Whether the values are shares to be shown in percent, each panel on a scale of its
            own; otherwise all panels share one scale.
    """
    cells = list(dict.fromkeys(place for values in panels.values() for place in values))
    blocks = list(dict.fromkeys(cell.block for cell in cells))
    projections = list(dict.fromkeys(cell.projection for cell in cells))
    names = [OUTSIDE if block is None else str(block) for block in blocks]
    scale = 100 if percents else 1
    matrices = {
        name: [
            [scale * values.get(Place("cell", block, each), math.nan) for each in projections]
            for block in blocks
        ]
        for name, values in panels.items()
    }
    together = [value for matrix in matrices.values() for row in matrix for value in row]
    top = None if percents else _highest(together)
    width = max(3.4, COLUMN * len(projections) + 1.3)
    height = max(1.0, min(ROW * len(blocks), TALL if len(panels) <= 3 else LOW)) + 1.6
    figure, axes = new_figure(len(panels), title, caption, width, height, beside=0.2)
    for panel, (name, matrix) in zip(axes, matrices.items(), strict=True):
        panel.set_title(name)
        _draw(panel, matrix, top or _highest(value for row in matrix for value in row))
        panel.set_xticks(range(len(projections)), projections, rotation=60, ha="right",
                         rotation_mode="anchor")  # fmt: skip
        step = -(-len(blocks) // MOST_NAMES)
        panel.set_yticks(range(0, len(blocks), step), names[::step])
        panel.set_ylabel("decoder block")
    return figure


def jaccard_matrix(
    names: Sequence[str], pairs: Mapping[Pair, Overlap], title: str, caption: str
) -> "Figure":
    """Draw the overlap of every two selections, with what chance would give below each number.

    Args:
        names: Names of the selections.
        pairs: Their overlap in the whole model.
        title: Above all.
        caption: Below all.
    """
    number = len(names)
    values = [[math.nan] * number for _ in names]
    notes = [[""] * number for _ in names]
    for (first, second), overlap in pairs.items():
        for row, column in ((first, second), (second, first)):
            values[row][column] = overlap.jaccard
            notes[row][column] = f"({overlap.jaccard_by_chance.value:.2g})"
    cell = WIDE if number**2 <= MOST_NUMBERS else ROW
    side = max(3.6, cell * number + 1.6)
    figure, (panel,) = new_figure(1, title, caption, side + 0.8, side, beside=0.2)
    _draw(panel, values, 1.0, notes)
    panel.set_xticks(range(number), names, rotation=45, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(number), names)
    return figure


def _draw(panel: "Axes", matrix: Matrix, top: float, notes: Sequence[Sequence[str]] = ()) -> None:
    """Draw a matrix with its scale, and with numbers if they have room; NaN is blank."""
    from matplotlib import colormaps

    colours = colormaps[COLOURS].with_extremes(bad=BLANK)
    panel.grid(visible=False)
    image = panel.imshow(matrix, cmap=colours, vmin=0, vmax=top, aspect="auto")
    figure = panel.get_figure(root=True)
    if figure is not None:
        figure.colorbar(image, ax=panel, fraction=0.06, pad=0.03)
    if len(matrix) * len(matrix[0]) > MOST_NUMBERS:
        return
    for row, values in enumerate(matrix):
        for column, value in enumerate(values):
            if math.isfinite(value):
                note = f"\n{notes[row][column]}" if notes else ""
                colour = "black" if value > 0.6 * top else "white"
                panel.text(column, row, _short(value) + note, ha="center", va="center",
                           color=colour, fontsize=SMALL)  # fmt: skip


def _short(value: float) -> str:
    """Write a number in little room.

    Example:
        >>> _short(0.0), _short(0.0123), _short(12.34)
        ('0', '0.012', '12')
    """
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _highest(values: Iterable[float]) -> float:
    """Return the highest number, or 1 if none is above 0."""
    return max((value for value in values if value > 0), default=1.0)
