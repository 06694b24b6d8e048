"""What is shown is what the model reads in the run, and needs no weights."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from mathneuro.data.module import TextDataModule
from mathneuro.data.spec import TextSet
from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings, evaluate
from mathneuro.live_model import LiveModel
from mathneuro.loading import ModelSource, load_config
from mathneuro.show import Shown, _piece, shown_prompts, shown_texts
from mathneuro.tasks import load_tasks
from mathneuro.terminal import say
from mathneuro.tokenizer import load_tokenizer
from tests.commands import refused, run
from tests.conftest import make_llama


def prompts(folder: Path, tasks: Path, number: int) -> list[Shown]:
    """Show the prompts of both tasks of the tests."""
    source = ModelSource(str(folder))
    settings = EvaluationSettings(("tiny_generate", "tiny_choose"), (tasks,), num_fewshot=2)
    return list(
        shown_prompts(load_config(source), load_tokenizer(source).tokenizer, settings, number)
    )


WITHOUT_CONTEXT = """\
task: tiny_blank
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: ""
doc_to_choice: ["the cat sees {{{{answer}}}}", "a dog likes the red cat"]
doc_to_target: 0
metadata:
  version: 1.0
"""


def inputs_of_a_run(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, chosen: EvaluationSettings
) -> set[tuple[int, ...]]:
    """Return all that the model reads in an evaluation, but for its own answers."""
    seen: set[tuple[int, ...]] = set()

    def note(_module: object, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        ids = keywords["input_ids"] if "input_ids" in keywords else arguments[0]
        seen.add(tuple(ids[0].tolist()))

    with model.register_forward_pre_hook(note, with_kwargs=True):
        evaluate(LiveModel(model, tokenizer, 1), load_tasks(chosen), chosen)
    # Of an answer, each token is read by itself.
    return {each for each in seen if len(each) > 1}


@pytest.mark.parametrize("length", [64, 16], ids=["whole", "cut"])
@pytest.mark.parametrize("task", ["tiny_generate", "tiny_choose", "tiny_rolling", "tiny_blank"])
def test_prompts_are_what_the_model_reads(
    task: str,
    length: int,
    tokenizer: PreTrainedTokenizerFast,
    task_folder: Path,
) -> None:
    """Few-shot examples included, token by token; what does not fit is cut as in the run."""
    blank = WITHOUT_CONTEXT.format(data=task_folder / "questions.jsonl")
    (task_folder / "blank.yaml").write_text(blank)
    model = make_llama(tied=True, max_position_embeddings=length)
    shots = 2 if task in ("tiny_generate", "tiny_choose") else None
    chosen = EvaluationSettings((task,), (task_folder,), num_fewshot=shots)
    shown = [
        each
        for number in range(1, 13)
        for each in shown_prompts(model.config, tokenizer, chosen, number)
    ]
    # The last token is scored and not read, unless the model is to go on from it.
    end = None if task == "tiny_generate" else -1
    assert {each.tokens[:end] for each in shown} == inputs_of_a_run(model, tokenizer, chosen)
    for each in shown:
        whole = tokenizer(each.text)["input_ids"]
        assert list(each.tokens) == [1] * (shots is None) + whole[each.cut :]
        assert (each.cut > 0) == (length == 16 and shots is not None)
        assert (f", cut from {len(whole)}" in each.lines()[0]) == (each.cut > 0)


def test_the_text_is_what_the_task_asks(
    arguments: list[str],
    model_folder: Path,
    task_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the letter, as the samples of a run tell, and without the weights."""
    run(monkeypatch, "validate", [*arguments, "--lm_eval.num_fewshot=2"])
    (model_folder / "model.safetensors").unlink()
    found = prompts(model_folder, task_folder, 3)
    for task in ("tiny_generate", "tiny_choose"):
        path = tmp_path / "run" / "samples" / "before" / f"{task}.jsonl"
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        sample = next(each for each in samples if each["doc_id"] == 2)
        mine = [each for each in found if each.label.startswith(f"{task}, question 3")]
        assert len(mine) == len(sample["arguments"])
        for each, (first, second) in zip(mine, sample["arguments"], strict=True):
            assert each.text == first + (second if isinstance(second, str) else "")


