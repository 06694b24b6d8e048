"""The record of a run: everything that is needed to read and to repeat it."""

import hashlib
import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mathneuro.changes import changes
from mathneuro.selection import Selection

if TYPE_CHECKING:
    from mathneuro.data.module import TextDataModule
    from mathneuro.layers import Coverage
    from mathneuro.module import CausalLanguageModel
    from mathneuro.neurons import NeuronCoverage

PACKAGES = (
    "mathneuro", "torch", "lightning", "transformers", "tokenizers", "lm-eval", "datasets",
    "torchmetrics", "jsonargparse", "safetensors", "numpy",
)  # fmt: skip


def library_versions() -> dict[str, str]:
    """Return the versions of Python and of all libraries that can change a result."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def coverage_record(coverage: "Coverage") -> dict[str, Any]:
    """Return which parameters take part and which do not, and why."""
    return {
        "weights": list(coverage.weights),
        "parameters": coverage.parameters,
        "total": coverage.total,
        "share": coverage.share,
        "left_alone": coverage.reasons(),
        "not_covered": [asdict(item) for item in coverage.not_covered()],
    }


def coverage_fingerprint(coverage: "Coverage") -> dict[str, Any]:
    """Return what tells coverages apart: how many parameters take part, and a hash of which."""
    names = "\n".join(coverage.weights)
    return {
        "parameters": coverage.parameters,
        "weights_sha256": hashlib.sha256(names.encode()).hexdigest(),
    }


def neurons_record(neurons: "NeuronCoverage") -> dict[str, Any]:
    """Return how many neurons take part and which do not, and why."""
    return {
        "neurons": neurons.count,
        "total": neurons.total,
        "share": neurons.count / neurons.total,
        "by_weight": {name: each.count for name, each in neurons.neurons.items()},
        "left_out": [asdict(item) for item in neurons.left_out],
    }


def selection_record(selection: Selection) -> dict[str, Any]:
    """Return how many parameters were selected, and how."""
    return {
        **selection.origin,
        "parameters": selection.count,
        "by_weight": {name: each.numel() for name, each in selection.positions.items()},
    }


def run_record(
    module: "CausalLanguageModel", data: "TextDataModule", command: str, finished: bool
) -> dict[str, Any]:
    """Collect what is known about a run so far.

    Args:
        module: The model with everything that was found and measured.
        data: The sets of texts.
        command: The command that is running.
        finished: Whether all is measured that the command measures.

    Returns:
        Values that JSON can hold.
    """
    record: dict[str, Any] = {
        "format": "mathneuro-results-1",
        "command": command,
        "finished": finished,
        "versions": library_versions(),
        "device": module.devices,
        "precision": str(module.trainer.precision),
        "model": module.identity,
        "tokenizer": module.loaded_tokenizer.record(),
        "coverage": coverage_record(module.coverage),
    }
    if data.budgets:
        record["batch_tokens"] = data.budgets
    if module.needs_activations:
        record["neurons"] = neurons_record(module.neurons)
    if module.importance is not None:
        record["identification"] = {
            **(asdict(module.identification) if module.identification else {}),
            "texts": module.importance.texts,
            "data": {
                name: {key: value for key, value in each.items() if "held_out" not in key}
                for name, each in module.importance.data.items()
            },
        }
    selection = module.edit.selection if module.edit is not None else module.selection
    if selection is not None:
        record["selection"] = {**selection_record(selection), "sha256": selection.sha256()}
    if module.edit is not None:
        record["factor"] = module.edit.factor
        record["factors"] = module.edit.factors
    if module.scores:
        record["held_out"] = data.held_out_fingerprints()
    # The samples beside the record hold the outcome of every question.
    record["scores"] = {
        state: {key: value for key, value in asdict(scores).items() if key != "outcomes"}
        for state, scores in module.scores.items()
    }
    if {"before", "after"} <= module.scores.keys():
        compared = changes(module.scores["before"], module.scores["after"])
        record["changes"] = {label: asdict(change) for label, change in compared.items()}
    return record
