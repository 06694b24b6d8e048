"""What selections have in common and where they lie, against sets of positions."""

from itertools import combinations, product

import numpy as np
import pytest
import torch

from mathneuro.analysis.common import number_in_common, pack
from mathneuro.analysis.concentration import most_selected
from mathneuro.analysis.location import locate, removed_by_calibration
from mathneuro.analysis.overlap import (
    check_comparable,
    count_parameters,
    count_selected,
    overlaps,
)
from mathneuro.errors import InputError
from mathneuro.groups import WHOLE, Place, find_places
from mathneuro.selection import Selection

SHAPES: dict[str, tuple[int, ...]] = {
    "h.0.attn.weight": (8, 9),
    "h.0.mlp.experts.0.weight": (5, 13),
    "h.0.mlp.experts.1.weight": (5, 13),
    "h.1.attn.weight": (8, 9),
    "h.1.mlp.experts.0.weight": (5, 13),
    "h.1.mlp.experts.1.weight": (5, 13),
    "lm_head.weight": (1, 1),
}


def random_selection(seed: int, share: float) -> Selection:
    """Select at random, in some weights nothing and in some everything."""
    generator = np.random.default_rng(seed)
    positions = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        mask = generator.random(shape) < (1.0 if (number + seed) % 5 == 0 else share)
        positions[name] = torch.from_numpy(np.flatnonzero(mask))
    return Selection(positions, SHAPES)


def as_sets(selection: Selection, names: list[str]) -> set[tuple[str, int]]:
    """Return the selected parameters of some weights, one by one."""
    return {(name, each) for name in names for each in selection.positions[name].tolist()}


NOTHING = Selection({name: torch.tensor([], dtype=torch.int64) for name in SHAPES}, SHAPES)

SELECTIONS = [*(random_selection(seed, share) for seed, share in ((1, 0.2), (2, 0.5), (3, 0.9))),
              NOTHING]  # fmt: skip


def test_overlaps_equal_sets() -> None:
    """Of every pair, for the whole, each block, projection and weight of a block."""
    places = find_places(SHAPES)
    assert len(places) == 1 + 3 + 3 + 5
    found = overlaps(SELECTIONS, places)
    assert list(found) == list(combinations(range(4), 2))
    for (i, j), by_place in found.items():
        for place, names in places.items():
            first, second = (as_sets(SELECTIONS[each], names) for each in (i, j))
            overlap, common = by_place[place], first & second
            assert (overlap.first, overlap.second) == (len(first), len(second))
            assert overlap.common == len(common)
            either = len(first | second)
            assert overlap.jaccard == pytest.approx(
                len(common) / either if either else float("nan"), nan_ok=True
            )
            if first:
                assert overlap.share_of_first == len(common) / len(first)
            if second:
                assert overlap.share_of_second == len(common) / len(second)
            by_chance = sum(
                SELECTIONS[i].positions[name].numel() * SELECTIONS[j].positions[name].numel()
                / count_parameters(SHAPES[name]) for name in names
            )  # fmt: skip
            assert overlap.chance.mean == pytest.approx(by_chance)
            jaccard, share = overlap.jaccard_by_chance, overlap.share_by_chance
            if first or second:
                for each in (jaccard, share):
                    assert each.low <= each.value <= each.high or each.low == each.high


def test_bits_and_positions_count_as_sets_do() -> None:
    """At sizes around that of a word; of nothing, few, many and all."""
    for parameters in (1, 63, 64, 65, 1000, 9999):
        generator = torch.Generator().manual_seed(parameters)
        shares = (0.0, 0.004, 0.01, 0.3, 1.0)
        masks = [torch.rand(parameters, generator=generator) < share for share in shares]
        packed = [pack(mask.nonzero().flatten(), parameters) for mask in masks]
        far = [pack(mask.nonzero().flatten(), 10**15) for mask in masks]
        for i, j in product(range(len(masks)), repeat=2):
            common = int((masks[i] & masks[j]).sum())
            assert number_in_common(packed[i], packed[j]) == common
            assert number_in_common(far[i], far[j]) == common
        assert [each.count for each in packed] == [int(mask.sum()) for mask in masks]
        assert packed[-1].words is not None
        assert all(each.words is None for each in far)