def test_answers_that_fill_the_context_are_refused(
    tokenizer: PreTrainedTokenizerFast, task_folder: Path
) -> None:
    """Also where the task does not say how long they are, so that lm-eval's own limit holds."""
    path = task_folder / "tiny_generate.yaml"
    path.write_text(path.read_text().replace("  max_gen_toks: 3\n", ""))
    chosen = EvaluationSettings(("tiny_generate",), (task_folder,))
    config = make_llama(tied=True).config
    with pytest.raises(InputError, match="answers of up to 256 tokens, but the model's context is"):
        list(shown_prompts(config, tokenizer, chosen, 1))


def test_spaces_and_invisible_letters_are_seen() -> None:
    """Of tokenizers whose decoder leaves out a leading space, and of parts of characters."""
    vocabulary = {"<unk>": 0, "\u2581two": 1, "\u2581\u2581": 2, "s": 3, "<0xC3>": 4, "<s>": 5}
    base = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
             decoders.Strip(" ", 1, 0)]  # fmt: skip
    base.decoder = decoders.Sequence(steps)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base, bos_token="<s>")
    pieces = tuple(_piece(tokenizer, token) for token in (5, 1, 3, 2, 3, 4))
    assert pieces == ("<s>", " two", "s", "  ", "s", "<0xC3>")
    shown = Shown("label", "text", (1, 2), ("a\t\r", "b\nc\x1b"))
    assert shown.lines()[3] == "a\\t\\r\u2502b\\n\nc\\x1b"


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
            assert each.text == text.text
            assert each.cut == max(0, len(whole) - 4)
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


def test_chat_templates_are_part_of_the_text(
    text_files: dict[str, Path], tokenizer: PreTrainedTokenizerFast
) -> None:
    """As the tokenizer gets it."""
    tokenizer.chat_template = "{% for each in messages %}the {{ each.content }} <eos>{% endfor %}"
    spec = TextSet(str(text_files["math"]), chat_template=True)
    data = TextDataModule(spec, {}, num_samples=5, held_out=0)
    (shown,) = shown_texts(data, tokenizer, 1)
    assert shown.text == f"the {data.drawn['math'].texts[0].text} <eos>"
    assert (shown.pieces[0], shown.pieces[-1]) == ("the", "<eos>")
    assert list(shown.tokens) == tokenizer(shown.text, add_special_tokens=False)["input_ids"]


def test_arguments_of_chat_templates_are_applied(
    text_files: dict[str, Path], task_folder: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    """To texts and to prompts."""
    tokenizer.chat_template = "{{ word }} {{ messages[0].content }}"
    words = {"word": "red"}
    spec = TextSet(str(text_files["math"]), chat_template=True, chat_template_args=words)
    data = TextDataModule(spec, {}, num_samples=5, held_out=0)
    (text,) = shown_texts(data, tokenizer, 1)
    chosen = EvaluationSettings(
        ("tiny_generate",), (task_folder,), chat_template=True, chat_template_args=words
    )
    (prompt,) = shown_prompts(make_llama(tied=True).config, tokenizer, chosen, 1)
    for shown in (text, prompt):
        assert shown.text.startswith("red ")
        assert shown.pieces[0] == "red"


def test_what_is_said_is_printed_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither markup nor names of emoji are replaced."""
    say("[red] :heart: :x: [/red]")
    assert capsys.readouterr().out == "[red] :heart: :x: [/red]\n"


def test_what_a_terminal_would_obey_is_written(
    arguments: list[str],
    task_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tabs and escapes of a text; and what of the settings a task does not use."""
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({"qa": "the\tcat \x1b[31m\r"}) + "\n")
    with (task_folder / "tiny_choose.yaml").open("a") as opened:
        opened.write("num_fewshot: 0\n")
    mine = [
        f"--data.math.path={path}", "--data.num_samples=null", "--data.held_out=0",
        "--lm_eval.num_fewshot=1",
    ]  # fmt: skip
    run(monkeypatch, "show", [*arguments, *mine])
    out = capsys.readouterr().out
    assert "the\\tcat \\x1b[31m\\r" in out
    assert "\x1b[31m" not in out
    assert "-- note: tiny_choose fixes the number of worked examples at 0" in out
    assert "-- note: tiny_generate" not in out
