"""A score that rests on numbers that are not finite is no score."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mathneuro.changes import changes
from mathneuro.evaluation import Evaluation, EvaluationSettings, evaluate
from mathneuro.live_model import LiveModel
from mathneuro.scores import Scores
from mathneuro.table import table
from mathneuro.tasks import load_tasks
from tests.commands import run

NAMES = ("tiny_generate", "tiny_choose", "tiny_rolling")


@pytest.fixture
def tasks(task_folder: Path) -> Path:
    """One task of each kind of request, and a group of two."""
    group = "group: tiny_group\ntask: [tiny_choose, tiny_generate]\naggregate_metric_list:\n"
    group += "  - metric: acc\n    weight_by_size: true\n"
    (task_folder / "tiny_group.yaml").write_text(group)
    return task_folder


def evaluated(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    names: tuple[str, ...] = NAMES,
) -> Evaluation:
    """Evaluate tasks in batches."""
    settings = EvaluationSettings(names, (folder,), batch_size=4)
    return evaluate(LiveModel(model, tokenizer, 4), load_tasks(settings), settings)


def breaks_on(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, word: str) -> None:
    """Let every text with a word give NaN, and no other text."""
    with torch.no_grad():
        embedding = model.get_input_embeddings()
        assert isinstance(embedding, nn.Embedding)
        embedding.weight[tokenizer.convert_tokens_to_ids(word)] = math.nan


@pytest.mark.parametrize("word", ["blue", "the"])
def test_one_void_question_voids_the_score(
    tasks: Path,
    untied_llama: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    word: str,
) -> None:
    """The note says how many there are; their samples hold no result, the others' stay."""
    before = evaluated(tasks, untied_llama, tokenizer)
    breaks_on(untied_llama, tokenizer, word)
    after = evaluated(tasks, untied_llama, tokenizer)
    for name in NAMES:
        void = [word in str(each["doc"]["question"]) for each in before.samples[name]]
        if name == "tiny_generate":
            # An answer has three tokens at most; the word is part of what the next one rests on.
            answers = [each["resps"][0][0] for each in before.samples[name]]
            void = [
                is_void or word in answer.split()[:2]
                for is_void, answer in zip(void, answers, strict=True)
            ]
        count = sum(void)
        assert (
            f"{name} has no score: {count} of 12 questions were answered with numbers"
            in " ".join(after.notes)
        )
        ((metric, score),) = after.scores[name].items()
        assert math.isnan(score.value)
        assert score.standard_error is None
        assert math.isnan(after.record["results"][name][f"{metric},none"])
        assert not any(label.startswith(name) for label in after.outcomes)
        for old, new, is_void in zip(before.samples[name], after.samples[name], void, strict=True):
            if is_void:
                assert math.isnan(new[metric])
            else:
                assert new[metric] == old[metric]
    rows = changes(Scores(tasks=before.scores), Scores(tasks=after.scores))
    assert all(change.p_value is None and change.difference is None for change in rows.values())
    shown = table({"before": Scores(tasks=before.scores), "after": Scores(tasks=after.scores)})
    assert {row.after for row in shown} == {"nan"}
    assert {row.change for row in shown} == {""}


def test_a_group_with_a_void_task_is_void(
    tasks: Path, untied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """It rests on the same numbers."""
    breaks_on(untied_llama, tokenizer, "blue")
    after = evaluated(tasks, untied_llama, tokenizer, ("tiny_group",))
    assert math.isnan(after.scores["tiny_group"]["acc"].value)


def test_sampling_from_broken_logits_is_no_traceback(
    tasks: Path, untied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """PyTorch refuses to draw from them."""
    path = tasks / "tiny_generate.yaml"
    path.write_text(
        path.read_text().replace("do_sample: false", "do_sample: true\n  temperature: 1.0")
    )
    breaks_on(untied_llama, tokenizer, "blue")
    after = evaluated(tasks, untied_llama, tokenizer, ("tiny_generate",))
    assert math.isnan(after.scores["tiny_generate"]["exact_match"].value)


def test_what_comes_after_the_end_of_an_answer_is_no_part_of_it(
    tasks: Path, untied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """A row goes on while others do: a stop word ends its answer all the same."""
    before = evaluated(tasks, untied_llama, tokenizer, ("tiny_generate",))
    # The stop word itself breaks the model.
    breaks_on(untied_llama, tokenizer, ".")
    after = evaluated(tasks, untied_llama, tokenizer, ("tiny_generate",))
    answers = [
        [each["resps"] for each in found.samples["tiny_generate"]] for found in (before, after)
    ]
    assert answers[0] == answers[1]
    assert before.scores == after.scores
    assert before.notes == after.notes


def test_runs_sweeps_and_reports_say_so(
    arguments: list[str],
    tasks: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Null in JSON, nan in tables, no p-value."""
    own = [*arguments, "--selection.method=wanda", "--selection.proportion=1"]
    run(monkeypatch, "operate", [*own, "--intervention.factor=1e30"])
    told = capsys.readouterr().out
    record = json.loads((tmp_path / "run" / "results.json").read_text())
    after = record["scores"]["after"]
    assert after["tasks"]["tiny_choose"]["acc"]["value"] is None
    assert after["evaluation"]["results"]["tiny_choose"]["acc,none"] is None
    assert record["changes"]["tiny_choose acc"]["p_value"] is None
    assert "tiny_choose has no score: 12 of 12 questions" in " ".join(told.split())
    (line,) = [line for line in told.splitlines() if line.startswith("tiny_choose acc")]
    assert "nan" in line
    assert "p " not in line
    sweep = [each for each in arguments if not each.startswith(("--selection", "--folder"))]
    sweep += ["--grid.methods=[wanda]", "--grid.proportions=[0.5, 1]", "--grid.factors=[1e30]",
              "--grid.repeats=1", "--grid.math=[tiny_choose]"]  # fmt: skip
    sweep.append(f"--folder={tmp_path / 'sweep'}")
    run(monkeypatch, "sweep", sweep)
    settings = [
        json.loads(each.read_text()) for each in (tmp_path / "sweep/settings").glob("wanda*")
    ]
    assert settings
    for each in settings:
        assert each["scores"]["tasks"]["tiny_choose"]["acc"]["value"] is None
    summary = (tmp_path / "sweep" / "report" / "summary.md").read_text()
    assert "tiny_choose has no score" in summary
