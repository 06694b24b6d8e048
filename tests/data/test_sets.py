"""Several draws from one set: each distinct text once, with how often each draw took it."""

from collections import Counter

import pytest

from mathneuro.data.draws import DrawKey, draw
from mathneuro.data.sets import DrawnSet
from mathneuro.data.spec import TextSet
from tests.data.tiny import make_texts, only

TEXTS = make_texts(*(f"text {number}" for number in range(40)))
KEYS = [DrawKey(number, repeat) for number in (1, 10, 60) for repeat in (1, 2, 3)]


def make_set(*keys: DrawKey) -> DrawnSet:
    """Draw from the texts."""
    draws = {key: draw(TEXTS, key, True, 0, "data.math") for key in keys}
    return DrawnSet(TextSet("texts.csv"), TEXTS, draws, (), 0)


def test_counts_are_those_of_every_draw() -> None:
    """And no text stands twice."""
    drawn = make_set(*KEYS)
    assert len({text.text for text in drawn.texts}) == len(drawn.texts) == len(drawn.counts)
    for index, key in enumerate(KEYS):
        rows = Counter(drawn.draws[key].rows)
        found = {
            text.row: counts[index]
            for text, counts in zip(drawn.texts, drawn.counts, strict=True)
            if counts[index]
        }
        assert found == rows
        assert sum(found.values()) == key.num_samples


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_draw_does_not_depend_on_the_others(key: DrawKey) -> None:
    """So that a setting of a sweep can be repeated alone."""
    assert only(make_set(key)) == make_set(*KEYS).draws[key]


def test_repeats_differ() -> None:
    """Each draws anew."""
    drawn = make_set(*KEYS)
    assert len({drawn.draws[DrawKey(60, repeat)].rows for repeat in (1, 2, 3)}) == 3


def test_all_texts_are_the_same_in_every_repeat() -> None:
    """There is nothing to draw."""
    drawn = make_set(DrawKey(None, 1), DrawKey(None, 2))
    assert {tuple(counts) for counts in drawn.counts} == {(1, 1)}
