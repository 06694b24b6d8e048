"""Figures of analyses show what they are given, legibly."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from mathneuro.analysis.chance import Sizes
from mathneuro.analysis.curves import Point, agreement_curves, removed_curves
from mathneuro.analysis.heatmaps import block_heatmap, jaccard_matrix
from mathneuro.analysis.overlap import Overlap
from mathneuro.analysis.profiles import overlap_profiles
from mathneuro.analysis.ranges import Range
from mathneuro.groups import Place
from mathneuro.report.cells import Series
from mathneuro.report.style import SMALL, drawing, samples_places

PROJECTIONS = ("self_attn.q_proj", "self_attn.o_proj", "mlp.experts.gate_up_proj", "mlp.down_proj")


@pytest.fixture(autouse=True)
def _drawing() -> Iterator[None]:
    """Draw as an analysis does."""
    with drawing():
        yield


def check_legible(figure: Figure) -> None:
    """See that no text is small or leaves the figure, and that titles of panels stand apart."""
    figure.draw_without_rendering()
    whole = figure.bbox
    shown: list[Text] = [*figure.texts]
    for axes in figure.axes:
        shown += [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            names = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            shown += [name for place, name in names if low <= place <= high]
    assert len(shown) > 10
    for text in filter(Text.get_text, shown):
        box = text.get_window_extent()
        assert float(text.get_fontsize()) >= SMALL
        assert whole.x0 - 1 <= box.x0 <= box.x1 <= whole.x1 + 1, text
        assert whole.y0 - 1 <= box.y0 <= box.y1 <= whole.y1 + 1, text
    titles = [axes.title.get_window_extent() for axes in figure.axes if axes.get_title()]
    for i, box in enumerate(titles):
        assert not any(box.overlaps(other) for other in titles[:i])


def heights(line: Line2D) -> list[float]:
    """Return where the points of a line are, upwards."""
    found: list[float] = np.asarray(line.get_ydata(), dtype=float).tolist()
    return found


@pytest.mark.parametrize("blocks", [1, 4, 30, 126])
@pytest.mark.parametrize("panels", [1, 2, 8])
def test_heatmaps_show_every_cell(blocks: int, panels: int) -> None:
    """The head is outside; what a model does not have is blank."""
    generator = np.random.default_rng(0)
    values = {
        f"panel {number}": {
            Place("cell", block, each): float(generator.random())
            for block in range(blocks)
            for each in PROJECTIONS
            if (block, each) != (0, PROJECTIONS[0])
        }
        | {Place("cell", None, "lm_head"): 0.5}
        for number in range(panels)
    }
    figure = block_heatmap(values, "a title", "a caption", percents=panels == 2)
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert len(shown) == panels
    projections = list(dict.fromkeys(place.projection for place in values["panel 0"]))
    for axes, expected in zip(shown, values.values(), strict=True):
        (image,) = axes.get_images()
        array = np.ma.filled(np.ma.asarray(image.get_array()).astype(float), math.nan)
        assert array.shape == (blocks + 1, len(projections))
        scale = 100 if panels == 2 else 1
        for row in range(blocks + 1):
            for column, each in enumerate(projections):
                block = None if row == blocks else row
                value = expected.get(Place("cell", block, each), math.nan)
                assert array[row, column] == pytest.approx(scale * value, nan_ok=True)
        assert len(axes.get_yticks()) <= 26
        assert [text.get_text() for text in axes.get_xticklabels()] == projections
        written = [text.get_text() for text in axes.texts]
        assert len(written) == (np.isfinite(array).sum() if array.size <= 120 else 0)
    assert figure.get_figheight() < 25
    check_legible(figure)


def test_nothing_selected_is_drawn() -> None:
    """As zeros, and as blanks where no share is known."""
    for value in (0.0, math.nan):
        cells = {Place("cell", 0, each): value for each in PROJECTIONS}
        check_legible(block_heatmap({"a": cells, "b": cells}, "t", "c", percents=True))


def overlap(common: int) -> Overlap:
    """Two selections of 40 and 50 of 1,000 parameters."""
    return Overlap((Sizes(1000, 40, 50),), common)


def test_the_matrix_is_symmetric() -> None:
    """With the index and chance in both halves, and a blank diagonal."""
    pairs = {(0, 1): overlap(30), (0, 2): overlap(2), (1, 2): overlap(0)}
    figure = jaccard_matrix(["a", "b", "c"], pairs, "a title", "a caption")
    (image,) = figure.axes[0].get_images()
    array = np.ma.filled(np.ma.asarray(image.get_array()).astype(float), math.nan)
    assert array[0, 1] == array[1, 0] == 30 / 60
    assert array[1, 2] == 0
    assert np.isnan(np.diag(array)).all()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("0.5\n(0.023)") == 2
    check_legible(figure)


def test_profiles_show_each_pair_and_its_chance() -> None:
    """By block as a line, by projection as points; what is empty is left out."""
    empty = Overlap((Sizes(1000, 0, 0),), 0)
    first = {Place("block", 0): overlap(30), Place("block", None): empty,
             Place("projection", projection=PROJECTIONS[0]): overlap(10),
             Place("projection", projection="lm_head"): empty}  # fmt: skip
    second = dict.fromkeys(first, overlap(5))
    figure = overlap_profiles({"a / b": first, "a / c": second}, "a title", "a caption")
    blocks, projections = figure.axes
    lines = {line.get_label(): line for line in blocks.get_lines()}
    assert heights(lines["a / b"]) == [30 / 60]
    assert heights(lines["a / c"]) == [5 / 85] * 2
    names = [text.get_text() for text in projections.get_xticklabels()]
    assert names == [PROJECTIONS[0], "lm_head"]
    check_legible(figure)


def test_curves_show_means_ranges_and_chance() -> None:
    """By proportion and by number of texts, all texts last."""
    chance = Range(0.01, 0.0, 0.02)
    shares = (Range(0.4, 0.3, 0.5), Range(0.8, 0.7, 0.9))
    points = [Point(place, share, chance)
              for place, share in zip((0.001, 0.1), shares, strict=True)]  # fmt: skip
    figure = agreement_curves({"500 texts": {Series("wanda", ()): points}}, "a title", "a caption")
    (panel,) = figure.axes
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert heights(lines["wanda"]) == [0.4, 0.8]
    assert heights(lines["wanda: chance"]) == [0.01, 0.01]
    band = np.asarray(panel.collections[0].get_paths()[0].vertices, dtype=float)[:, 1]
    assert {round(each, 6) for each in band} == {0.3, 0.5, 0.7, 0.9}
    check_legible(figure)
    places = samples_places([5, None])
    points = [Point(place, share, chance)
              for place, share in zip(places.values(), shares, strict=True)]  # fmt: skip
    panels = {f"proportion {each}": {Series("lape", ("a", "b")): points} for each in range(8)}
    figure = agreement_curves(panels, "a title", "a caption", places)
    assert [text.get_text() for text in figure.axes[7].get_xticklabels()] == ["5", "all"]
    check_legible(figure)


def test_removed_curves_show_the_whole_first() -> None:
    """In black; a share that is not known is left out."""
    lines = {"whole model": [(0.01, 0.5), (0.1, 0.7)], "mlp": [(0.01, math.nan), (0.1, 0.6)]}
    figure = removed_curves({"mathneuro, race": lines}, "a title", "a caption")
    whole, part = figure.axes[0].get_lines()
    assert (whole.get_color(), heights(whole)) == ("black", [0.5, 0.7])
    assert heights(part) == [0.6]
    check_legible(figure)
