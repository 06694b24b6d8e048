"""Figures of overlap by block and by projection."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mathneuro.analysis.overlap import Overlap
from mathneuro.groups import Level, Place
from mathneuro.report.marks import finite_pairs
from mathneuro.report.style import MARKERS, PALETTE, add_legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PAIRS = len(PALETTE)
"""Pairs in one figure."""

LEVELS: tuple[Level, ...] = ("block", "projection")


def overlap_profiles(
    pairs: Mapping[str, Mapping[Place, Overlap]], title: str, caption: str
) -> "Figure":
    """Draw the overlap of some pairs of selections, block by block and projection by projection.

    Args:
        pairs: By name of the pair and place; at most `MOST_PAIRS`.
        title: Above all.
        caption: Below all.
    """
    figure, panels = new_figure(len(LEVELS), title, caption, width=5.6)
    for panel, level in zip(panels, LEVELS, strict=True):
        places = list(
            dict.fromkeys(
                place for found in pairs.values() for place in found if place.level == level
            )
        )
        panel.set_title(f"by {level}")
        panel.set_ylabel("Jaccard index")
        for number, (name, found) in enumerate(pairs.items()):
            _draw(panel, [found[place] for place in places], name, number, level == "block")
        names = [place.block_name or place.projection for place in places]
        step = -(-len(places) // 16)
        panel.set_xticks(range(0, len(places), step), names[::step])
        if level == "projection":
            panel.tick_params(axis="x", rotation=60)
            for label in panel.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        else:
            panel.set_xlabel("decoder block")
        panel.set_ylim(bottom=0)
    add_legend(figure, panels)
    return figure


def _draw(panel: "Axes", overlaps: Sequence[Overlap], name: str, number: int, joined: bool) -> None:
    """Draw one pair: what was found, and the interval of chance."""
    colour, marker = PALETTE[number], MARKERS[number % len(MARKERS)]
    chance = [each.jaccard_by_chance for each in overlaps]
    x, y = finite_pairs((float(place), each.jaccard) for place, each in enumerate(overlaps))
    line = "-" if joined else ""
    panel.plot(x, y, color=colour, marker=marker, linestyle=line, markersize=5, linewidth=1.2,
               markeredgecolor="white", markeredgewidth=0.5, label=name, zorder=3)  # fmt: skip
    for place, each in enumerate(chance):
        if not math.isnan(each.value):
            panel.plot([place - 0.3, place + 0.3], [each.value] * 2, color=colour, linewidth=1.2,
                       linestyle=":", label="chance" if number == 0 else "_", zorder=2)  # fmt: skip
            panel.fill_between([place - 0.3, place + 0.3], each.low, each.high, color=colour,
                               alpha=0.25, linewidth=0, zorder=1.5)  # fmt: skip
