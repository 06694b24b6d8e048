"""Which texts of a set are used for identification, and which are held out."""

import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np

from mathneuro.data.reading import Text
from mathneuro.errors import InputError


@dataclass(frozen=True, order=True)
class DrawKey:
    """Which of several draws from the same sets of texts.

    Attributes:
        num_samples: How many texts of each set. None: all, each once.
        repeat: Which of several draws of that size, from 1.

    Example:
        >>> DrawKey(500, 1).name, DrawKey(None, 2).name
        ('n500_r1', 'nall_r2')
    """

    num_samples: int | None
    repeat: int = 1

    @property
    def name(self) -> str:
        """Name of the draw, fit for a file."""
        number = "all" if self.num_samples is None else self.num_samples
        return f"n{number}_r{self.repeat}"


@dataclass(frozen=True)
class Draw:
    """Texts that were drawn from a set.

    Attributes:
        rows: The row of every drawn text, in the order of the draw, repetitions included.
        texts: The distinct texts, each once.
        counts: How often each distinct text was drawn.
    """

    rows: tuple[int, ...]
    texts: tuple[Text, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """A set of texts, split.

    Attributes:
        usable: Texts that identification may use.
        held_out: Texts that it never sees.
        empty: How many rows held no text.
    """

    usable: tuple[Text, ...]
    held_out: tuple[Text, ...]
    empty: int


def draw(texts: tuple[Text, ...], key: DrawKey, replacement: bool, seed: int, where: str) -> Draw:
    """Draw texts.

    Args:
        texts: The texts to draw from.
        key: How many, and which of several draws.
        replacement: Whether a text can be drawn more than once, as in the paper.
        seed: Seed of the draw; each set and repeat has a stream of random numbers of its own.
        where: Name of the set, which also picks its stream, and stands in messages.

    Returns:
        The draw; equal texts in different rows count as one distinct text.

    Raises:
        InputError: If more texts than there are would be drawn without replacement.

    Example:
        >>> texts = tuple(Text(row, text, ()) for row, text in enumerate("abc"))
        >>> draw(texts, DrawKey(4), True, 0, "data.math").counts
        (1, 3)
    """
    number = key.num_samples
    if number is None:
        chosen = np.arange(len(texts))
    elif not replacement and number > len(texts):
        raise InputError(
            f"data.num_samples (or grid.num_samples): got {number}, but {where} has {len(texts)} "
            "texts to draw from; ask for fewer, set data.replacement to true, or set "
            "data.num_samples to null for all"
        )
    else:
        random = np.random.default_rng([seed, zlib.crc32(where.encode()), key.repeat - 1])
        chosen = random.choice(len(texts), size=number, replace=replacement)
    rows = tuple(texts[index].row for index in chosen)
    counts = Counter(texts[index].text for index in chosen)
    first = {texts[index].text: texts[index] for index in reversed(chosen.tolist())}
    distinct = tuple(first[text] for text in counts)
    return Draw(rows, distinct, tuple(counts[text.text] for text in distinct))


def hold_out(
    texts: tuple[Text, ...], number: int, seed: int, where: str
) -> tuple[tuple[Text, ...], tuple[Text, ...]]:
    """Split a set into texts that identification may use and texts that it never sees.

    Args:
        texts: The texts of the set.
        number: How many distinct texts to hold out.
        seed: Seed of the split.
        where: Name of the set.

    Returns:
        The texts to draw from, and the held-out texts. No text is in both, not even as a copy in
        another row.

    Raises:
        InputError: If no text would be left to draw from.
    """
    held_out = some_distinct(texts, number, seed, where)
    usable = without(texts, held_out)
    if not usable:
        raise InputError(
            f"data.held_out: got {number}, but {where} has {len(held_out)} distinct texts, and "
            "some must be left for identification; hold out fewer, or give held_out_path"
        )
    return usable, held_out


def some_distinct(texts: tuple[Text, ...], number: int, seed: int, where: str) -> tuple[Text, ...]:
    """Choose so many distinct texts, or all if there are no more, in the order of their rows."""
    first: dict[str, Text] = {}
    for text in texts:
        first.setdefault(text.text, text)
    distinct = tuple(first.values())
    random = np.random.default_rng([seed, zlib.crc32(f"{where} held out".encode())])
    chosen = sorted(random.permutation(len(distinct))[:number].tolist())
    return tuple(distinct[index] for index in chosen)


def without(texts: tuple[Text, ...], removed: tuple[Text, ...]) -> tuple[Text, ...]:
    """Return the texts of which no copy is among the removed ones."""
    names = {text.text for text in removed}
    return tuple(text for text in texts if text.text not in names)
