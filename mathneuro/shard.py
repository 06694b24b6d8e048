"""Which part of a sweep a process runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mathneuro.errors import InputError

T = TypeVar("T")


def neighbours(items: Sequence[T], index: int, count: int) -> list[T]:
    """Return one of so many shares of a list, each of neighbours; together they are the list.

    Example:
        >>> neighbours("abcde", 1, 3)
        ['c', 'd']
    """
    return [item for position, item in enumerate(items) if position * count // len(items) == index]


@dataclass(frozen=True)
class Shard:
    """Which part of the settings this process runs.

    Example:
        >>> Shard.parse("2/3").part(list("abcdef"))
        ['c', 'd']
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read ``i/n``.

        Raises:
            InputError: If it is something else.
        """
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        shard = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= shard.index <= shard.count:
            raise InputError(
                f"shard: got {text!r}, but it must be i/n with i from 1 to n; write --shard 2/8 "
                "for the second of eight"
            )
        return shard

    def part(self, names: list[str]) -> list[str]:
        """Return this shard's share of a list: neighbours, as they share selections."""
        return neighbours(names, self.index - 1, self.count)
