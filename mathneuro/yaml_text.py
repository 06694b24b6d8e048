"""YAML that is read as it was meant: texts that look like numbers stay texts."""

import re
from typing import Any

import yaml

NUMBER = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$")
"""Numbers that jsonargparse reads and PyYAML takes for texts, which it does not quote."""


class _Dumper(yaml.SafeDumper):
    """Quotes every text that jsonargparse would read as a number."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+0123456789"))


def dump(values: dict[str, Any]) -> str:
    """Write values as YAML that jsonargparse reads as the same values.

    Example:
        >>> print(dump({"folder": "1e5", "1e3": 1e5, "date": "2026-01-01"}).strip())
        folder: '1e5'
        '1e3': 100000.0
        date: '2026-01-01'
    """
    text: str = yaml.dump(
        values, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False
    )
    return text
