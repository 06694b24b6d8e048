"""The importance of a model's parameters for sets of texts, in a form that is small to keep."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mathneuro.errors import InputError
from mathneuro.stated import counts_fault, source_fault
from mathneuro.tensor_files import read_metadata, read_tensors, write_tensors
from mathneuro.weights import Weight

FORMAT = "mathneuro-importance-2"

FIELDS = ("texts", "model", "data", "tokens")
"""What every file states."""

ACTIVE = "/active"
"""What the names of counts of activations end with, in a file."""


def scores(weight: Tensor, input_importance: Tensor, out: Tensor | None = None) -> Tensor:
    """Score of every parameter of a linear layer.

    ``score_ij(D) = |W_ij| * a_j(D)`` with ``a_j(D) = sum_s ||X_s[:, j]||_2`` (METHOD.md,
    "Importance"; Math Neurosurgery, arXiv 2410.16930).

    Args:
        weight: Weight of shape ``[out, in]``.
        input_importance: ``a``, of shape ``[in]``, float64.
        out: Where they go: float64 of shape ``[out, in]``. None: a new tensor.

    Returns:
        Scores of shape ``[out, in]``, float64.

    Example:
        >>> scores(torch.tensor([[1.0, -2.0]]), torch.tensor([3.0, 0.5], dtype=torch.float64))
        tensor([[3., 1.]], dtype=torch.float64)
    """
    if out is None:
        out = torch.empty(weight.shape, dtype=torch.float64, device=weight.device)
    return out.copy_(weight.detach()).abs_().mul_(input_importance.detach().to(weight.device))


@dataclass(frozen=True)
class Identification:
    """How importance was found.

    Attributes:
        forward_passes: How many batches went through the model.
        texts_forwarded: How many texts these were: each distinct one once.
        seconds: How long that took.
        file: The file that it was read from, if it was.
    """

    forward_passes: int
    texts_forwarded: int
    seconds: float
    file: Path | None = None


@dataclass
class Importance:
    """What forward passes over sets of texts leave behind.

    Attributes:
        sets: For each set of texts, one float64 vector of shape ``[in]`` a weight:
            ``a_j = sum_s ||X_s[:, j]||_2`` over the texts s of the set.
        texts: For each set, how many texts were summed up, repetitions included.
        model: Which model it is for: its name and the hash of its weights.
        data: Where the texts came from, by set.
        activations: For each set, by the name of an output projection's weight, at how many of the
            set's tokens each neuron before it was active: int64 of shape ``[in]``. Empty if that
            was not counted.
        tokens: For each set with activations, how many tokens its texts have, repetitions
            included.
    """

    sets: dict[str, dict[str, Tensor]]
    texts: dict[str, int]
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    activations: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write all of it to one safetensors file."""
        tensors = {
            f"{name}/{weight}": vector
            for name, vectors in self.sets.items()
            for weight, vector in vectors.items()
        }
        for name, vectors in self.activations.items():
            tensors |= {f"{name}/{weight}{ACTIVE}": vector for weight, vector in vectors.items()}
        metadata = {"format": FORMAT, "texts": self.texts, "model": self.model, "data": self.data}
        write_tensors(path, tensors, metadata | {"tokens": self.tokens})

    @classmethod
    def load(cls, path: Path) -> "Importance":
        """Read what `save` wrote.

        Raises:
            InputError: If the file is missing, damaged or of another kind.
        """
        tensors, metadata = read_tensors(path, FORMAT, FIELDS, "importance.file")
        wrong = source_fault(metadata["model"], metadata["data"])
        wrong = wrong or counts_fault(metadata["texts"], "texts")
        wrong = wrong or counts_fault(metadata["tokens"], "tokens")
        if wrong is not None:
            raise InputError(
                f"importance.file: {path} holds {wrong}; get the file again, or make it with the "
                "`predict` command"
            )
        sets: dict[str, dict[str, Tensor]] = {name: {} for name in metadata["texts"]}
        tokens: dict[str, int] = metadata["tokens"]
        activations: dict[str, dict[str, Tensor]] = {name: {} for name in tokens}
        for key, vector in tensors.items():
            name, _, weight = key.partition("/")
            counts = weight.endswith(ACTIVE)
            valid = _are_counts(vector, tokens.get(name, -1)) if counts else _are_norms(vector)
            if not valid or name not in sets:
                raise InputError(
                    f"importance.file: {path} holds {key} with values that are not importance; "
                    "make the file again with the `predict` command"
                )
            if counts:
                activations[name][weight.removesuffix(ACTIVE)] = vector
            else:
                sets[name][weight] = vector
        texts, model, data = (metadata[name] for name in ("texts", "model", "data"))
        return cls(sets, texts, model, data, activations, tokens)

    def check_model(self, weight_hash: str, path: Path) -> None:
        """Refuse to be used with a model that it was not measured on.

        Args:
            weight_hash: Hash of the model's weights.
            path: Where it was read from, for the message.

        Raises:
            InputError: If the model is another one.
        """
        if self.model.get("weight_hash") != weight_hash:
            raise InputError(
                f"importance.file: {path} was made for {self.model.get('source')} with weights "
                f"{self.model.get('weight_hash')}, but the loaded model has {weight_hash}; load "
                "that model in the same dtype, or make the file again with `predict`"
            )

    def check_weights(self, weights: Mapping[str, Weight], path: Path) -> None:
        """Refuse to be used for weights that were not measured.

        It may hold more weights than take part: importance does not depend on which others do.

        Args:
            weights: The weights that take part, by name.
            path: Where it was read from, for the message.

        Raises:
            InputError: If it lacks one.
        """
        for name, vectors in self.sets.items():
            for weight, each in weights.items():
                if weight not in vectors or vectors[weight].shape != (each.in_features,):
                    raise InputError(
                        f"importance.file: set {name} in {path} holds no importance of {weight}, "
                        "which takes part in the loaded model; make the file again with `predict`, "
                        "or leave that weight out with model.exclude"
                    )

    def check_activations(self, names: Iterable[str], path: Path) -> None:
        """Refuse to be used for a method that needs activations which were not counted.

        Args:
            names: Names of the output projections' weights whose neurons take part.
            path: Where it was read from, for the message.

        Raises:
            InputError: If a set has no activations of one of them.
        """
        for name in self.sets:
            held = self.activations.get(name, {})
            missing = next((each for each in names if each not in held), None)
            if missing is not None:
                raise InputError(
                    f"importance.file: set {name} in {path} holds no activations of the neurons "
                    f"before {missing}, which the method lape needs; measure again with "
                    "selection.method lape, or with importance.activations true"
                )


def holds_activations(path: Path) -> bool:
    """Tell whether an importance file holds activations; only its metadata is read.

    Raises:
        InputError: If it is missing, damaged or of another kind.
    """
    return bool(read_metadata(path, FORMAT, FIELDS, "importance.file")["tokens"])


def _are_norms(vector: Tensor) -> bool:
    """Tell whether a vector holds sums of norms."""
    if vector.dim() != 1 or vector.dtype != torch.float64:
        return False
    return bool((torch.isfinite(vector) & (vector >= 0)).all())


def _are_counts(vector: Tensor, tokens: int) -> bool:
    """Tell whether a vector holds counts of so many tokens at most."""
    if vector.dim() != 1 or vector.dtype != torch.int64:
        return False
    return bool(((vector >= 0) & (vector <= tokens)).all())
