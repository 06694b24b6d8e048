"""Answers and choices do not depend on batches, and every choice has tokens of its own."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from lm_eval.api.instance import Instance
from tokenizers import Tokenizer, decoders, models
from tokenizers.processors import TemplateProcessing
from transformers import (
    GenerationConfig,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from mathneuro.answer_ends import AnswerEnds
from mathneuro.errors import InputError
from mathneuro.evaluation import Evaluation, EvaluationSettings, evaluate
from mathneuro.greedy import greedy_changes
from mathneuro.live_model import LiveModel
from mathneuro.show import SCORED, shown_prompts
from mathneuro.tasks import check_answers, load_tasks
from tests.conftest import make_llama

LETTERS = "abcdefghijklmnopqrstuvwxyzATrue=: ?.\n"


@pytest.fixture
def merging() -> PreTrainedTokenizerFast:
    """A tokenizer that merges the end of a prompt with the beginning of a choice."""
    vocabulary = {"<pad>": 0, "<eos>": 1}
    for piece in [*dict.fromkeys(LETTERS), ":A", "=T", "ru", "rue", "=True"]:
        vocabulary.setdefault(piece, len(vocabulary))
    merges = [(":", "A"), ("=", "T"), ("r", "u"), ("ru", "e"), ("=T", "rue")]
    base = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    base.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=base, pad_token="<pad>", eos_token="<eos>")


def live(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, size: int = 1) -> LiveModel:
    """Wrap a model."""
    return LiveModel(model, tokenizer, size, progress=False)


def choices(context: str, *continuations: str) -> list[Instance]:
    """Return the requests of a question."""
    return [
        Instance("loglikelihood", {}, (context, each), number, metadata=("task", 0, 1))
        for number, each in enumerate(continuations)
    ]


def naive_loglikelihood(model: PreTrainedModel, first: list[int], second: list[int]) -> float:
    """Add up the log-probability of each token after all before it, in float64."""
    total = 0.0
    for number, token in enumerate(second):
        ids = torch.tensor([first + second[:number]])
        logits = model(ids).logits[0, -1].double()
        total += float(logits.log_softmax(-1)[token].detach())
    return total


@pytest.mark.parametrize(
    ("context", "continuation", "alone"),
    [("answer:", "A", ["A"]), ("x=", "True", ["T", "rue"]), ("x=", "Ta", ["T", "a"])],
)
def test_a_choice_that_merges_with_its_prompt_is_encoded_by_itself(
    merging: PreTrainedTokenizerFast, context: str, continuation: str, alone: list[str]
) -> None:
    """lm-eval gives it what is left of its tokens: nothing, so that it always wins."""
    model = make_llama(tied=True, vocab_size=len(merging))
    wrapped = live(model, merging)
    with wrapped.attached():
        answers = wrapped.loglikelihood(choices(context, continuation, "b"))
        notes = wrapped.notes()
    first = merging(context)["input_ids"]
    second = [merging.get_vocab()[each] for each in alone]
    assert answers[0][0] == pytest.approx(naive_loglikelihood(model, first, second), rel=1e-5)
    assert answers[0][0] < 0
    assert notes == [
        "the choices of 1 questions were encoded apart from their prompts, since the tokenizer "
        "merges the end of a prompt with the beginning of a choice"
    ]


def test_choices_that_do_not_merge_are_those_of_lm_eval(merging: PreTrainedTokenizerFast) -> None:
    """Spaces at the end of a prompt belong to the choice."""
    wrapped = live(make_llama(tied=True, vocab_size=len(merging)), merging)
    first, second = wrapped._encode_pair("a b ", "c")
    assert merging.convert_ids_to_tokens(first) == ["a", " ", "b"]
    assert merging.convert_ids_to_tokens(second) == [" ", "c"]
    assert wrapped._encode_pair("", "c") == ([1], merging("c")["input_ids"])
    assert wrapped._encode_pair(" ", "c") == ([1], merging(" c")["input_ids"])
    with wrapped.attached():
        wrapped.loglikelihood(choices("a b ", "c"))
        assert not wrapped.notes()
        with pytest.raises(InputError, match=r"of question 0 of task has no tokens"):
            wrapped.loglikelihood(choices("a", "b", ""))


def test_an_end_that_the_tokenizer_adds_is_no_part_of_a_prompt(
    merging: PreTrainedTokenizerFast,
) -> None:
    """A choice or an answer comes after it otherwise."""
    plain = live(make_llama(tied=True, vocab_size=len(merging)), merging)
    expected = plain._encode_pair("a b", "c"), plain.tok_batch_encode(["a b", "a"])[0].tolist()
    merging.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", 1)]
    )
    assert merging("a")["input_ids"][-1] == 1
    ended = live(make_llama(tied=True, vocab_size=len(merging)), merging)
    found = ended._encode_pair("a b", "c"), ended.tok_batch_encode(["a b", "a"])[0].tolist()
    assert found == expected


def test_show_marks_where_scoring_begins(
    task_folder: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    """By a line of its own kind."""
    settings = EvaluationSettings(("tiny_choose",), (task_folder,))
    shown = list(shown_prompts(make_llama(tied=True).config, tokenizer, settings, 1))
    for each, choice in zip(shown, ("cat", "dog"), strict=True):
        (line,) = (line for line in each.lines() if SCORED in line)
        assert line.split(SCORED)[1] == choice


STOPS = {
    "a word": "cat",
    "several tokens": "the cat",
    "a special token": "<stop>",
    "a special token and a word": "<stop>cat",
}


@pytest.fixture
def with_stop(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The word-level tokenizer with a special token besides its own."""
    tokenizer.add_special_tokens({"additional_special_tokens": ["<stop>"]})
    return tokenizer


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("kind", ["greedy", "thinking", "two ends"])
def test_answers_are_equal_for_all_batch_sizes(
    stop: str, kind: str, with_stop: PreTrainedTokenizerFast, task_folder: Path
) -> None:
    """In float32, wherever the neighbours end."""
    path = task_folder / "tiny_generate.yaml"
    text = path.read_text().replace('["."]', f'["{stop}"]').replace("toks: 3", "toks: 24")
    path.write_text(text)
    model = make_llama(tied=False, vocab_size=len(with_stop), initializer_range=1.0)
    if kind == "two ends":
        model.generation_config.eos_token_id = [1, 7]
    think = "dog" if kind == "thinking" else None
    settings = EvaluationSettings(
        ("tiny_generate", "tiny_choose", "tiny_rolling"), (task_folder,), think_end_token=think
    )
    found = []
    for size in (1, 3, 64):
        wrapped = LiveModel(model, with_stop, size, progress=False, think_end_token=think)
        evaluation = evaluate(wrapped, load_tasks(settings), settings)
        found.append((answers(evaluation), evaluation.notes))
        for task in ("tiny_choose", "tiny_rolling"):
            assert evaluation.scores[task] == pytest.approx(evaluation.scores[task])
    assert found[0] == found[1] == found[2]
    assert found[0][0] == naive_answers(model, with_stop, evaluation, stop, think)


