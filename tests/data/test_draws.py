"""Draws and held-out texts."""

from collections import Counter

import pytest

from mathneuro.data.draws import DrawKey, draw, hold_out, some_distinct, without
from mathneuro.data.reading import Text
from mathneuro.errors import InputError
from tests.data.tiny import make_texts

TEXTS = make_texts(*(f"text {index}" for index in range(50)))
COPIES = make_texts("a", "b", "a", "c", "a", "b")


def test_no_number_means_every_row_once_in_order() -> None:
    """Whether replacement is on or off."""
    for replacement in (True, False):
        drawn = draw(TEXTS, DrawKey(None), replacement, 0, "data.math")
        assert drawn.rows == tuple(range(50))
        assert drawn.texts == TEXTS
        assert drawn.counts == (1,) * 50


@pytest.mark.parametrize("number", [1, 50, 500])
def test_with_replacement_any_number_can_be_drawn(number: int) -> None:
    """The counts tell how often each text was; together they are all draws."""
    drawn = draw(TEXTS, DrawKey(number), True, 0, "data.math")
    assert len(drawn.rows) == sum(drawn.counts) == number
    of_rows = Counter(drawn.rows)
    assert {
        text.row: count for text, count in zip(drawn.texts, drawn.counts, strict=True)
    } == of_rows


def test_with_replacement_texts_repeat() -> None:
    """As in the paper."""
    assert max(draw(TEXTS, DrawKey(50), True, 0, "data.math").counts) > 1


@pytest.mark.parametrize("number", [1, 20, 50])
def test_without_replacement_no_row_repeats(number: int) -> None:
    """Up to all of them."""
    drawn = draw(TEXTS, DrawKey(number), False, 0, "data.math")
    assert len(set(drawn.rows)) == number
    assert drawn.counts == (1,) * number


def test_more_texts_than_there_are_need_replacement() -> None:
    """The message names all ways out."""
    with pytest.raises(InputError) as caught:
        draw(TEXTS, DrawKey(51), False, 0, "data.math")
    message = str(caught.value)
    assert message.startswith(
        "data.num_samples (or grid.num_samples): got 51, but data.math has 50 texts to draw from"
    )
    assert "data.replacement to true" in message


def test_the_seed_decides() -> None:
    """The same seed draws the same, another one does not."""
    first = draw(TEXTS, DrawKey(20), True, 7, "data.math")
    assert draw(TEXTS, DrawKey(20), True, 7, "data.math") == first
    assert draw(TEXTS, DrawKey(20), True, 8, "data.math").rows != first.rows


def test_each_set_has_random_numbers_of_its_own() -> None:
    """Two sets never draw the same rows only because they are as long."""
    rows = {draw(TEXTS, DrawKey(20), True, 0, f"data.calibration.{name}").rows for name in "abcd"}
    assert len(rows) == 4


def test_copies_in_other_rows_are_one_text() -> None:
    """It is run once and counted as often as it was drawn."""
    drawn = draw(COPIES, DrawKey(None), True, 0, "data.math")
    assert [text.text for text in drawn.texts] == ["a", "b", "c"]
    assert drawn.counts == (3, 2, 1)
    assert drawn.rows == (0, 1, 2, 3, 4, 5)


def test_counts_of_copies_add_up_to_the_draws() -> None:
    """A text that is there three times is drawn about three times as often."""
    drawn = draw(COPIES, DrawKey(6000), True, 0, "data.math")
    counts = {text.text: count for text, count in zip(drawn.texts, drawn.counts, strict=True)}
    assert sum(counts.values()) == 6000
    assert counts["a"] == pytest.approx(3000, abs=200)
    assert counts["c"] == pytest.approx(1000, abs=200)


def names(texts: tuple[Text, ...]) -> set[str]:
    """Return the distinct texts."""
    return {text.text for text in texts}


@pytest.mark.parametrize("seed", range(5))
def test_no_copy_of_a_held_out_text_can_be_drawn(seed: int) -> None:
    """Nor is anything lost."""
    usable, held_out = hold_out(COPIES, 2, seed, "data.math")
    assert len(held_out) == len(names(held_out)) == 2
    assert names(usable) | names(held_out) == {"a", "b", "c"}
    assert not names(usable) & names(held_out)
    assert all(list(COPIES).count(text) == 1 for text in (*usable, *held_out))


def test_the_seed_decides_what_is_held_out() -> None:
    """And the set's name."""
    _, first = hold_out(TEXTS, 10, 0, "data.math")
    assert hold_out(TEXTS, 10, 0, "data.math")[1] == first
    assert hold_out(TEXTS, 10, 1, "data.math")[1] != first
    assert hold_out(TEXTS, 10, 0, "data.calibration.a")[1] != first


def test_held_out_texts_stand_in_the_order_of_their_rows() -> None:
    """So that a text is easily found again."""
    rows = [text.row for text in hold_out(TEXTS, 10, 0, "data.math")[1]]
    assert rows == sorted(rows)


@pytest.mark.parametrize("number", [3, 4, 100])
def test_something_must_be_left_to_draw_from(number: int) -> None:
    """Distinct texts count, not rows."""
    with pytest.raises(InputError) as caught:
        hold_out(COPIES, number, 0, "data.math")
    message = str(caught.value)
    assert message.startswith(f"data.held_out: got {number}, but data.math has 3 distinct texts")


def test_nothing_is_held_out_if_nothing_is_asked_for() -> None:
    """All texts can be drawn."""
    assert hold_out(COPIES, 0, 0, "data.math") == (COPIES, ())


def test_a_small_set_of_its_own_is_held_out_whole() -> None:
    """Each distinct text once, from its first row."""
    chosen = some_distinct(COPIES, 100, 0, "data.math")
    assert [(text.row, text.text) for text in chosen] == [(0, "a"), (1, "b"), (3, "c")]


def test_texts_of_another_file_are_taken_out_by_text() -> None:
    """Their rows tell nothing."""
    assert [text.row for text in without(COPIES, make_texts("b", "x"))] == [0, 2, 3, 4]
