"""Which part of a sweep a process runs."""

import re
from dataclasses import dataclass

from mathneuro.errors import InputError


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
        return [
            name
            for position, name in enumerate(names)
            if position * self.count // len(names) == self.index - 1
        ]
