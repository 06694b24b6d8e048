"""Math against everything else: one point a setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mathneuro.estimates import Estimate
from mathneuro.finished import Result
from mathneuro.report import wording
from mathneuro.report.cells import Cell, all_series, level
from mathneuro.report.marks import finite_pairs, name_points
from mathneuro.report.reading import Study
from mathneuro.report.roles import Roles
from mathneuro.report.style import Styles, add_legend, new_figure, plain_ticks, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "A large mark is the mean over the repeats at one proportion, which stands beside it where "
    "there is room; faint marks are the repeats. The star is the model as it was found, with 95 % "
    "intervals."
)


def scatter(
    study: Study, found: Sequence[Cell], roles: Roles, styles: Styles, num_samples: int | None
) -> "Figure":
    """Draw math against the mean of the others, one panel a factor.

    Args:
        study: The sweep.
        found: Cells of one number of texts.
        roles: Which scores stand for what; there must be others.
        styles: The look of each series.
        num_samples: The number of texts.
    """
    factors = sorted({cell.factor for cell in found})
    name = wording.model_name(study.model)
    math = "the first task" if roles.is_guessed else "math"
    of_factors = " and ".join(f"{factor:g}" for factor in factors)
    title = (
        f"{name}: {math} against the rest, factor{'' if len(factors) == 1 else 's'} {of_factors}, "
        f"{wording.samples(num_samples)}"
    )
    figure, panels = new_figure(len(factors), title, CAPTION, width=5.4, height=4.8)
    for panel, factor in zip(panels, factors, strict=True):
        panel.set_title(f"factor {factor:g}")
        scale(panel, roles.others, "x")
        scale(panel, roles.math, "y")
        mine = [cell for cell in found if cell.factor == factor]
        _draw(panel, study, mine, roles, styles)
        plain_ticks(panel, roles.others, "x")
        plain_ticks(panel, roles.math, "y")
    add_legend(figure, panels)
    # Only now do the panels have the places in which names may be put beside points.
    figure.draw_without_rendering()
    before = [] if study.before is None else [_place(study.before, roles)]
    for panel, factor in zip(panels, factors, strict=True):
        mine = [cell for cell in found if cell.factor == factor]
        name_points(panel, _names(mine, roles, styles), before)
    return figure


def _draw(panel: "Axes", study: Study, found: Sequence[Cell], roles: Roles, styles: Styles) -> None:
    """Draw the points of one factor."""
    for series in all_series(found):
        mine = [cell for cell in found if cell.series == series]
        colour, marker = styles.colour(series), styles.marker(series)
        means = [(cell.level(roles.others).value, cell.level(roles.math).value) for cell in mine]
        points = finite_pairs(means)
        for cell in mine:
            if len(cell.repeats) > 1:
                dots = finite_pairs(
                    zip(cell.values(roles.others), cell.values(roles.math), strict=True)
                )
                panel.plot(*dots, linestyle="", marker=marker, markersize=3, alpha=0.3,
                           color=colour, markeredgewidth=0, zorder=2)  # fmt: skip
        panel.plot(*points, linestyle=styles.line(series), linewidth=0.9, color=colour, zorder=2.2)
        panel.plot(
            *points, linestyle="", marker=marker, markersize=6.5, color=colour, label=str(series),
            markeredgecolor="white", markeredgewidth=0.6, zorder=3,
        )  # fmt: skip
    if study.before is not None:
        across, up = level(study.before, roles.others), level(study.before, roles.math)
        panel.errorbar(
            [across.value], [up.value], xerr=_bars(across), yerr=_bars(up), marker="*",
            markersize=15, color="black", markeredgecolor="white", markeredgewidth=0.6,
            ecolor="black", elinewidth=1.2, capsize=3, linestyle="", label="before", zorder=4,
        )  # fmt: skip


def _place(result: Result, roles: Roles) -> tuple[float, float]:
    """Return where a setting stands."""
    return level(result, roles.others).value, level(result, roles.math).value


def _bars(estimate: Estimate) -> list[list[float]] | None:
    """Return how far the interval reaches below and above, as matplotlib takes it."""
    if estimate.low is None or estimate.high is None:
        return None
    return [[estimate.value - estimate.low], [estimate.high - estimate.value]]


def _names(
    found: Sequence[Cell], roles: Roles, styles: Styles
) -> list[tuple[float, float, str, str]]:
    """Return each point's place, name and colour; large proportions first, which lie apart."""
    ordered = sorted(found, key=lambda cell: -cell.proportion)
    return [
        (
            cell.level(roles.others).value,
            cell.level(roles.math).value,
            f"{cell.proportion:g}",
            styles.colour(cell.series),
        )
        for cell in ordered
    ]
