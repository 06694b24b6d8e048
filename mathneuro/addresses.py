"""Addresses in memory, which differ from run to run, taken out of what is recorded."""

import re
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(value: Any) -> Any:  # noqa: ANN401
    """Return a record without the addresses that Python writes into texts about objects.

    Example:
        >>> without_addresses({"doc_to_text": ["<function prompt at 0x7f3918f4aca0>", 1]})
        {'doc_to_text': ['<function prompt>', 1]}
    """
    if isinstance(value, dict):
        return {key: without_addresses(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_addresses(each) for each in value]
    return ADDRESS.sub("", value) if isinstance(value, str) else value
