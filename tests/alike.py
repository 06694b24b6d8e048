"""What two models give that differ in where their weights are, and that it is the same."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from mathneuro.activations import ActivationCounts
from mathneuro.decoder import run_decoder
from mathneuro.errors import InputError
from mathneuro.factors import check_factor
from mathneuro.importance import Importance
from mathneuro.layers import Coverage, find_linear_weights
from mathneuro.methods import select
from mathneuro.neurons import find_neurons
from mathneuro.selection import Selection
from mathneuro.suitability import check_model
from tests.test_norms import TEXTS, measured_weights, padded

SETS = {"math": TEXTS[:3], "language": TEXTS[3:]}


def logits(model: PreTrainedModel) -> Tensor:
    """Run a short text."""
    with torch.no_grad():
        output: Tensor = model(input_ids=torch.tensor([[3, 4, 5, 6]])).logits
    return output


def importance(model: PreTrainedModel, coverage: Coverage, lape: bool = False) -> Importance:
    """Measure both sets."""
    sets = {name: measured_weights(model, coverage, [texts]) for name, texts in SETS.items()}
    found = Importance(sets, {name: len(texts) for name, texts in SETS.items()})
    for name, texts in SETS.items() if lape else ():
        counts = ActivationCounts(find_neurons(model, coverage).neurons)
        ids, mask = padded(texts, "right")
        with counts.recording(), counts.batch(mask), torch.no_grad():
            run_decoder(model, ids, mask)
        found.activations[name] = counts.counts()
        found.tokens[name] = int(counts.tokens)
    return found


def any_selection(model: PreTrainedModel) -> Selection:
    """Select every third parameter."""
    weights = find_linear_weights(model).weights
    positions = {name: torch.arange(0, each.numel, 3) for name, each in weights.items()}
    return Selection(positions, {name: each.stored_shape for name, each in weights.items()})


def check_found(
    plain: PreTrainedModel, model: PreTrainedModel, candidates: Coverage, lape: bool
) -> None:
    """Check that the same is found in two models: coverage, importance, and what is selected.

    Args:
        plain: A model whose weights are all there.
        model: The same model, whose weights are elsewhere.
        candidates: The weights of the latter that could take part.
        lape: Whether neurons are compared, too.
    """
    coverages = [check_model(plain, find_linear_weights(plain)), check_model(model, candidates)]
    assert list(coverages[0].weights) == list(coverages[1].weights)
    assert coverages[0].left_alone == coverages[1].left_alone
    both = [
        importance(each, coverage, lape)
        for each, coverage in zip((plain, model), coverages, strict=True)
    ]
    check_vectors(both[0].sets, both[1].sets)
    check_vectors(both[0].activations, both[1].activations)
    for method in ("mathneuro", "random", *(("lape",) if lape else ())):
        selections = [
            select(coverage.weights, each, method, 0.3)
            for each, coverage in zip(both, coverages, strict=True)
        ]
        assert selections[0].sha256() == selections[1].sha256(), method
        assert selections[0].shapes == selections[1].shapes
        # The neurons of two texts that differ little may all be active on both.
        assert selections[0].count > 0 or method == "lape"
    check_factor(1.1, coverages[1].weights)
    with pytest.raises(InputError, match="more than"):
        check_factor(1e39, coverages[1].weights)


def check_vectors(
    one: Mapping[str, Mapping[str, Tensor]], two: Mapping[str, Mapping[str, Tensor]]
) -> None:
    """Check that vectors by set and weight are the same, bit for bit."""
    assert one.keys() == two.keys()
    for texts, vectors in one.items():
        assert vectors.keys() == two[texts].keys()
        for weight, vector in vectors.items():
            assert torch.equal(vector, two[texts][weight]), (texts, weight)
