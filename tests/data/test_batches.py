"""Batches hold every text once, whatever their size and whoever asks."""

from collections import Counter

import pytest
import torch

from mathneuro.data.batches import BatchedTexts, BatchLimit, bucket, pad
from mathneuro.data.tokens import TokenizedText
from mathneuro.ranks import Ranks

LENGTHS = (3, 9, 1, 4, 9, 2, 7, 5, 5, 8, 6)
TEXTS = [
    TokenizedText(f"row {row}", tuple(range(1, length + 1)), (row + 1, 2 * row))
    for row, length in enumerate(LENGTHS)
]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 11, 100])
@pytest.mark.parametrize("world_size", [1, 2, 3, 20])
def test_all_ranks_together_hold_every_text_once(batch_size: int, world_size: int) -> None:
    """No rank repeats a text to have as many batches as another."""
    seen: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for rank in range(world_size):
        batches = BatchedTexts(TEXTS, BatchLimit(batch_size), 0, Ranks(rank, world_size))
        for index in range(len(batches)):
            batch = batches[index]
            if not batch:
                assert len(batches) == 1
                continue
            assert 1 <= len(batch["names"]) <= batch_size
            assert [TEXTS[each].name for each in batch["positions"]] == batch["names"]
            drawn = map(tuple, batch["counts"].T.tolist())
            seen.update(zip(batch["names"], drawn, strict=True))
    assert seen == Counter((text.name, text.counts) for text in TEXTS)


@pytest.mark.parametrize("world_size", [2, 3])
def test_no_rank_has_two_batches_more_than_another(world_size: int) -> None:
    """The work is shared evenly."""
    numbers = [
        len(BatchedTexts(TEXTS, BatchLimit(2), 0, Ranks(rank, world_size)))
        for rank in range(world_size)
    ]
    assert max(numbers) - min(numbers) <= 1


def test_the_longest_texts_come_first() -> None:
    """So that memory runs out at once or never."""
    lengths = [LENGTHS[position] for batch in bucket(TEXTS, BatchLimit(4)) for position in batch]
    assert lengths == sorted(LENGTHS, reverse=True)


def test_texts_of_one_length_keep_their_order() -> None:
    """The batches of a set are the same in every run."""
    assert bucket(TEXTS, BatchLimit(2))[0] == [1, 4]


@pytest.mark.parametrize("number", [None, 1, 3])
@pytest.mark.parametrize("tokens", [1, 5, 9, 10, 18, 27, 1000])
def test_a_batch_holds_as_many_tokens_as_it_may(tokens: int, number: int | None) -> None:
    """Padding included; not one text less than fits, and a longer text by itself."""
    batches = bucket(TEXTS, BatchLimit(number, tokens))
    assert sorted(position for batch in batches for position in batch) == list(range(len(TEXTS)))
    for batch, following in zip(batches, [*batches[1:], None], strict=True):
        longest = max(LENGTHS[position] for position in batch)
        full = len(batch) == number or (len(batch) + 1) * longest > tokens
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert len(batch) <= (number or len(TEXTS))
        assert full or following is None


def test_padding_is_on_the_right_and_masked() -> None:
    """Each row holds the text alone at its beginning."""
    batch = pad(TEXTS[:3], 99)
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (3, 9)
    for row, text in enumerate(TEXTS[:3]):
        length = len(text.tokens)
        assert batch["input_ids"][row, :length].tolist() == list(text.tokens)
        assert (batch["input_ids"][row, length:] == 99).all()
        assert batch["attention_mask"][row].tolist() == [1] * length + [0] * (9 - length)
    assert batch["counts"].tolist() == [[1, 2, 3], [0, 2, 4]]
    assert batch["input_ids"].dtype == torch.int64


def test_a_real_token_equal_to_the_padding_stays_a_token() -> None:
    """As the end of a text where padding is the same token."""
    texts = [TokenizedText("a", (5, 1), (1,)), TokenizedText("b", (1, 5, 6, 1), (1,))]
    batch = pad(texts, 1)
    assert batch["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