def decode(
    tokenizer: PreTrainedTokenizerFast, tokens: list[int], skip_special_tokens: bool = False
) -> str:
    """Return the text of tokens."""
    return str(tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens))


def answers(evaluation: Evaluation) -> list[str]:
    """Return all generated answers."""
    return [each["resps"][0][0] for each in evaluation.samples["tiny_generate"]]


def naive_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    evaluation: Evaluation,
    stop: str,
    think: str | None,
) -> list[str]:
    """Decode token by token, with the whole text at each step."""
    ends = model.generation_config.eos_token_id
    several = {1, *(ends if isinstance(ends, list) else [ends])}
    found = []
    for sample in evaluation.samples["tiny_generate"]:
        ids = tokenizer(sample["arguments"][0][0])["input_ids"]
        answer: list[int] = []
        text = ""
        while len(answer) < 24:
            token = int(model(torch.tensor([ids + answer])).logits[0, -1].argmax())
            if token in several:
                break
            answer.append(token)
            text = decode(tokenizer, answer)
            _, _, after = text.partition(think) if think else ("", "", text)
            if stop in after:
                keep = [n for n in range(len(answer) + 1)
                        if len(decode(tokenizer, answer[:n])) <= len(text) - len(stop)]  # fmt: skip
                if "<stop>" in stop:
                    answer = answer[: max(keep)]
                break
        text = decode(tokenizer, answer, skip_special_tokens=True)
        if think:
            text = text.split(think)[-1].lstrip()
        found.append(text.split(stop)[0].split("<eos>")[0])
    return found


def test_stop_words_are_found_where_they_are(with_stop: PreTrainedTokenizerFast) -> None:
    """Row by row, and in a later step for another row."""
    cat, dog, stop = (with_stop.get_vocab()[each] for each in ("cat", "dog", "<stop>"))
    ends = AnswerEnds(with_stop, ["<stop>", ""], {1}, prompt_length=1)
    steps = [
        [[stop, cat], [stop, dog], [stop, 1]],
        [[stop, cat, stop], [stop, dog, dog], [0, 1, 0]],
    ]
    assert ends(torch.tensor(steps[0]), None).tolist() == [False, False, True]
    assert ends(torch.tensor(steps[1]), None).tolist() == [True, False, True]
    assert ends.lengths == {2: 1, 0: 2}
    assert [ends.kept(row, steps[1][row][1:]) for row in range(3)] == [[cat], [dog, dog], []]


