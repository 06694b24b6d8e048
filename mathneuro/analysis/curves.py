"""Figures of agreement, and of what calibration removed, by proportion or number of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mathneuro.analysis.ranges import Range
from mathneuro.report.cells import Series
from mathneuro.report.marks import finite_pairs
from mathneuro.report.style import (
    MARKERS,
    PALETTE,
    Styles,
    add_legend,
    new_figure,
    proportion_axis,
    samples_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Point:
    """Agreement at one place of an axis.

    Attributes:
        place: Where: a proportion, or the place of a number of texts.
        share: The mean share in common, with the lowest and the highest pair's.
        chance: What chance would give, with its interval.
    """

    place: float
    share: Range
    chance: Range


def agreement_curves(
    panels: Mapping[str, Mapping[Series, Sequence[Point]]],
    title: str,
    caption: str,
    samples: Mapping[int | None, float] | None = None,
) -> "Figure":
    """Draw the share of selected parameters in common, one line a series.

    Args:
        panels: By title of the panel and series; points in rising order.
        title: Above all.
        caption: Below all.
        samples: The places of numbers of texts. None: places are proportions.
    """
    styles = Styles(list(dict.fromkeys(series for each in panels.values() for series in each)))
    proportions = [point.place for each in panels.values() for found in each.values()
                   for point in found]  # fmt: skip
    figure, axes = new_figure(len(panels), title, caption, width=4.2, height=3.2)
    for panel, (name, lines) in zip(axes, panels.items(), strict=True):
        panel.set_title(name)
        panel.set_ylabel("share in common")
        panel.set_ylim(-0.02, 1.02)
        for series, found in lines.items():
            _draw(panel, found, styles, series)
        if samples is None:
            proportion_axis(panel, proportions)
        else:
            samples_axis(panel, samples)
    add_legend(figure, axes)
    return figure


def removed_curves(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], title: str, caption: str
) -> "Figure":
    """Draw the share of the top that calibration removed against the proportion.

    Args:
        panels: By title of the panel and name of the line: proportion and share. The first line is
            that of the whole model.
        title: Above all.
        caption: Below all.
    """
    figure, axes = new_figure(len(panels), title, caption, width=5.2)
    for panel, (name, lines) in zip(axes, panels.items(), strict=True):
        panel.set_title(name)
        panel.set_ylabel("share of the top that is removed")
        panel.set_ylim(-0.02, 1.02)
        for number, (label, points) in enumerate(lines.items()):
            x, y = finite_pairs(points)
            panel.plot(
                x, y, label=label, zorder=3 if number else 4, linewidth=1.2 if number else 2.4,
                color=PALETTE[(number - 1) % len(PALETTE)] if number else "black", markersize=4.5,
                marker=MARKERS[number % len(MARKERS)], markeredgecolor="white",
                markeredgewidth=0.5,
            )  # fmt: skip
        proportion_axis(panel, [each[0] for points in lines.values() for each in points])
    add_legend(figure, axes)
    return figure


def _draw(panel: "Axes", found: Sequence[Point], styles: Styles, series: Series) -> None:
    """Draw one series: mean and range over pairs, and below what chance would give."""
    colour, x = styles.colour(series), [each.place for each in found]
    low, high = ([getattr(each.share, end) for each in found] for end in ("low", "high"))
    panel.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, zorder=1.5)
    panel.plot(
        x, [each.share.value for each in found], color=colour, linestyle=styles.line(series),
        marker=styles.marker(series), markersize=5, linewidth=1.4, markeredgecolor="white",
        markeredgewidth=0.5, label=str(series), zorder=3,
    )  # fmt: skip
    panel.plot(
        x, [each.chance.value for each in found], color=colour, linestyle=":", linewidth=1.4,
        label=f"{series}: chance", zorder=2,
    )  # fmt: skip