def test_location_equals_sets() -> None:
    """Shares of the place's parameters and of all that is selected; and what was removed."""
    places = find_places(SHAPES)
    parameters = {name: count_parameters(shape) for name, shape in SHAPES.items()}
    for selection in SELECTIONS[:3]:
        found = locate(places, parameters, count_selected(selection))
        everything = as_sets(selection, list(SHAPES))
        for place, names in places.items():
            mine = as_sets(selection, names)
            size = sum(parameters[name] for name in names)
            assert found[place].of_place == len(mine) / size
            assert found[place].of_selected == len(mine) / len(everything)
    empty = locate(places, parameters, count_selected(SELECTIONS[3]))
    assert empty[WHOLE].of_place == 0
    assert empty[WHOLE].of_selected != empty[WHOLE].of_selected


def test_what_calibration_removed_equals_sets() -> None:
    """Of a top that is made and thinned out by hand."""
    generator, proportion = np.random.default_rng(0), 0.3
    tops = {}
    for name, shape in SHAPES.items():
        number = count_parameters(shape)
        tops[name] = set(generator.permutation(number)[: int(number * proportion)].tolist())
    kept = {name: {each for each in top if each % 3} for name, top in tops.items()}
    places = find_places(SHAPES)
    parameters = {name: count_parameters(shape) for name, shape in SHAPES.items()}
    selected = {name: len(each) for name, each in kept.items()}
    found = removed_by_calibration(places, parameters, selected, proportion)
    for place, names in places.items():
        top = sum(len(tops[name]) for name in names)
        gone = sum(len(tops[name] - kept[name]) for name in names)
        assert found[place].top == top
        if top:
            assert found[place].share == pytest.approx(gone / top)
    # A weight too small for the proportion has no top, of which no share is known.
    head = Place("projection", projection="lm_head")
    assert found[head].top == 0
    assert found[head].share != found[head].share


@pytest.mark.parametrize("transposed", [(), ("h.0.attn.weight", "h.1.mlp.experts.1.weight")])
def test_most_selected_rows_and_columns_equal_masks(transposed: tuple[str, ...]) -> None:
    """Whichever way round a weight is stored."""
    for selection in SELECTIONS[:3]:
        lines = []
        for name in SHAPES:
            mask = selection.mask(name).t() if name in transposed else selection.mask(name)
            density = float(mask.float().mean())
            for kind, dimension in (("row", 1), ("column", 0)):
                for index, count in enumerate(mask.sum(dimension).tolist()):
                    length = mask.shape[dimension]
                    lines.append((kind, name, index, count, length, density * length))
        turned = Selection(selection.positions, SHAPES, transposed=frozenset(transposed))
        found = most_selected(turned, 12)
        for kind, mine in found.items():
            expected = sorted((each for each in lines if each[0] == kind and each[3]),
                              key=lambda each: -each[3] / each[4])[:12]  # fmt: skip
            got = [
                (each.kind, each.weight, each.index, each.selected, each.length) for each in mine
            ]
            assert got == [each[:5] for each in expected]
            assert [each.expected for each in mine] == pytest.approx([each[5] for each in expected])
    assert most_selected(SELECTIONS[3], 3) == {"row": [], "column": []}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({**SHAPES, "lm_head.weight": (2, 1)}, r"lm_head.weight has shape \[1, 1\] in a and has"),
        ({"h.0.attn.weight": (8, 9)}, "h.0.mlp.experts.0.weight has .* and takes no part in b"),
        ({**SHAPES, "more": (2, 2)}, r"more takes no part in a and has shape \[2, 2\] in b"),
    ],
)
def test_other_sets_of_weights_are_refused(
    shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    """By the name of the first weight that differs."""
    empty = {name: torch.tensor([], dtype=torch.int64) for name in shapes}
    with pytest.raises(InputError, match=message):
        check_comparable({"a": SELECTIONS[0], "b": Selection(empty, shapes)}, "edits")
    check_comparable({"a": SELECTIONS[0], "b": SELECTIONS[1]}, "edits")
