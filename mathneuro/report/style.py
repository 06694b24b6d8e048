"""How every figure looks."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mathneuro.report import wording
from mathneuro.report.cells import Series, are_perplexities

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"mathneuro": "#0072B2", "wanda": "#D55E00", "random": "#777777", "lape": "#009E73"}
"""Of the methods, from the palette of Okabe and Ito, which colour-blind readers can tell apart."""

FURTHER = ("#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of methods that have no colour of their own, in turn."""

PALETTE = (*COLOURS.values(), *FURTHER)
"""Of anything else, in turn."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES = ("-", "--", "-.", ":")
SMALL = 9
"""Size of the smallest text in points."""

BESIDE = 1.9
"""Width in inches of the legend beside the panels."""

SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "figure.titlesize": 12,
    "legend.fontsize": SMALL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    # Text stays text in SVG files: it can be searched, and the same figure gives the same bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "mathneuro",
}


class Styles:
    """The look of each series: colour by method, marker and dashes by calibration sets.

    Args:
        series: All series of a report, so that each looks the same in every figure.
    """

    def __init__(self, series: Sequence[Series]) -> None:
        methods = dict.fromkeys(each.method for each in series)
        others = [method for method in methods if method not in COLOURS]
        self._further = {name: FURTHER[i % len(FURTHER)] for i, name in enumerate(others)}
        sets = list(dict.fromkeys(each.calibration for each in series if each.calibration))
        self._sets = [*sets, ()]

    def colour(self, series: Series) -> str:
        """Return the colour of the series' method."""
        return COLOURS.get(series.method) or self._further[series.method]

    def marker(self, series: Series) -> str:
        """Return the marker of the series' calibration sets."""
        return MARKERS[self._sets.index(series.calibration) % len(MARKERS)]

    def line(self, series: Series) -> str:
        """Return the dashes of the series' calibration sets; full where there are none."""
        place = self._sets.index(series.calibration) if series.calibration else 0
        return LINES[place % len(LINES)]


@contextmanager
def drawing() -> Iterator[None]:
    """Use this module's look inside, whatever settings matplotlib has outside."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def new_figure(
    panels: int,
    title: str,
    caption: str,
    width: float = 4.6,
    height: float = 4.0,
    beside: float = BESIDE,
) -> tuple["Figure", list["Axes"]]:
    """Make a figure with panels in up to three columns.

    Args:
        panels: How many.
        title: Above all panels.
        caption: Below all panels.
        width: Of a panel in inches.
        height: Of a panel in inches.
        beside: Width in inches of what stands to the right of the panels, as a legend does.
    """
    from matplotlib.figure import Figure

    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = Figure(figsize=(width * columns + beside, height * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for unused in axes[panels:]:
        unused.remove()
    room = width * columns
    # Both stand over the panels alone, since the legend is beside them.
    middle = room / 2 / figure.get_figwidth()
    figure.suptitle(textwrap.fill(title, int(7.5 * room)), x=middle, fontweight="bold")
    figure.supxlabel(
        textwrap.fill(caption, int(13 * room)), x=middle, fontsize=SMALL, color="#444444"
    )
    return figure, axes[:panels]


def add_legend(figure: "Figure", axes: Sequence["Axes"]) -> None:
    """Put one legend for all panels to their right."""
    handles: dict[str, Artist] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside right upper")


def scale(axes: "Axes", labels: Sequence[str], axis: str) -> None:
    """Name an axis by the scores that it shows; perplexities get a logarithmic one."""
    name = wording.scores_name(labels)
    lines = textwrap.wrap(name, 44)
    if len(lines) > 4:
        lines = [f"mean of {len(labels)} scores, named in summary.md"]
    text = "\n".join(lines)
    logarithmic = "log" if are_perplexities(labels) else "linear"
    if axis == "x":
        axes.set_xlabel(text)
        axes.set_xscale(logarithmic)
    else:
        axes.set_ylabel(text)
        axes.set_yscale(logarithmic)


def plain_ticks(axes: "Axes", labels: Sequence[str], axis: str) -> None:
    """Write the ticks of a logarithmic axis of scores as plain numbers, and enough of them.

    Everything must be drawn already, since the range decides.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if not are_perplexities(labels):
        return
    target = axes.xaxis if axis == "x" else axes.yaxis
    low, high = target.get_view_interval()
    is_narrow = high < 10 * low
    target.set_major_locator(
        MaxNLocator(6, steps=(1, 2, 2.5, 5, 10)) if is_narrow else LogLocator(numticks=7)
    )
    target.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    target.set_minor_locator(NullLocator())


def proportion_axis(axes: "Axes", proportions: Sequence[float]) -> None:
    """Make the horizontal axis one of proportions, logarithmic, with a tick at each decade."""
    axes.set_xlabel("proportion of each weight")
    place_ticks(axes, proportions)


def samples_places(counts: Iterable[int | None]) -> dict[int | None, float]:
    """Return where numbers of texts stand on an axis: all texts to the right of every number.

    Example:
        >>> samples_places([None, 100, 10, 100])
        {10: 10.0, 100: 100.0, None: 400.0}
    """
    distinct = set(counts)
    numbers = sorted(count for count in distinct if count is not None)
    places: dict[int | None, float] = {count: float(count) for count in numbers}
    return places | ({None: 4 * max(places.values(), default=1.0)} if None in distinct else {})


def samples_axis(axes: "Axes", places: Mapping[int | None, float]) -> None:
    """Make the horizontal axis one of numbers of texts, logarithmic, with every one named."""
    axes.set_xlabel("texts of each set")
    place_ticks(axes, list(places.values()))
    names = ["all" if count is None else f"{count:g}" for count in places]
    axes.set_xticks(list(places.values()), names)


def place_ticks(axes: "Axes", values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with short ticks at the values and named decades."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    positive = sorted({value for value in values if value > 0})
    if not positive:
        return
    if len(set(values)) == 1:
        axes.set_xlim(positive[0] / 3, positive[0] * 3)
    if min(values) <= 0:
        axes.set_xscale("symlog", linthresh=positive[0])
    else:
        axes.set_xscale("log")
    named = [value for value in positive if f"{value:e}".startswith("1.000000")]
    if len(named) < 2:
        named = positive
    if min(values) <= 0:
        named = [0.0, *named]
    axes.set_xticks(named, [f"{value:g}" for value in named])
    axes.xaxis.set_minor_locator(FixedLocator(positive))
    axes.xaxis.set_minor_formatter(NullFormatter())