def test_answers_that_a_second_end_token_ended_are_not_cut(
    with_stop: PreTrainedTokenizerFast, task_folder: Path
) -> None:
    """Chat models have several."""
    model = make_llama(tied=False, vocab_size=len(with_stop), initializer_range=1.0)
    settings = EvaluationSettings(("tiny_generate",), (task_folder,))

    def run() -> Evaluation:
        return evaluate(live(model, with_stop, 4), load_tasks(settings), settings)

    plain = run()
    words = Counter(" ".join(answers(plain)).split())
    second = with_stop.get_vocab()[words.most_common(1)[0][0]]
    model.generation_config.eos_token_id = [1, second]
    text = decode(with_stop, [second])
    ended = sum(text in answer for answer in answers(plain))
    cut = [int(each.notes[0].split()[0]) if each.notes else 0 for each in (plain, run())]
    assert ended > 0
    assert cut[0] - cut[1] == ended


def test_numbers_of_numpy_are_scores_and_others_are_named(
    task_folder: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """From aggregations of a task's own."""
    (task_folder / "parts.py").write_text(
        "import numpy as np\n"
        "def single(items): return np.float32(np.mean(items))\n"
        "def whole(items): return np.int64(sum(items))\n"
        "def pieces(items): return list(items)\n"
        "def process(doc, results):\n"
        "    right = np.float32(results[0][0] > results[1][0])\n"
        "    return {'single': right, 'whole': np.int64(right), 'pieces': float(right)}\n"
    )
    path = task_folder / "tiny_choose.yaml"
    text = path.read_text()
    metrics = "".join(
        f"  - metric: {name}\n    aggregation: !function parts.{name}\n    higher_is_better: true\n"
        for name in ("single", "whole", "pieces")
    )
    start, end = text.index("metric_list"), text.index("metadata")
    text = text[:start] + "process_results: !function parts.process\nmetric_list:\n" + metrics
    path.write_text(text + path.read_text()[end:])
    settings = EvaluationSettings(("tiny_choose",), (task_folder,))
    found = evaluate(live(tied_llama, tokenizer), load_tasks(settings), settings)
    scores = found.scores["tiny_choose"]
    right = [a > b for (a, _), (b, _) in (
        (each["resps"][0][0], each["resps"][1][0]) for each in found.samples["tiny_choose"]
    )]  # fmt: skip
    assert scores["single"].value == pytest.approx(np.mean(right))
    assert scores["whole"].value == sum(right)
    assert scores.keys() == {"single", "whole"}
    assert found.notes == ["pieces of tiny_choose is a list and no number, so that it is left out"]
    assert found.outcomes["tiny_choose single"]["values"] == [float(each) for each in right]


def test_a_model_without_a_limit_is_not_cut(tokenizer: PreTrainedTokenizerFast) -> None:
    """lm-eval would cut at 2,048 tokens."""
    config = MambaConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, state_size=2
    )
    wrapped = live(MambaForCausalLM(config), tokenizer, 2)
    text = "the cat " * 1100
    ids, mask = wrapped.tok_batch_encode([text, "dog"], left_truncate_len=wrapped.max_length - 9)
    assert ids.shape == (2, 2200)
    assert mask.sum(1).tolist() == [2200, 1]
    assert not wrapped.notes()


def test_long_prompts_are_counted_once_for_all_choices(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """By question, not by request."""
    wrapped = live(make_llama(tied=True, max_position_embeddings=4), tokenizer)
    with wrapped.attached():
        wrapped.loglikelihood(choices("the cat sees a red dog", " 1", " 2", " 3"))
        (note,) = wrapped.notes()
    assert note.startswith("1 prompts were longer than the model's context")


@pytest.mark.parametrize(
    "changes", [{"fewshot_as_multiturn": True}, {"system_instruction": "Be short."}]
)
def test_turns_without_a_chat_template_are_refused(changes: dict[str, object]) -> None:
    """lm-eval ignores the one and glues the other to the prompt."""
    (name,) = changes
    with pytest.raises(InputError, match=rf"^lm_eval\.{name}: .*template is false"):
        EvaluationSettings((), **changes)  # type: ignore[arg-type]


def test_what_changes_greedy_answers_is_found() -> None:
    """Sampling's own options change nothing."""
    config = GenerationConfig(do_sample=True, temperature=0.6, top_p=0.9, no_repeat_ngram_size=3)
    assert greedy_changes(config) == {"no_repeat_ngram_size": 3}
    assert greedy_changes(GenerationConfig()) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("do_sample: true", r"tiny_generate samples its answers .* without a temperature"),
        ("do_sample: false\n  max_gen_toks: 0", r"answers of up to 0 tokens .* at least 1"),
    ],
)
def test_answers_that_cannot_be_generated_are_refused(
    change: str, message: str, task_folder: Path
) -> None:
    """Before any of them is."""
    path = task_folder / "tiny_generate.yaml"
    text = path.read_text().replace("  max_gen_toks: 3\n", "")
    path.write_text(text.replace("do_sample: false", change))
    tasks = load_tasks(EvaluationSettings(("tiny_generate",), (task_folder,))).tasks
    with pytest.raises(InputError, match=message):
        check_answers(tasks, 1000)
