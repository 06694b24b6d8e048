"""What tells whether two runs were asked the same questions."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mathneuro.addresses import without_addresses
from mathneuro.evaluation import EvaluationSettings

WHEREABOUTS = ("dataset_path", "dataset_kwargs", "config_source")
"""Where the files of a task lie, which does not matter for what it asks."""


def tasks_fingerprint(tasks: Mapping[str, Any], settings: EvaluationSettings) -> dict[str, str]:
    """Hash what each task asks and how, wherever its files lie.

    Args:
        tasks: The tasks by name.
        settings: How many of the questions are asked.

    Returns:
        A SHA-256 by name of the task, of its configuration, its version and its questions.
    """
    fingerprints = {}
    for name, task in tasks.items():
        config = without_addresses(task.dump_config())
        for part in (config, config.get("metadata") or {}):
            for key in WHEREABOUTS:
                part.pop(key, None)
        questions = [doc for _, doc in task.doc_iterator(limit=settings.limit)]
        text = json.dumps([config, task.VERSION, questions], sort_keys=True, default=_stable)
        fingerprints[name] = hashlib.sha256(text.encode()).hexdigest()
    return fingerprints


def _stable(value: Any) -> str:  # noqa: ANN401
    """Write what JSON does not know without its address in memory."""
    return str(getattr(value, "__qualname__", type(value).__name__))
