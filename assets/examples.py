"""Training examples: token ids, the weight of every token in the loss, and attention hints.

A hint says which earlier token one attention head should look at. Finding out by itself that a
fact has to be looked up takes a model of this size far longer than learning it when shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import texts
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerFast

CONTEXT_WEIGHT = 0.1
ENTITIES = (*texts.NAMES, *texts.OBJECTS, *texts.PLACES, *texts.COLOURS)


class Hint(NamedTuple):
    """The token at position `query` should be looking at the one at `key`."""

    layer: int
    head: int
    query: int
    key: int


class Batch(NamedTuple):
    """Padded examples: ids and weights [examples, tokens], hints [5, hints] led by the example."""

    ids: Tensor
    weights: Tensor
    hints: Tensor


@dataclass
class Example:
    """One text as the model sees it; tokens of answers have weight 1."""

    ids: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)

    def append(self, tokens: Sequence[int], weight: float) -> None:
        """Add tokens that share one weight."""
        self.ids += tokens
        self.weights += [weight] * len(tokens)


class Encoder:
    """Turns items into examples and batches.

    Args:
        tokenizer: the tokenizer of the model.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        """Look up the tokens that hints are about."""
        vocabulary = tokenizer.get_vocab()
        self.end = [tokenizer.eos_token_id]
        self.entities = {vocabulary[word] for word in ENTITIES}
        self.digits = {vocabulary[digit] for digit in "0123456789"}
        self.tokens = cache(lambda text: tokenizer(text).input_ids)

    def example(self, item: texts.Item) -> Example:
        """Encode one item."""
        example = Example()
        for fact in item.facts:
            example.append(self.tokens(fact), CONTEXT_WEIGHT)
        asks = []
        for question in item.questions:
            example.append(self.tokens(question.prompt()), CONTEXT_WEIGHT)
            asks.append(len(example.ids) - 1)
            example.append(self.tokens(f"{question.answer}."), 1.0)
        numbers = self.numbers(example.ids[: asks[0]])
        if numbers:
            example.hints = self.arithmetic_hints(numbers, range(asks[0], len(example.ids) - 1))
        else:
            example.hints = self.language_hints(item, example.ids, asks)
        example.append(self.end, 1.0)
        return example

    def arithmetic_hints(self, numbers: Sequence[int], answer: Sequence[int]) -> list[Hint]:
        """Let the whole answer look at both numbers, each with a head of its own."""
        return [
            Hint(1, head, query, number)
            for head, number in enumerate(numbers, start=1)
            for query in answer
        ]

    def language_hints(
        self, item: texts.Item, ids: Sequence[int], asks: Sequence[int]
    ) -> list[Hint]:
        """Let facts gather what they relate; let answers find the word asked, then its fact."""
        entities = self.positions(ids, self.entities)
        stated = entities[: 2 * len(item.facts)]
        hints = [
            Hint(1, 0, second, first)
            for first, second in zip(stated[::2], stated[1::2], strict=True)
        ]
        for question, ask in zip(item.questions, asks, strict=True):
            about = max(position for position in entities if position < ask)
            hints += [Hint(1, 0, ask, about), Hint(2, 0, ask, stated[2 * question.fact + 1])]
        return hints

    def numbers(self, ids: Sequence[int]) -> list[int]:
        """Return the position of the last digit of every number."""
        digits = self.positions(ids, self.digits)
        return [position for position in digits if position + 1 not in digits]

    def positions(self, ids: Sequence[int], wanted: set[int]) -> list[int]:
        """Return where the wanted tokens stand."""
        return [position for position, token in enumerate(ids) if token in wanted]

    def batch(self, items: Sequence[texts.Item]) -> Batch:
        """Encode and pad some items."""
        examples = [self.example(item) for item in items]
        hints = [(index, *hint) for index, example in enumerate(examples) for hint in example.hints]
        return Batch(
            pad_sequence([torch.tensor(example.ids) for example in examples], batch_first=True),
            pad_sequence([torch.tensor(example.weights) for example in examples], batch_first=True),
            torch.tensor(hints).T,
        )
