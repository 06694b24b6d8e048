"""Batches of texts of similar length, ready for the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset

from mathneuro.data.tokens import TokenizedText
from mathneuro.ranks import ALONE, Ranks

Batch = dict[str, Any]
"""Tensors and names of one batch; see `pad`."""


@dataclass(frozen=True)
class BatchLimit:
    """How much a batch may hold; a text that alone exceeds the limit is a batch of its own.

    Attributes:
        texts: How many texts. None: any number.
        tokens: How many tokens, padding included. None: any number.
    """

    texts: int | None = None
    tokens: int | None = None

    def number(self, longest: int) -> int:
        """Return how many texts fit into a batch.

        Args:
            longest: Tokens of the longest of them.

        Example:
            >>> BatchLimit(8, 100).number(30), BatchLimit(2, 100).number(30)
            (3, 2)
        """
        by_tokens = None if self.tokens is None else self.tokens // longest
        return max(1, min(each for each in (self.texts, by_tokens) if each is not None))


def bucket(texts: Sequence[TokenizedText], limit: BatchLimit) -> list[list[int]]:
    """Group texts of similar length, longest first, so that memory runs out at once or never.

    Returns:
        The positions of the texts of each batch.
    """
    ordered = sorted(range(len(texts)), key=lambda position: -len(texts[position].tokens))
    batches, start = [], 0
    while start < len(ordered):
        end = start + limit.number(len(texts[ordered[start]].tokens))
        batches.append(ordered[start:end])
        start = end
    return batches


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
    """The batches of one set of texts; each item is a whole batch, see `pad`.

    Each also holds the ``positions`` of its texts in the set. Batches are the same for any number
    of processes, which share them. A process for which none is left gets one without anything in
    it, since Lightning skips an epoch without batches, and what callbacks do at its end with it.

    Args:
        texts: The texts.
        limit: What a batch may hold.
        pad_token: Id to fill up with.
        ranks: The processes that share the batches.
    """

    def __init__(
        self,
        texts: Sequence[TokenizedText],
        limit: BatchLimit,
        pad_token: int,
        ranks: Ranks = ALONE,
    ) -> None:
        self._texts = texts
        self._batches = ranks.share(bucket(texts, limit)) or [[]]
        self._pad_token = pad_token

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __getitem__(self, index: int) -> Batch:
        """Return one batch; empty if there is none."""
        positions = self._batches[index]
        if not positions:
            return {}
        batch = pad([self._texts[position] for position in positions], self._pad_token)
        return {**batch, "positions": torch.tensor(positions)}
