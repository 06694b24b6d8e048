"""What a model was asked, as a hash: scores on other prompts say nothing about an edit."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from mathneuro.errors import InputError


def prompts_hash(requests: Iterable[Any]) -> str:
    """Hash all that a task asks: prompts with their examples, choices, and how answers end.

    Args:
        requests: lm-eval's requests (``Instance``) of one task, in its order.

    Returns:
        A SHA-256.
    """
    asked = [[each.request_type, each.doc_id, each.idx, each.args] for each in requests]
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


def check_same_prompts(
    before: Mapping[str, str], after: Mapping[str, str], first: str, second: str
) -> None:
    """Refuse to compare scores on different prompts.

    Args:
        before: The hash of all prompts by task, of the first scores.
        after: The same of the second scores.
        first: Where the first scores are from, for the message.
        second: Where the second scores are from.

    Raises:
        InputError: If the prompts of a task differ.

    Example:
        >>> check_same_prompts({"sums": "1"}, {"sums": "1"}, "before", "after")
        >>> check_same_prompts({"sums": "1"}, {"sums": "2"}, "before", "after")
        Traceback (most recent call last):
        ...
        mathneuro.errors.InputError: lm_eval.tasks: the prompts of 'sums' differ between before \
and after, so their scores cannot be compared; measure both again with the same lm_eval settings
    """
    for task in before.keys() & after.keys():
        if before[task] != after[task]:
            raise InputError(
                f"lm_eval.tasks: the prompts of {task!r} differ between {first} and {second}, so "
                "their scores cannot be compared; measure both again with the same lm_eval "
                "settings"
            )
