"""What a user has to know of a program-of-thought task beyond its scores."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mathneuro.programs.spec import LEFT_OUT, ProgramSet


def program_notes(
    name: str,
    spec: ProgramSet,
    task: Any,  # noqa: ANN401
    samples: Sequence[dict[str, Any]],
) -> list[str]:
    """Tell in sentences which questions were not asked, and which programs were stopped.

    Args:
        name: Name of the task.
        spec: Where its questions come from.
        task: The task, as lm-eval has it.
        samples: Its samples, one a question.
    """
    notes = []
    if count := (task.get_config("metadata") or {}).get(LEFT_OUT, 0):
        notes.append(f"{name} leaves out {count:,} rows that state no number as the answer")
    statuses = Counter(each["filtered_resps"][0]["status"] for each in samples)
    limits = {"timeout": f"{spec.seconds:g} seconds", "memory": f"{spec.memory:,} bytes"}
    notes += [
        f"{statuses[status]:,} of {len(samples):,} programs of {name} needed more than {limit} and "
        "were stopped"
        for status, limit in limits.items()
        if statuses[status]
    ]
    return notes
