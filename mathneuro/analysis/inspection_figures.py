"""Figures of an inspection of edits."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mathneuro.analysis.heatmaps import block_heatmap, jaccard_matrix
from mathneuro.analysis.inspection import JACCARD, Inspection
from mathneuro.analysis.profiles import MOST_PAIRS, overlap_profiles
from mathneuro.groups import WHOLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def inspection_figures(found: Inspection) -> Iterator[tuple[str, "Figure"]]:
    """Draw one figure after the other, with the name of its file without an ending."""
    caption = "Shares in percent, of the parameters that take part. Grey: there is no such weight."
    for number, (edit, location) in enumerate(zip(found.edits, found.location, strict=True), 1):
        cells = {place: share for place, share in location.items() if place.level == "cell"}
        panels = {
            "selected of each weight, %": {key: each.of_place for key, each in cells.items()},
            "of all selected, %": {key: each.of_selected for key, each in cells.items()},
        }
        title = f"{edit.name}: where the selected parameters lie ({edit.made})"
        yield f"location_{number}", block_heatmap(panels, title, caption, percents=True)
    if not found.pairs:
        return
    names = [each.name for each in found.edits]
    whole = {pair: by_place[WHOLE] for pair, by_place in found.pairs.items()}
    caption = f"{JACCARD} In brackets: what chance would give."
    yield "jaccard", jaccard_matrix(names, whole, "What the edits have in common", caption)
    caption = f"{JACCARD} Dotted: what chance would give, in its 95 % interval."
    title = "What the edits have in common, by block and projection"
    pairs = list(found.pairs.items())
    for first in range(0, len(pairs), MOST_PAIRS):
        named = {
            found.pair_name(pair): by_place for pair, by_place in pairs[first : first + MOST_PAIRS]
        }
        name = f"overlap_{first // MOST_PAIRS + 1}"
        yield name, overlap_profiles(named, title, caption)
