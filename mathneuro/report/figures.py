"""All figures of a report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mathneuro.report import wording
from mathneuro.report.cells import Cell, all_series, by_panel
from mathneuro.report.drawn import Drawn, save_figure
from mathneuro.report.lines import by_proportion, by_samples
from mathneuro.report.reading import Study
from mathneuro.report.roles import Roles
from mathneuro.report.scatter import scatter
from mathneuro.report.style import Styles, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("scatter", "proportion", "samples")
"""How the names of the files begin."""


def draw_figures(study: Study, found: Sequence[Cell], roles: Roles, folder: Path) -> list[Drawn]:
    """Draw everything; figures of an earlier report that are not drawn again are removed.

    Args:
        study: The sweep.
        found: Its cells; without any there is nothing to draw.
        roles: Which scores stand for what.
        folder: Where the files go.
    """
    with drawing():
        drawn = [
            save_figure(figure, folder / name) for name, figure in _figures(study, found, roles)
        ]
    kept = {path for each in drawn for path in (each.png, each.svg)}
    for kind in KINDS:
        for path in folder.glob(f"{kind}_*.*g"):
            if path not in kept:
                path.unlink()
    return drawn


def _figures(study: Study, found: Sequence[Cell], roles: Roles) -> Iterator[tuple[str, "Figure"]]:
    """Draw one figure after the other, with the name of its file without an ending."""
    styles = Styles(all_series(found))
    counts = list(dict.fromkeys(cell.num_samples for cell in found))
    if roles.others:
        for count in counts:
            mine = [cell for cell in found if cell.num_samples == count]
            name = f"scatter_{wording.short_samples(count)}"
            yield name, scatter(study, mine, roles, styles, count)
    for count, factor, mine in by_panel(found):
        name = f"proportion_{wording.short_samples(count)}_x{factor:g}"
        yield name, by_proportion(study, mine, roles, styles, (count, factor))
    for factor, proportion in dict.fromkeys((cell.factor, cell.proportion) for cell in found):
        mine = [cell for cell in found if (cell.factor, cell.proportion) == (factor, proportion)]
        if len({cell.num_samples for cell in mine}) < 2:
            continue
        name = f"samples_x{factor:g}_p{proportion:g}"
        yield name, by_samples(study, mine, roles, styles, (factor, proportion))
