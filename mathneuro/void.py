"""Scores that rest on numbers that are not finite: such numbers measure nothing."""

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch
from transformers import LogitsProcessor

from mathneuro.scores import real


class VoidAnswer(str):
    """An answer that was generated from logits that are not finite."""

    __slots__ = ()


class FiniteLogits(LogitsProcessor):
    """Finds rows of a batch whose next token rests on logits that are not finite, and ends them.

    Args:
        end: The token that ends an answer. None: there is none, and any other will do.
        ended: Rows whose answer is whole already, which go on only since others do.
        beams: Rows of each answer.

    Attributes:
        void: Answers that are void, by their number in the batch.
    """

    def __init__(self, end: int | None, ended: Container[int] = (), beams: int = 1) -> None:
        self.void: set[int] = set()
        self._end = end or 0
        self._ended = ended
        self._beams = beams

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Look at the logits of the next token.

        Args:
            input_ids: Tokens so far, ``[rows, tokens]``.
            scores: Logits, ``[rows, vocabulary]``.

        Returns:
            The logits; those of void rows choose the end, so that sampling is not refused.
        """
        # The largest of several numbers is NaN if one of them is.
        broken = ~scores.amax(dim=-1).isfinite()
        if not bool(broken.any()):
            return scores
        rows = broken.nonzero().flatten().tolist()
        self.void.update(row // self._beams for row in rows if row not in self._ended)
        scores = scores.masked_fill(broken[:, None], -math.inf)
        scores[broken, self._end] = 0.0
        return scores


def void_questions(samples: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return which questions were answered with numbers that are not finite.

    Args:
        samples: lm-eval's samples of one task.

    Returns:
        Their ``doc_id``.

    Example:
        >>> void_questions([{"doc_id": 4, "resps": [[(float("nan"), True)], [(-1.0, False)]]}])
        {4}
    """
    return {each["doc_id"] for each in samples if _is_void(each["resps"])}


def void_scores(
    results: dict[str, dict[str, Any]],
    samples: Mapping[str, Sequence[dict[str, Any]]],
    groups: Mapping[str, Sequence[str]],
) -> list[str]:
    """Replace every score by NaN that rests on a number that is not finite.

    Args:
        results: lm-eval's scores by task or group; changed in place.
        samples: Its samples by task; changed in place, where a question is void.
        groups: The members of each group: tasks, or groups again.

    Returns:
        A sentence for each task that has such questions.
    """
    notes = []
    broken = set()
    for name, mine in samples.items():
        questions = void_questions(mine)
        if not questions:
            continue
        broken.add(name)
        for each in mine:
            if each["doc_id"] in questions:
                each |= dict.fromkeys(each["metrics"], math.nan)
        count = len({each["doc_id"] for each in mine})
        notes.append(
            f"{name} has no score: {len(questions):,} of {count:,} questions were answered with "
            "numbers that are not finite, since the model overflows"
        )
    for name, metrics in results.items():
        if broken.isdisjoint(_members(name, groups)):
            continue
        for key, value in metrics.items():
            if "," in key and real(value) is not None:
                metrics[key] = math.nan
    return notes


def _is_void(response: Any) -> bool:  # noqa: ANN401
    """Tell whether what lm-eval keeps of a request holds a number that is not finite."""
    number = real(response)
    if number is not None:
        return not math.isfinite(number)
    if isinstance(response, list | tuple):
        return any(map(_is_void, response))
    return isinstance(response, VoidAnswer)


def _members(name: str, groups: Mapping[str, Sequence[str]]) -> set[str]:
    """Return a task, or a group with all that it holds."""
    return {name}.union(*(_members(member, groups) for member in groups.get(name, ())))
