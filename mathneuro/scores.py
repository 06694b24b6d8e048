"""What was measured on one state of the model, and how it compares with another."""

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class Score:
    """One number with all that is needed to read it.

    Attributes:
        value: The number.
        standard_error: Its standard error. None: unknown.
        count: Over how many texts or questions.
    """

    value: float
    standard_error: float | None
    count: int


@dataclass
class Scores:
    """All scores of one state of the model.

    Attributes:
        perplexity: By name of the set of held-out texts.
        tasks: By name of the task and name of the metric, filter included.
        notes: What the reader of the scores must know, such as prompts that were cut.
        evaluation: lm-eval's own record: configurations, versions, groups.
        settings: How lm-eval was asked, every option, with the batch sizes that were used.
        outcomes: What was measured question by question or text by text, by the label that `rows`
            gives: ``values``, in the order of the questions, or ``losses`` (nats) and ``tokens`` of
            every text.
        prompts: By task, a hash of all that the model was asked.
    """

    perplexity: dict[str, Score] = field(default_factory=dict)
    tasks: dict[str, dict[str, Score]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    evaluation: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def rows(self) -> dict[str, Score]:
        """Return every score by a label that names the task and the metric, or the set."""
        rows = {
            f"{task} {metric}": score
            for task, metrics in self.tasks.items()
            for metric, score in metrics.items()
        }
        return rows | {f"perplexity {name}": score for name, score in self.perplexity.items()}


def is_perplexity(label: str) -> bool:
    """Tell whether a label of `Scores.rows` is that of a perplexity, whose changes are ratios.

    Example:
        >>> is_perplexity("perplexity math"), is_perplexity("gsm8k exact_match")
        (True, False)
    """
    return label.startswith("perplexity ")


def real(value: object) -> float | None:
    """Return a number of any library as a float; None if it is no single real number.

    Example:
        >>> import numpy as np, torch
        >>> real(np.float32(0.5)), real(np.int64(3)), real(torch.tensor(2.0)), real(True)
        (0.5, 3.0, 2.0, 1.0)
        >>> real("0.5"), real([0.5]), real(np.zeros(2)), real(1j)
        (None, None, None, None)
    """
    if isinstance(value, np.generic | np.ndarray | torch.Tensor):
        value = value.item() if value.ndim == 0 else None
    return float(value) if isinstance(value, Real) else None


def finite(value: float) -> float | None:
    """Return the value, or None if it is no finite number.

    Example:
        >>> finite(0.5), finite(float("nan"))
        (0.5, None)
    """
    return value if math.isfinite(value) else None
