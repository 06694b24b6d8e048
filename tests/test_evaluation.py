"""lm-eval on a live model: its scores, and that it leaves the model as it was."""

import random
from collections import Counter
from pathlib import Path

import lm_eval
import numpy as np
import pytest
import torch
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import CausalLMOutput

from mathneuro.batch_size import find_batch_size
from mathneuro.data import TextSet
from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings, evaluate
from mathneuro.live_model import LiveModel
from mathneuro.tasks import load_tasks
from tests.conftest import make_llama

NAMES = ("tiny_generate", "tiny_choose")


def settings(task_folder: Path, **changes: object) -> EvaluationSettings:
    """Evaluate both local tasks."""
    values: dict[str, object] = {
        "tasks": NAMES, "task_folders": (task_folder,), "batch_size": 4
    }  # fmt: skip
    return EvaluationSettings(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [None, 5])
def test_scores_are_those_of_lm_eval_itself(
    task_folder: Path,
    tied_llama: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    limit: int | None,
) -> None:
    """Generation and multiple choice, value, standard error and number of questions."""
    chosen = settings(task_folder, limit=limit)
    found = evaluate(LiveModel(tied_llama, tokenizer, 4), load_tasks(chosen), chosen)
    expected = lm_eval.simple_evaluate(
        model=HFLM(pretrained=tied_llama, tokenizer=tokenizer, batch_size=4),
        tasks=list(NAMES),
        task_manager=TaskManager(include_path=str(task_folder), include_defaults=False),
        limit=limit,
    )["results"]
    for task, metric in (("tiny_generate", "exact_match"), ("tiny_choose", "acc")):
        score = found.scores[task][metric]
        assert score.value == expected[task][f"{metric},none"]
        assert score.standard_error == expected[task][f"{metric}_stderr,none"]
        assert score.count == len(found.samples[task]) == (limit or 12)


