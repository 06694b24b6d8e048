"""Scores against the proportion, or against the number of texts: one line a series."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mathneuro.estimates import Estimate
from mathneuro.report import wording
from mathneuro.report.cells import Cell, all_series, level
from mathneuro.report.marks import finite_pairs
from mathneuro.report.reading import Study
from mathneuro.report.roles import Roles
from mathneuro.report.style import (
    Styles,
    add_legend,
    new_figure,
    plain_ticks,
    proportion_axis,
    samples_axis,
    samples_places,
    scale,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 5
"""How many of the other scores get a panel of their own; more are averaged in one."""

OVER_REPEATS = "Bands and bars are 95 % intervals of the mean over the repeats"
OVER_QUESTIONS = "Bands and bars are 95 % intervals over questions or texts (there is one repeat)"
BASELINE = "the dotted line is the model as it was found, with its 95 % interval over questions."


def by_proportion(
    study: Study,
    found: Sequence[Cell],
    roles: Roles,
    styles: Styles,
    place: tuple[int | None, float],
) -> "Figure":
    """Draw every score against the proportion.

    Args:
        study: The sweep.
        found: Cells of one number of texts and factor.
        roles: Which scores stand for what.
        styles: The look of each series.
        place: The number of texts and the factor.
    """
    title = (
        f"{wording.model_name(study.model)}: scores by proportion, factor {place[1]:g}, "
        f"{wording.samples(place[0])}"
    )
    figure, panels = _figure(study, found, roles, styles, title, lambda cell: cell.proportion)
    for panel in panels:
        proportion_axis(panel, [cell.proportion for cell in found])
    return figure


def by_samples(
    study: Study, found: Sequence[Cell], roles: Roles, styles: Styles, place: tuple[float, float]
) -> "Figure":
    """Draw every score against the number of texts.

    Args:
        study: The sweep.
        found: Cells of one factor and proportion.
        roles: Which scores stand for what.
        styles: The look of each series.
        place: The factor and the proportion.
    """
    places = samples_places([cell.num_samples for cell in found])
    title = (
        f"{wording.model_name(study.model)}: scores by number of texts, factor {place[0]:g}, "
        f"proportion {place[1]:g}"
    )
    figure, panels = _figure(
        study, found, roles, styles, title, lambda cell: places[cell.num_samples]
    )
    for panel in panels:
        samples_axis(panel, places)
    return figure


def shown_scores(roles: Roles) -> list[tuple[str, ...]]:
    """Return the scores of each panel: each alone, but many others as their mean.

    Example:
        >>> shown_scores(Roles(("a acc",), ("b acc", "c acc")))
        [('a acc',), ('b acc',), ('c acc',)]
        >>> len(shown_scores(Roles(("a acc",), tuple(f"{i} acc" for i in range(9)))))
        2
    """
    others = [(label,) for label in roles.others] if len(roles.others) <= MOST else [roles.others]
    return [*((label,) for label in roles.math), *others]


def _figure(
    study: Study,
    found: Sequence[Cell],
    roles: Roles,
    styles: Styles,
    title: str,
    across: Callable[[Cell], float],
) -> tuple["Figure", list["Axes"]]:
    """Draw one panel a score."""
    shown = shown_scores(roles)
    several = any(len(cell.repeats) > 1 for cell in found)
    caption = f"{OVER_REPEATS if several else OVER_QUESTIONS}; {BASELINE}"
    figure, panels = new_figure(len(shown), title, caption, width=4.8, height=3.6)
    for panel, labels in zip(panels, shown, strict=True):
        is_math = all(roles.of(label) == "math" for label in labels)
        main = "first task" if roles.is_guessed else "math"
        panel.set_title(main if is_math else "others")
        scale(panel, labels, "y")
        if study.before is not None:
            _baseline(panel, level(study.before, labels))
        for series in all_series(found):
            mine = sorted((cell for cell in found if cell.series == series), key=across)
            points = [(across(cell), cell.level(labels)) for cell in mine]
            x, y = finite_pairs((place, each.value) for place, each in points)
            panel.plot(
                x, y, color=styles.colour(series), linestyle=styles.line(series), linewidth=1.4,
                marker=styles.marker(series), markersize=5.5, markeredgecolor="white",
                markeredgewidth=0.5, label=str(series), zorder=3,
            )  # fmt: skip
            _band(panel, points, styles.colour(series))
        plain_ticks(panel, labels, "y")
    add_legend(figure, panels)
    return figure, panels


def _baseline(panel: "Axes", estimate: Estimate) -> None:
    """Draw the model as it was found across the whole panel."""
    (_, value) = finite_pairs([(0.0, estimate.value)])
    for each in value:
        panel.axhline(each, color="black", linewidth=1.2, linestyle=":", label="before", zorder=2)
    if estimate.low is not None and estimate.high is not None:
        panel.axhspan(estimate.low, estimate.high, color="black", alpha=0.07, linewidth=0, zorder=1)


def _band(panel: "Axes", points: Sequence[tuple[float, Estimate]], colour: str) -> None:
    """Draw the intervals of one line: a band, or a bar where there is a single point."""
    known = [
        (x, each.value, each.low, each.high)
        for x, each in points
        if each.low is not None and each.high is not None
    ]
    if not known:
        return
    x, middle, low, high = (list(column) for column in zip(*known, strict=True))
    if len(known) > 1:
        panel.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0, zorder=1.5)
        return
    bars = [[middle[0] - low[0]], [high[0] - middle[0]]]
    panel.errorbar(x, middle, yerr=bars, color=colour, capsize=3, linestyle="", zorder=2.5)
