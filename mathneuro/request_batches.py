"""How lm-eval puts requests into batches, so that processes can share the batches."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

TokenRequest = tuple[Any, list[int], list[int]]
"""A request as lm-eval's models see it: its texts, tokens of its context and its continuation."""


def likelihood_batches(requests: Sequence[TokenRequest], batch_size: int) -> list[list[int]]:
    """Put requests for log-likelihoods into batches as lm-eval does.

    Longest first. Requests that differ in their last token alone need one forward pass together, so
    they stay together, and count as one.

    Args:
        requests: The requests.
        batch_size: Forward passes of single texts in a batch.

    Returns:
        The positions of the requests of each batch.

    Example:
        >>> a, b, c = ("a", [1, 2], [3]), ("b", [1], [2, 4]), ("c", [1], [2])
        >>> likelihood_batches([c, a, b], 1)
        [[1, 2], [0]]
    """
    together = _grouped((tuple(context + last[:-1]) for _, context, last in requests))
    chosen = {max(group, key=lambda each: len(requests[each][2])): group for group in together}

    def order(position: int) -> tuple[int, tuple[int, ...]]:
        tokens = requests[position][1] + requests[position][2]
        return -len(tokens), tuple(tokens)

    return [
        [each for representative in batch for each in chosen[representative]]
        for batch in _batches(sorted(chosen, key=order), batch_size)
    ]


def generation_batches(
    contexts: Sequence[str], settings: Sequence[object], lengths: Sequence[int], batch_size: int
) -> list[list[int]]:
    """Put requests for generated texts into batches as lm-eval does.

    Requests of the same settings together, longest first.

    Args:
        contexts: The prompt of each request.
        settings: How to generate, for each request.
        lengths: Tokens of each prompt.
        batch_size: Requests a batch.

    Returns:
        The positions of the requests of each batch.

    Example:
        >>> generation_batches(["a", "b c", "d"], [1, 1, 2], [1, 2, 1], 2)
        [[1, 0], [2]]
    """
    return [
        batch
        for group in _grouped(map(repr, settings))
        for batch in _batches(
            sorted(group, key=lambda each: (-lengths[each], contexts[each])), batch_size
        )
    ]


def _grouped(keys: Iterable[Hashable]) -> list[list[int]]:
    """Group positions by key, in the order in which keys first appear."""
    groups: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    return list(groups.values())


def _batches(positions: Sequence[int], size: int) -> list[list[int]]:
    return [list(positions[start : start + size]) for start in range(0, len(positions), size)]
