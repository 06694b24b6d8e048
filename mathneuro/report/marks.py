"""Names beside points, where there is room for them."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mathneuro.report.style import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = tuple[float, float]

PLACES: tuple[tuple[float, float, str, str], ...] = (
    (7, 0, "left", "center"),
    (-7, 0, "right", "center"),
    (0, 7, "center", "bottom"),
    (0, -7, "center", "top"),
    (5, 4, "left", "bottom"),
    (5, -4, "left", "top"),
    (-5, 4, "right", "bottom"),
    (-5, -4, "right", "top"),
)
"""Where a name may stand: offset in points, and how it is aligned."""

BACKGROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
"""Behind a name, so that it can be read on a line."""

HALF_MARK = 4.0
"""Half the width in points that a mark needs for itself."""


def finite_pairs(pairs: Iterable[Pair]) -> tuple[list[float], list[float]]:
    """Take pairs apart, without those that hold a number that cannot be drawn.

    Example:
        >>> finite_pairs([(1.0, 2.0), (3.0, float("nan")), (5.0, 6.0)])
        ([1.0, 5.0], [2.0, 6.0])
    """
    kept = [pair for pair in pairs if all(map(math.isfinite, pair))]
    return [pair[0] for pair in kept], [pair[1] for pair in kept]


def name_points(
    axes: "Axes", points: Sequence[tuple[float, float, str, str]], large: Sequence[Pair]
) -> None:
    """Write names beside points; one that would cover a name, a mark or an edge is left out.

    Args:
        axes: The panel, in its final place.
        points: Horizontal and vertical place in data, name and colour; the first ones choose first.
        large: Places of marks of twice the size that have no name.
    """
    from matplotlib.transforms import Bbox

    drawn = [point for point in points if all(map(math.isfinite, point[:2]))]
    figure = axes.get_figure(root=True)
    if figure is None or not drawn:
        return
    pixels = figure.dpi / 72
    taken = []
    for reach, marks in ((HALF_MARK, [point[:2] for point in drawn]), (2 * HALF_MARK, large)):
        for place in marks:
            x, y = axes.transData.transform(place)
            half = reach * pixels
            taken.append(Bbox.from_extents(x - half, y - half, x + half, y + half))
    for x, y, name, colour in drawn:
        for right, up, horizontal, vertical in PLACES:
            text = axes.annotate(
                name, (x, y), (right, up), textcoords="offset points", fontsize=SMALL,
                color=colour, ha=horizontal, va=vertical, zorder=2.6, bbox=BACKGROUND,
            )  # fmt: skip
            text.set_in_layout(False)
            box = text.get_window_extent()
            inside = axes.bbox.contains(box.x0, box.y0) and axes.bbox.contains(box.x1, box.y1)
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
