"""Batches hold every text once, whatever their size and whoever asks."""

from collections import Counter

import pytest
import torch

from mathneuro.data.batches import BatchedTexts, bucket, pad
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
        batches = BatchedTexts(TEXTS, batch_size, 0, Ranks(rank, world_size))
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
        len(BatchedTexts(TEXTS, 2, 0, Ranks(rank, world_size))) for rank in range(world_size)
    ]
    assert max(numbers) - min(numbers) <= 1


def test_the_longest_texts_come_first() -> None:
    """So that memory runs out at once or never."""
    lengths = [LENGTHS[position] for batch in bucket(TEXTS, 4) for position in batch]
    assert lengths == sorted(LENGTHS, reverse=True)


def test_texts_of_one_length_keep_their_order() -> None:
    """The batches of a set are the same in every run."""
    assert bucket(TEXTS, 2)[0] == [1, 4]


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
