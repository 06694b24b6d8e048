"""One set of texts: as it was drawn, and as the model sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mathneuro.data.draws import Draw, DrawKey
from mathneuro.data.reading import Text
from mathneuro.data.spec import TextSet
from mathneuro.data.tokens import TokenizedText


@dataclass(frozen=True)
class DrawnSet:
    """The texts of one set, before they meet a tokenizer.

    Attributes:
        spec: Where they come from.
        usable: All texts that identification may use.
        draws: What each draw took of them.
        held_out: Texts that identification never sees.
        empty: How many rows held no text.
    """

    spec: TextSet
    usable: tuple[Text, ...]
    draws: Mapping[DrawKey, Draw]
    held_out: tuple[Text, ...]
    empty: int

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """The distinct texts of all draws, each once."""
        return tuple(
            {text.text: text for draw in self.draws.values() for text in draw.texts}.values()
        )

    @cached_property
    def counts(self) -> list[tuple[int, ...]]:
        """How often each draw drew each of `texts`."""
        drawn = [
            {text.text: count for text, count in zip(draw.texts, draw.counts, strict=True)}
            for draw in self.draws.values()
        ]
        return [tuple(counts.get(text.text, 0) for counts in drawn) for text in self.texts]


@dataclass(frozen=True)
class TokenizedSet:
    """The texts of one set, as the model sees them.

    Attributes:
        identification: The distinct texts of all draws, in the order of `DrawnSet.texts`.
        held_out: The held-out texts.
        cut: How many of both were cut.
        dated: Whether the chat template writes the date of the run into them.
    """

    identification: list[TokenizedText]
    held_out: list[TokenizedText]
    cut: int
    dated: bool
