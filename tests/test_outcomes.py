"""Outcomes of questions belong to the score that is their mean, and to no other."""

from pathlib import Path
from typing import Any

import pytest
from lm_eval import utils
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from mathneuro.evaluation import EvaluationSettings, evaluate
from mathneuro.live_model import LiveModel
from mathneuro.outcomes import question_outcomes
from mathneuro.scores import Score
from mathneuro.task_fingerprints import tasks_fingerprint
from mathneuro.tasks import load_tasks


def sample(number: int, filter_: str, **metrics: Any) -> dict[str, Any]:
    """Make a sample as far as outcomes need it."""
    return {"doc_id": number, "filter": filter_, **metrics}


def test_filters_are_told_apart_and_questions_put_in_order() -> None:
    """As lm-eval mixes both."""
    samples = {
        "sums": [
            sample(1, "strict", exact_match=0.0),
            sample(0, "strict", exact_match=1.0),
            sample(0, "flexible", exact_match=1.0),
            sample(1, "flexible", exact_match=1.0),
        ]
    }
    scores = {
        "sums": {"exact_match,strict": Score(0.5, 0.1, 2), "exact_match,flexible": Score(1, 0, 2)}
    }
    assert question_outcomes(samples, scores, {}) == {
        "sums exact_match,strict": {"values": [1.0, 0.0]},
        "sums exact_match,flexible": {"values": [1.0, 1.0]},
    }


@pytest.mark.parametrize(("value", "known"), [(2 / 3, True), (0.75, False)])
def test_a_group_has_outcomes_if_it_is_the_mean_of_its_questions(value: float, known: bool) -> None:
    """A mean of the means of tasks of different sizes is none."""
    samples = {
        "one": [sample(0, "none", acc=1)],
        "two": [sample(0, "none", acc=0), sample(1, "none", acc=1)],
    }
    groups = {"all": ["inner", "two"], "inner": ["one"]}
    found = question_outcomes(samples, {"all": {"acc": Score(value, 0.1, 3)}}, groups)
    assert found == ({"all acc": {"values": [1.0, 0.0, 1.0]}} if known else {})


def test_what_is_no_number_has_no_outcomes() -> None:
    """Corpus metrics keep pairs of texts for every question."""
    samples = {"translate": [sample(0, "none", bleu=("a", "b"))]}
    assert question_outcomes(samples, {"translate": {"bleu": Score(0.5, 0.1, 1)}}, {}) == {}


def settings(task_folder: Path, **changes: Any) -> EvaluationSettings:
    """Ask both tiny tasks."""
    values: dict[str, Any] = {"tasks": ("tiny_generate", "tiny_choose"), "batch_size": 4}
    return EvaluationSettings(**values | {"task_folders": (task_folder,), **changes})


def test_outcomes_are_those_of_the_samples(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Of both kinds of tasks; and lm-eval's templates are left as they were."""
    asked = settings(task_folder)
    tasks = load_tasks(asked)
    found = evaluate(LiveModel(tied_llama, tokenizer, 4), tasks, asked)
    assert set(found.outcomes) == {"tiny_generate exact_match", "tiny_choose acc"}
    values = found.outcomes["tiny_choose acc"]["values"]
    assert values == [each["acc"] for each in found.samples["tiny_choose"]]
    assert sum(values) / 12 == pytest.approx(found.scores["tiny_choose"]["acc"].value)
    assert "from_string" not in vars(utils.env)


def test_fingerprints_tell_what_is_asked(task_folder: Path) -> None:
    """Whatever the folder is called; another question or number of them is another task."""
    first = tasks_fingerprint(load_tasks(settings(task_folder)).tasks, settings(task_folder))
    assert set(first) == {"tiny_generate", "tiny_choose"}
    fewer = settings(task_folder, limit=3)
    assert tasks_fingerprint(load_tasks(fewer).tasks, fewer) != first
    moved = task_folder.rename(task_folder.with_name("moved"))
    for path in moved.glob("*.yaml"):
        path.write_text(path.read_text().replace(str(task_folder), str(moved)))
    again = settings(moved)
    assert tasks_fingerprint(load_tasks(again).tasks, again) == first
    data = moved / "questions.jsonl"
    data.write_text(data.read_text().replace("blue cat", "blue dog"))
    assert tasks_fingerprint(load_tasks(again).tasks, again).items().isdisjoint(first.items())
