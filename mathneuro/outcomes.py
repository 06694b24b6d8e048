"""What lm-eval measured question by question, for comparisons that pair the questions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mathneuro.scores import Score, real

TOLERANCE = 1e-6
"""How far the mean of the questions may be from the score: the rounding of a sum in float32."""


def question_outcomes(
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    scores: Mapping[str, Mapping[str, Score]],
    subtasks: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, list[float]]]:
    """Return the outcome of every question, for each score that is their mean.

    Args:
        samples: lm-eval's samples by task.
        scores: Scores by task or group, and by metric and filter.
        subtasks: The members of each group: tasks, or groups again.

    Returns:
        By label of the score, ``values`` in the order of the questions. A score that is no mean
        over questions (a corpus metric, a mean of means) is left out: it cannot be paired.

    Example:
        >>> samples = {"sums": [{"doc_id": i, "filter": "none", "acc": i} for i in (1, 0)]}
        >>> question_outcomes(samples, {"sums": {"acc": Score(0.5, 0.35, 2)}}, {})
        {'sums acc': {'values': [0.0, 1.0]}}
    """
    outcomes = {}
    for task, metrics in scores.items():
        mine = [sample for leaf in _leaves(task, samples, subtasks) for sample in leaf]
        for key, score in metrics.items():
            metric, _, name = key.partition(",")
            values = [
                sample[metric]
                for sample in mine
                if sample["filter"] == (name or "none") and metric in sample
            ]
            numbers = [number for value in values if (number := real(value)) is not None]
            if len(numbers) == len(values) and _is_mean(score.value, numbers):
                outcomes[f"{task} {key}"] = {"values": numbers}
    return outcomes


def _leaves(
    task: str,
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    subtasks: Mapping[str, Sequence[str]],
) -> list[list[Mapping[str, Any]]]:
    """Return the samples of a task, or of all tasks within a group."""
    if task in samples:
        return [sorted(samples[task], key=lambda sample: int(sample["doc_id"]))]
    members = subtasks.get(task, ())
    return [leaf for member in members for leaf in _leaves(member, samples, subtasks)]


def _is_mean(score: float, values: Sequence[float]) -> bool:
    if not values:
        return False
    mean = math.fsum(values) / len(values)
    return math.isclose(mean, score, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
