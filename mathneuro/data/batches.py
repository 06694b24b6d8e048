"""Batches of texts of similar length, ready for the model."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from mathneuro.data.tokens import TokenizedText

Batch = dict[str, Any]
"""Tensors and names of one batch; see `pad`."""


def bucket(texts: Sequence[TokenizedText], batch_size: int) -> list[list[TokenizedText]]:
    """Group texts of similar length, longest first, so that memory runs out at once or never."""
    ordered = sorted(texts, key=lambda text: -len(text.tokens))
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


def pad(texts: Sequence[TokenizedText], pad_token: int) -> Batch:
    """Put texts into one rectangle, padded on the right.

    On the right, since a causal model's real tokens then never see padding, and their positions
    are those of the text alone, whatever the tokenizer's own padding side.

    Args:
        texts: The texts.
        pad_token: Id to fill up with; it may be the id of a real token, as the mask decides.

    Returns:
        ``input_ids`` and ``attention_mask`` of shape ``[texts, tokens]``, ``counts`` of shape
        ``[draws, texts]`` and the ``names`` of the texts.
    """
    shape = (len(texts), max(len(text.tokens) for text in texts))
    input_ids = torch.full(shape, pad_token, dtype=torch.int64)
    attention_mask = torch.zeros(shape, dtype=torch.int64)
    for row, text in enumerate(texts):
        input_ids[row, : len(text.tokens)] = torch.tensor(text.tokens)
        attention_mask[row, : len(text.tokens)] = 1
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "counts": torch.tensor([text.counts for text in texts]).T,
        "names": [text.name for text in texts],
    }


class BatchedTexts(Dataset[Batch]):
    """The batches of one set of texts; each item is a whole batch.

    Args:
        texts: The texts.
        batch_size: Texts a batch.
        pad_token: Id to fill up with.
        rank: Which share of the batches to give.
        world_size: Number of shares; together they hold each batch once.
    """

    def __init__(
        self,
        texts: Sequence[TokenizedText],
        batch_size: int,
        pad_token: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._batches = bucket(texts, batch_size)[rank::world_size]
        self._pad_token = pad_token

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __getitem__(self, index: int) -> Batch:
        """Return one batch, see `pad`."""
        return pad(self._batches[index], self._pad_token)