def test_tasks_can_be_used_again(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """The same tasks and live model give the same scores twice, and others for other weights."""
    chosen = settings(task_folder)
    tasks, live = load_tasks(chosen), LiveModel(tied_llama, tokenizer, 4)
    first, again = (evaluate(live, tasks, chosen) for _ in range(2))
    assert first.scores == again.scores
    with torch.no_grad():
        tied_llama.model.embed_tokens.weight.neg_()
    answers = [
        [sample["filtered_resps"] for sample in each.samples["tiny_generate"]]
        for each in (first, evaluate(live, tasks, chosen))
    ]
    assert answers[0] != answers[1]


def test_the_model_is_left_as_it_was_found(
    task_folder: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Weights, ties, mode, tokenizer and random numbers."""
    model = make_llama(tied=False)
    model.config.tie_word_embeddings = True
    model.train()
    model.model.layers[0].eval()
    tokenizer.pad_token = None
    tokenizer.padding_side = "right"
    head = model.lm_head.weight.clone()
    chosen = settings(task_folder)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    states = (
        random.getstate(),
        np.random.get_state(legacy=False)["state"]["key"].tolist(),
        torch.get_rng_state(),
    )
    evaluate(LiveModel(model, tokenizer, 4), load_tasks(chosen), chosen)
    assert torch.equal(model.lm_head.weight, head)
    assert model.lm_head.weight is not model.model.embed_tokens.weight
    assert model.training
    assert model.model.layers[1].training
    assert not model.model.layers[0].training
    assert (tokenizer.pad_token, tokenizer.padding_side) == (None, "right")
    assert random.getstate() == states[0]
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])


def test_an_exception_leaves_the_mode_alone(
    task_folder: Path,
    tied_llama: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when the evaluation breaks off."""
    chosen = settings(task_folder)
    live = LiveModel(tied_llama, tokenizer, 4)
    tied_llama.train()

    def broken(*_args: object, **_keywords: object) -> None:
        raise RuntimeError("stop")

    monkeypatch.setattr(tied_llama, "generate", broken)
    with pytest.raises(RuntimeError, match="stop"):
        evaluate(live, load_tasks(chosen), chosen)
    assert tied_llama.training


def test_what_is_cut_is_counted(task_folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    """Prompts longer than the context lose their beginning; answers end at the limit."""
    model = make_llama(tied=True, max_position_embeddings=6)
    chosen = settings(task_folder)
    notes = " ".join(evaluate(LiveModel(model, tokenizer, 4), load_tasks(chosen), chosen).notes)
    assert "prompts were longer" in notes
    assert "answers ended at the limit" in notes


def test_chat_templates_take_arguments_and_thoughts_are_no_answers(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """As lm-eval's own model has it, prompt by prompt and answer by answer."""
    tokenizer.chat_template = "{{ word }} {{ messages[0].content }}"
    name, found = "tiny_generate", []
    plain = settings(task_folder, tasks=(name,))
    whole = evaluate(LiveModel(tied_llama, tokenizer, 4), load_tasks(plain), plain).samples[name]
    words = Counter(" ".join(each["resps"][0][0] for each in whole).split())
    end = words.most_common(1)[0][0]
    for word in ("red", "blue"):
        arguments = {"word": word}
        chosen = settings(
            task_folder, tasks=(name,), chat_template=True, chat_template_args=arguments,
            think_end_token=end,
        )  # fmt: skip
        live = LiveModel(
            tied_llama, tokenizer, 4, chat_template_args=arguments, think_end_token=end
        )
        found.append(evaluate(live, load_tasks(chosen), chosen).samples[name])
        live.think_end_token = None
        thoughts = evaluate(live, load_tasks(chosen), chosen).samples[name]
        assert all(each["arguments"][0][0].startswith(f"{word} the ") for each in found[-1])
        stock = lm_eval.simple_evaluate(
            model=HFLM(
                pretrained=tied_llama, tokenizer=tokenizer, batch_size=4,
                chat_template_args=arguments, think_end_token=end,
            ),
            tasks=[name],
            task_manager=TaskManager(include_path=str(task_folder), include_defaults=False),
            apply_chat_template=True,
        )["samples"][name]  # fmt: skip
        assert [each["resps"] for each in found[-1]] == [each["resps"] for each in stock]
        for answer, thought in zip(found[-1], thoughts, strict=True):
            assert answer["resps"][0][0] == thought["resps"][0][0].split(end)[-1].lstrip()
    assert found[0] != found[1]


def test_arguments_without_a_chat_template_are_refused(task_folder: Path) -> None:
    """Nothing would take them."""
    with pytest.raises(InputError, match=r"^lm_eval\.chat_template_args: got .* is false, so that"):
        settings(task_folder, chat_template_args={"enable_thinking": True})
    with pytest.raises(InputError, match=r"^data\.math\.chat_template_args: got .* is false, so"):
        TextSet(
            "assets/data/language_test.jsonl", chat_template_args={"enable_thinking": True}
        ).check("data.math")


@pytest.mark.parametrize("positions", [256, 131_072])
def test_an_automatic_batch_size_is_found_once(
    task_folder: Path,
    tied_llama: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    positions: int,
) -> None:
    """Before and after share it; what the longest request needs decides, not what the model can."""
    tied_llama.config.max_position_embeddings = positions
    chosen = settings(task_folder, tasks=(*NAMES, "tiny_rolling"), batch_size="auto")
    tasks, live = load_tasks(chosen), LiveModel(tied_llama, tokenizer, "auto")
    shapes = list[tuple[int, int]]()
    with tied_llama.get_input_embeddings().register_forward_pre_hook(
        lambda _module, inputs: shapes.append(tuple(inputs[0].shape))
    ):
        evaluate(live, tasks, chosen)
        found = dict(live.batch_sizes)
        assert set(found) == {"generate_until", "loglikelihood", "loglikelihood_rolling"}
        assert found["loglikelihood"] == 64
        live.batch_sizes["generate_until"] = 2
        evaluate(live, tasks, chosen)
    assert live.batch_sizes == found | {"generate_until": 2}
    assert max(rows * columns for rows, columns in shapes) <= 4096


def test_a_batch_size_is_halved_until_the_longest_request_fits(
    tied_llama: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is not a CPU is tried: the meta device takes any size, so a limit is set."""
    tokens = list[int]()

    def forward(ids: torch.Tensor, **_: object) -> CausalLMOutput:
        tokens.append(ids.numel())
        if ids.numel() > 700:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return CausalLMOutput(logits=ids[..., None].float())

    monkeypatch.setattr(tied_llama, "forward", forward)
    device = torch.device("meta")
    assert find_batch_size(tied_llama, 100, device, "loglikelihood") == 4
    assert tokens == [6400, 3200, 1600, 800, 400]
    with pytest.raises(InputError, match="has 800 tokens, which do not fit"):
        find_batch_size(tied_llama, 800, device, "loglikelihood")


def test_few_shot_examples_depend_on_the_seed_alone(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Also when the number of shots comes from us."""
    prompts = []
    for seed in (1, 1, 2):
        chosen = settings(task_folder, num_fewshot=2, seed=seed)
        found = evaluate(LiveModel(tied_llama, tokenizer, 4), load_tasks(chosen), chosen)
        prompts.append([sample["arguments"][0][0] for sample in found.samples["tiny_generate"]])
    assert prompts[0] == prompts[1] != prompts[2]


def test_greedy_answers_ignore_the_models_own_sampling(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """A generation config that samples does not make two greedy runs differ."""
    chosen = settings(task_folder)
    tasks, live = load_tasks(chosen), LiveModel(tied_llama, tokenizer, 4)
    plain = evaluate(live, tasks, chosen)
    assert tied_llama.generation_config is not None
    tied_llama.generation_config.do_sample = True
    tied_llama.generation_config.temperature = 5.0
    sampling = evaluate(live, tasks, chosen)
    answers = [
        [sample["resps"] for sample in each.samples["tiny_generate"]] for each in (plain, sampling)
    ]
    assert answers[0] == answers[1]


def test_a_number_of_shots_that_a_task_fixes_is_told(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """As lm-eval has it, a task that says 0 keeps 0; but not without a word."""
    with (task_folder / "tiny_choose.yaml").open("a") as opened:
        opened.write("num_fewshot: 0\n")
    chosen = settings(task_folder, num_fewshot=2)
    notes = evaluate(LiveModel(tied_llama, tokenizer, 4), load_tasks(chosen), chosen).notes
    assert [
        note for note in notes if "tiny_choose fixes the number of worked examples at 0" in note
    ]
    assert not [note for note in notes if "tiny_generate fixes" in note]


def test_names_that_are_no_tasks_to_run_are_one_sentence(task_folder: Path) -> None:
    """With a guess at what was meant; what runs code is refused before anything is fetched."""
    for name, message in (
        ("tiny_generat", r"no task 'tiny_generat'; did you mean .*tiny_generate"),
        ("humaneval", "humaneval runs code that the model writes, unprotected"),
    ):
        with pytest.raises(InputError, match=message):
            load_tasks(settings(task_folder, tasks=(name,)))


def test_task_data_that_is_missing_is_one_sentence(task_folder: Path) -> None:
    """Before the first forward pass, not after an hour."""
    (task_folder / "questions.jsonl").unlink()
    with pytest.raises(InputError, match="cannot be loaded"):
        load_tasks(settings(task_folder))


def test_a_folder_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    """Which folder."""
    with pytest.raises(InputError, match=r"lm_eval\.task_folders: the folder .*nowhere"):
        load_tasks(EvaluationSettings(tasks=("x",), task_folders=(tmp_path / "nowhere",)))


def test_a_missing_library_is_named(task_folder: Path) -> None:
    """Rather than the network."""
    (task_folder / "missing.py").write_text("import no_such_library\n")
    path = task_folder / "tiny_generate.yaml"
    path.write_text(path.read_text() + "process_docs: !function missing.process\n")
    with pytest.raises(InputError, match=r"a library is missing \(No module named 'no_such_lib"):
        load_tasks(settings(task_folder))
