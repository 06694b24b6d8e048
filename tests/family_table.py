"""The README's table of families, from the list that the tests run on.

``python -m tests.family_table`` prints it.
"""

import sys

from mathneuro.layers import Coverage, find_linear_weights
from mathneuro.suitability import check_model
from tests.families import FAMILIES

HEADER = """\
| family | takes part | left alone, besides embeddings, norms and biases |
|---|---|---|
"""

USUAL = ("embedding", "norm or bias")


def table() -> str:
    """Return the table, one line a family."""
    lines = []
    for name, family in FAMILIES.items():
        model = family.build()
        coverage = check_model(model, find_linear_weights(model))
        lines.append(f"| {name} | {coverage.share:.0%} | {left_alone(coverage)} |\n")
    return HEADER + "".join(lines)


def left_alone(coverage: Coverage) -> str:
    """Say what is left alone and why."""
    names: dict[str, set[str]] = {}
    for item in coverage.left_alone:
        names.setdefault(item.reason, set()).add(item.name.removesuffix(".weight").split(".")[-1])
    parts = []
    for reason, parameters in coverage.reasons().items():
        if reason in USUAL:
            continue
        share = f"{100 * parameters / coverage.total:.2g} %"
        if reason == "tied to the embedding":
            parts.append("head, tied to the embedding")
        elif "language model" in reason:
            parts.append(f"`{reason.split()[0]}`, not part of the language model, {share}")
        else:
            parts.append(f"`{', '.join(sorted(names[reason]))}`, {reason}, {share}")
    return "; ".join(parts) or "nothing"


if __name__ == "__main__":
    sys.stdout.write(table())
