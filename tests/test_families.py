"""Every family of models against naive computations, from importance to a saved model."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.edit import Edit
from mathneuro.importance import Importance, scores
from mathneuro.layers import Coverage, find_linear_weights
from mathneuro.loading import ModelSource, load_model, weight_hash
from mathneuro.methods import select
from mathneuro.selection import Selection
from mathneuro.suitability import check_model
from tests import naive, naive_families
from tests.families import FAMILIES, Family
from tests.test_norms import TEXTS, measured_weights

SETS = {"math": TEXTS[:3], "language": TEXTS[3:]}
PROPORTION = 0.1


@dataclass
class Case:
    """A family's model and what was found about it."""

    name: str
    family: Family
    model: PreTrainedModel
    coverage: Coverage
    found: dict[str, dict[str, Tensor]]
    expected: dict[str, dict[str, Tensor]]

    @property
    def selection(self) -> Selection:
        """What the method selects."""
        importance = Importance(self.found, {name: len(texts) for name, texts in SETS.items()})
        return select(self.coverage.weights, importance, "mathneuro", PROPORTION)


@pytest.fixture(scope="module", params=list(FAMILIES))
def case(request: pytest.FixtureRequest) -> Case:
    """A family, measured once for all tests."""
    family = FAMILIES[request.param]
    model = family.build()
    coverage = check_model(model, find_linear_weights(model))
    names = list(coverage.weights)
    found, expected = {}, {}
    for name, texts in SETS.items():
        found[name] = measured_weights(model, coverage, [texts])
        expected[name] = naive_families.scores(model, texts, names)
    return Case(request.param, family, model, coverage, found, expected)


def logits(model: PreTrainedModel) -> Tensor:
    """Run two texts, one of them padded."""
    with torch.no_grad():
        output: Tensor = model(
            input_ids=torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]),
            attention_mask=torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
        ).logits
    return output


def test_importance_equals_the_naive_one(case: Case) -> None:
    """For every weight, experts, routers and transposed ones included, in padded batches."""
    for name, weight in case.coverage.weights.items():
        for texts in SETS:
            ours = scores(weight.matrix, case.found[texts][name])
            torch.testing.assert_close(ours, case.expected[texts][name], rtol=2e-5, atol=1e-6)


def test_texts_alone_give_the_same_as_in_a_batch(case: Case) -> None:
    """Nor do order and batches matter."""
    texts = SETS["math"]
    for batches in ([[text] for text in texts], [texts[::-1]]):
        again = measured_weights(case.model, case.coverage, batches)
        for name, vector in again.items():
            torch.testing.assert_close(vector, case.found["math"][name], rtol=2e-5, atol=1e-6)


def test_masks_are_exact(case: Case) -> None:
    """Each matrix by itself, in ``[out, in]`` whichever way it is stored."""
    selection = case.selection
    for name, weight in case.coverage.weights.items():
        mask = selection.mask(name)
        mask = mask.t() if weight.transposed else mask
        math, language = (case.expected[each][name] for each in SETS)
        assert set(mask.flatten().nonzero().flatten().tolist()) == naive.selected(
            math, language, PROPORTION
        ), name


@pytest.mark.parametrize("factor", [0.0, 1.1])
def test_an_edit_changes_what_is_selected_and_nothing_else(case: Case, factor: float) -> None:
    """Afterwards every number is what it was."""
    before, model, selection = weight_hash(case.model), case.model, case.selection
    expected = {name: each.detach().clone() for name, each in model.named_parameters()}
    for name, weight in case.coverage.weights.items():
        matrix = expected[weight.parameter_name]
        matrix = matrix if weight.expert is None else matrix[weight.expert]
        mask = selection.mask(name)
        matrix[mask] = matrix[mask] * factor
    with Edit(selection, factor).applied(model):
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, expected[name]), name
        assert weight_hash(model) != before
    assert weight_hash(model) == before


def test_a_saved_edit_and_a_saved_model_are_what_they_were(case: Case, tmp_path: Path) -> None:
    """The edit from its file, and the edited model loaded again, give the same answers."""
    Edit(case.selection, 1.1).save(tmp_path / "edit.safetensors")
    with Edit.load(tmp_path / "edit.safetensors").applied(case.model):
        case.model.save_pretrained(tmp_path / "model")
        loaded = load_model(ModelSource(str(tmp_path / "model")))
        assert weight_hash(loaded) == weight_hash(case.model)
        torch.testing.assert_close(logits(loaded), logits(case.model), rtol=1e-5, atol=1e-5)


def test_coverage_is_the_same_in_half_precision(case: Case) -> None:
    """Rounding, and tokens that change experts because of it, are not taken for faults."""
    model = case.family.build()
    nn.Module.to(model, torch.bfloat16)
    coverage = check_model(model, find_linear_weights(model))
    assert coverage.weights.keys() == case.coverage.weights.keys()


def test_coverage_is_what_is_told_of_the_family(case: Case) -> None:
    """Nothing is left out without a word."""
    coverage = case.coverage
    assert coverage.total == case.model.num_parameters()
    usual = {"embedding", "tied to the embedding", "norm or bias"}
    assert coverage.reasons().keys() - usual == set(case.family.left_alone)
    for item in coverage.left_alone:
        if item.reason not in usual:
            assert case.family.left_alone[item.reason] in item.name
