"""What is shown is what the model reads in the run, and needs no weights."""

import json
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from mathneuro.data.module import TextDataModule
from mathneuro.data.spec import TextSet
from mathneuro.evaluation import EvaluationSettings
from mathneuro.loading import ModelSource, load_config, load_tokenizer
from mathneuro.show import Shown, shown_prompts, shown_texts
from tests.commands import refused, run


def prompts(folder: Path, tasks: Path, number: int) -> list[Shown]:
    """Show the prompts of both tasks of the tests."""
    source = ModelSource(str(folder))
    settings = EvaluationSettings(("tiny_generate", "tiny_choose"), (tasks,), num_fewshot=2)
    return list(shown_prompts(load_config(source), load_tokenizer(source), settings, number))


@pytest.mark.parametrize("number", [1, 3])
def test_prompts_are_those_of_the_run(
    arguments: list[str],
    model_folder: Path,
    task_folder: Path,
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the samples of an evaluation tell; few-shot examples included."""
    run(monkeypatch, "validate", [*arguments, "--lm_eval.num_fewshot=2"])
    (model_folder / "model.safetensors").unlink()
    found = prompts(model_folder, task_folder, number)
    for task in ("tiny_generate", "tiny_choose"):
        path = tmp_path / "run" / "samples" / "before" / f"{task}.jsonl"
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        sample = next(each for each in samples if each["doc_id"] == number - 1)
        mine = [each for each in found if each.label.startswith(f"{task}, question {number}")]
        assert len(mine) == len(sample["arguments"])
        for each, expected in zip(mine, sample["arguments"], strict=True):
            # The words of the tests' tokenizer are told apart by spaces.
            text = expected[0] + (expected[1] if isinstance(expected[1], str) else "")
            assert each.text.split() == text.split()
            assert "".join(each.pieces).split() == "".join(text.split()).split()


def test_texts_are_the_tokens_of_the_run(
    text_files: dict[str, Path], tokenizer: PreTrainedTokenizerFast
) -> None:
    """Special tokens, cuts and order included."""
    data = TextDataModule(
        TextSet(str(text_files["math"])),
        {"language": TextSet(str(text_files["language"]))},
        num_samples=5,
        max_length=4,
        held_out=0,
    )
    for number in (1, 3):
        for each in shown_texts(data, tokenizer, number):
            name = each.label.partition(",")[0]
            text = data.drawn[name].texts[number - 1]
            whole = tokenizer(text.text)["input_ids"]
            assert list(each.tokens) == list(whole)[:4]
            assert ("cut from" in each.label) == (len(whole) > 4)
            assert tokenizer.convert_tokens_to_ids(list(each.pieces)) == list(each.tokens)


def test_the_command(
    arguments: list[str],
    model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Without weights, and without a trace in the folder of the run."""
    (model_folder / "model.safetensors").unlink()
    run(monkeypatch, "show", arguments)
    out = capsys.readouterr().out
    for label in ("== math, row ", "== language, row ", "== tiny_generate, question 1: ",
                  "== tiny_choose, question 1, choice 1 of "):  # fmt: skip
        assert label in out
    assert not (tmp_path / "run").exists()
    message = refused(monkeypatch, capsys, "show", [*arguments, "--number=999"])
    assert "number: got 999, but the texts that data.math draws are " in message
