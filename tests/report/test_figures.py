"""Figures show what the cells hold, and their files are whole."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from PIL import Image

from mathneuro.report import ReportFiles
from mathneuro.report.cells import Cell, Series, all_series, cells, level
from mathneuro.report.figures import draw_figures
from mathneuro.report.lines import by_proportion, by_samples
from mathneuro.report.reading import Study, read_study
from mathneuro.report.roles import Roles, find_roles
from mathneuro.report.scatter import scatter
from mathneuro.report.style import SMALL, Styles, drawing
from tests.report.sweeps import TASKS, Sweep

Parts = tuple[Study, list[Cell], Roles, Styles]


@pytest.fixture(autouse=True)
def _drawing() -> Iterator[None]:
    """Draw as a report does."""
    with drawing():
        yield


def parts(folder: Path) -> Parts:
    """Return what a figure is made from."""
    study = read_study(folder)
    found = cells(study)
    return study, found, find_roles(study), Styles(all_series(found))


def line(panel: Axes, name: str) -> Line2D:
    """Return the line of a panel with a certain name in the legend."""
    (found,) = [each for each in panel.get_lines() if each.get_label() == name]
    return found


def data(found: Line2D) -> tuple[list[float], list[float]]:
    """Return what a line shows."""
    points = np.asarray(found.get_xydata(), dtype=float).reshape(-1, 2)
    return points[:, 0].tolist(), points[:, 1].tolist()


def check_legible(figure: Figure) -> None:
    """See that no text is small, leaves the figure, or covers the title or the legend."""
    figure.draw_without_rendering()
    (legend,) = figure.legends
    shown = [*figure.texts, *legend.get_texts()]
    for axes in figure.axes:
        shown += [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            names = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            shown += [name for place, name in names if low <= place <= high]
    whole, around = figure.bbox, legend.get_window_extent()
    assert len(shown) > 10
    for text in shown:
        box = text.get_window_extent()
        assert float(text.get_fontsize()) >= SMALL
        assert whole.x0 - 1 <= box.x0 <= box.x1 <= whole.x1 + 1, text
        assert whole.y0 - 1 <= box.y0 <= box.y1 <= whole.y1 + 1, text
        if text not in legend.get_texts():
            assert not around.overlaps(box), text


def test_the_scatter_shows_means_and_repeats(folder: Path) -> None:
    """Math upwards, the others to the right; the star has the intervals of the baseline."""
    study, found, roles, styles = parts(folder)
    figure = scatter(study, found, roles, styles, 500)
    (panel,) = figure.axes
    assert panel.get_xlabel() == "race acc"
    assert panel.get_ylabel() == TASKS[0]
    assert figure.get_suptitle().replace("\n", " ") == (
        "tiny-math: the first task against the rest, factor 0, 500 texts a set"
    )
    for series in all_series(found):
        mine = [cell for cell in found if cell.series == series]
        x, y = data(line(panel, str(series)))
        assert x == pytest.approx([cell.level(["race acc"]).value for cell in mine])
        assert y == pytest.approx([cell.level([TASKS[0]]).value for cell in mine])
    dots = [each for each in panel.get_lines() if each.get_alpha() == 0.3]
    assert [len(data(each)[0]) for each in dots] == [3] * 15
    assert study.before is not None
    (star,) = [each for each in panel.containers if each.get_label() == "before"]
    assert isinstance(star, ErrorbarContainer)
    low, high = level(study.before, ["race acc"]).low, level(study.before, ["race acc"]).high
    bars = [segment for bar in star.lines[2] for segment in bar.get_segments()]
    assert bars[0][:, 0].tolist() == pytest.approx([low, high])
    check_legible(figure)


def test_names_of_proportions_cover_nothing(folder: Path) -> None:
    """Neither each other nor a mark; there are some."""
    study, found, roles, styles = parts(folder)
    figure = scatter(study, found, roles, styles, 500)
    (panel,) = figure.axes
    names = [text for text in panel.texts if isinstance(text, Annotation)]
    assert {text.get_text() for text in names} == {"0.001", "0.01", "0.1"}
    boxes = [text.get_window_extent() for text in names]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        for cell in found:
            place = (cell.level(roles.others).value, cell.level(roles.math).value)
            assert not box.contains(*panel.transData.transform(place))


def test_there_is_a_panel_a_factor(tmp_path: Path) -> None:
    """Whose number it states."""
    sweep = Sweep(methods=("mathneuro", "wanda"), repeats=1, factors=(0.0, 0.5, 1.1, 2.0))
    study, found, roles, styles = parts(sweep.write(tmp_path / "sweep"))
    figure = scatter(study, found, roles, styles, 500)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["factor 0", "factor 0.5", "factor 1.1", "factor 2"]
    check_legible(figure)


def test_lines_by_proportion_have_bands_over_repeats(folder: Path) -> None:
    """One panel a score, the baseline dotted."""
    study, found, roles, styles = parts(folder)
    figure = by_proportion(study, found, roles, styles, (500, 0.0))
    assert [axes.get_ylabel() for axes in figure.axes] == [TASKS[0], "race acc"]
    panel = figure.axes[1]
    assert panel.get_xscale() == "log"
    assert panel.get_xlabel() == "proportion of each weight"
    assert study.before is not None
    baseline = level(study.before, ["race acc"])
    assert data(line(panel, "before"))[1] == [baseline.value] * 2
    mine = [cell for cell in found if cell.series == Series("wanda", ())]
    assert data(line(panel, "wanda")) == (
        [0.001, 0.01, 0.1],
        [cell.level(["race acc"]).value for cell in mine],
    )
    band = np.asarray(panel.collections[-1].get_paths()[0].vertices, dtype=float)[:, 1]
    ends = [end for cell in mine for end in (cell.level(["race acc"]).low,
                                             cell.level(["race acc"]).high)]  # fmt: skip
    for end in ends:
        assert end is not None
        assert np.abs(band - end).min() < 1e-9
    check_legible(figure)


def test_lines_by_number_of_texts_end_with_all(tmp_path: Path) -> None:
    """Which stands at the far right."""
    sweep = Sweep(repeats=2, proportions=(0.1,), num_samples=(None, 1, 100, 10))
    study, found, roles, styles = parts(sweep.write(tmp_path / "sweep"))
    figure = by_samples(study, found, roles, styles, (0.0, 0.1))
    panel = figure.axes[0]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["1", "10", "100", "all"]
    x, y = data(line(panel, "wanda"))
    assert x[:3] == [1, 10, 100]
    assert x[3] > 100
    mine = {cell.num_samples: cell for cell in found if cell.series == Series("wanda", ())}
    expected = [mine[count].level([TASKS[0]]).value for count in (1, 10, 100, None)]
    assert y == pytest.approx(expected)
    assert "factor 0, proportion 0.1" in figure.get_suptitle().replace("\n", " ")
    check_legible(figure)


def test_perplexities_have_logarithmic_axes_with_enough_ticks(tmp_path: Path) -> None:
    """Written as plain numbers."""
    sweep = Sweep(repeats=1, tasks=(), perplexities=("math", "race", "mmlu"))
    study, found, roles, styles = parts(sweep.write(tmp_path / "sweep"))
    figure = scatter(study, found, roles, styles, 500)
    (panel,) = figure.axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert panel.get_xlabel().replace("\n", " ") == (
        "geometric mean of perplexity race, perplexity mmlu"
    )
    check_legible(figure)
    low, high = panel.get_ylim()
    ticks = [tick for tick in panel.get_yticks() if low <= tick <= high]
    assert len(ticks) >= 3
    names = [text.get_text() for text in panel.get_yticklabels()]
    assert all(re.fullmatch(r"\d+(\.\d+)?", name) for name in names)


def test_many_other_scores_share_a_panel(tmp_path: Path) -> None:
    """As their mean."""
    tasks = (TASKS[0], *(f"task{i} acc" for i in range(7)))
    sweep = Sweep(methods=("wanda",), repeats=2, tasks=tasks)
    study, found, roles, styles = parts(sweep.write(tmp_path / "sweep"))
    figure = by_proportion(study, found, roles, styles, (500, 0.0))
    assert [axes.get_title() for axes in figure.axes] == ["first task", "others"]
    assert data(line(figure.axes[1], "wanda"))[1] == pytest.approx(
        [cell.level(tasks[1:]).value for cell in found]
    )
    check_legible(figure)


def test_what_is_no_number_is_not_drawn(tmp_path: Path) -> None:
    """The rest is."""
    sweep = Sweep(methods=("wanda",), repeats=1, tasks=())
    study, found, roles, styles = parts(sweep.write(tmp_path / "sweep"))
    scores = found[1].repeats[0].scores.perplexity
    scores["math"] = type(scores["math"])(math.nan, None, 12)
    figure = by_proportion(study, found, roles, styles, (500, 0.0))
    assert data(line(figure.axes[0], "wanda"))[0] == [0.001, 0.1]
    assert data(line(figure.axes[1], "wanda"))[0] == [0.001, 0.01, 0.1]


def test_a_single_setting_and_no_baseline_are_drawn(tmp_path: Path) -> None:
    """A point with a bar instead of a line with a band."""
    sweep = Sweep(methods=("new",), sets=("race",), repeats=1, proportions=(0.05,), before=False)
    study, found, roles, styles = parts(sweep.write(tmp_path / "sweep"))
    figure = scatter(study, found, roles, styles, 500)
    assert [len(data(line(figure.axes[0], "new, race"))[0])] == [1]
    figure = by_proportion(study, found, roles, styles, (500, 0.0))
    panel = figure.axes[0]
    assert len(panel.containers) == 1
    assert "before" not in [each.get_label() for each in panel.get_lines()]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["0.05"]


def test_methods_keep_their_colour() -> None:
    """Whatever else is shown; sets have markers of their own."""
    every = [Series(method, (name,)) for method in ("lape", "a", "mathneuro", "b")
             for name in ("race", "mmlu")]  # fmt: skip
    styles, alone = Styles(every), Styles([Series("mathneuro", ("mmlu",))])
    assert styles.colour(Series("mathneuro", ("mmlu",))) == "#0072B2"
    assert alone.colour(Series("mathneuro", ("mmlu",))) == "#0072B2"
    assert len({styles.colour(series) for series in every}) == 4
    markers = [styles.marker(series) for series in every[:2]]
    assert len({*markers, styles.marker(Series("wanda", ()))}) == 3


def test_files_are_whole(report: ReportFiles) -> None:
    """PNG files of a sensible size, SVG files whose text can be searched."""
    names = [path.name for path in report.figures]
    assert names == ["scatter_n500.png", "scatter_n500.svg",
                     "proportion_n500_x0.png", "proportion_n500_x0.svg"]  # fmt: skip
    for path in report.figures:
        if path.suffix == ".png":
            with Image.open(path) as image:
                image.load()
                assert 900 < image.width < 3000
                assert 500 < image.height < 2500
                assert len(image.convert("RGB").getcolors(maxcolors=10**7) or []) > 50
        else:
            text = " ".join(ElementTree.parse(path).getroot().itertext())
            for label in (TASKS[0], "race acc", "mathneuro, race", "wanda", "before", "tiny-math"):
                assert label in text


def test_the_same_sweep_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    """In every figure; figures of an earlier report are removed, other files are not."""
    study, found, roles, _ = parts(folder)
    (tmp_path / "samples_x0_p0.5.png").write_text("old")
    (tmp_path / "mine.png").write_text("mine")
    drawn = draw_figures(study, found, roles, tmp_path)
    first = {path: path.read_bytes() for each in drawn for path in (each.png, each.svg)}
    assert set(tmp_path.iterdir()) == {*first, tmp_path / "mine.png"}
    draw_figures(study, found, roles, tmp_path)
    assert {path: path.read_bytes() for path in first} == first


def test_proportions_that_lie_close_get_names(tmp_path: Path) -> None:
    """Decades if there are several, else every proportion."""
    for i, (proportions, names) in enumerate((
        ((0.0001, 0.001, 0.0025, 0.15), ["0.0001", "0.001"]),
        ((0.02, 0.05), ["0.02", "0.05"]),
        ((0.0, 0.01, 0.1), ["0", "0.01", "0.1"]),
    )):  # fmt: skip
        sweep = Sweep(methods=("random",), sets=("race",), repeats=1, proportions=proportions)
        study, found, roles, styles = parts(sweep.write(tmp_path / str(i)))
        figure = by_proportion(study, found, roles, styles, (500, 0.0))
        assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == names
        figure.draw_without_rendering()
        x, _ = data(line(figure.axes[0], "random, race"))
        assert all(a < b for a, b in pairwise(x))
