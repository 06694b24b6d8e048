"""What a model reads, letter by letter, without the model: texts of sets, and prompts of tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lightning.pytorch.utilities.seed import isolate_rng

from mathneuro.data.drawing import place
from mathneuro.data.tokens import check_chat_template, encode
from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings, load_tasks, quiet
from mathneuro.loading import empty_model

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from mathneuro.data.module import TextDataModule
    from mathneuro.live_model import LiveModel

BOUNDARY = "\N{BOX DRAWINGS LIGHT VERTICAL}"
"""What stands between tokens."""

UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""What a part of a character decodes to."""


@dataclass(frozen=True)
class Shown:
    """One text as a model reads it.

    Attributes:
        label: What it is.
        text: The text between its special tokens.
        tokens: Token ids, special tokens included.
        pieces: What each token stands for.
        answer: What the model is to give; None if it reads all.
    """

    label: str
    text: str
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    answer: str | None = None

    def lines(self) -> list[str]:
        """Return what to print."""
        shown = [f"== {self.label}: {len(self.tokens):,} tokens", self.text]
        if self.answer is not None:
            shown.append(f"-- {self.answer}")
        marked = BOUNDARY.join(self.pieces).replace("\n", "\\n\n")
        return [*shown, "-- tokens", marked, "-- ids", " ".join(map(str, self.tokens)), ""]


def shown_texts(data: "TextDataModule", tokenizer: Any, number: int) -> Iterator[Shown]:  # noqa: ANN401
    """Show one text of each set.

    Args:
        data: The sets.
        tokenizer: The model's tokenizer.
        number: Which of a set's different texts, from 1, in the order of the data.

    Raises:
        InputError: If a set has fewer, or its texts cannot be read.
    """
    for name, drawn in data.drawn.items():
        texts = drawn.texts
        _check_number(number, len(texts), f"texts that {place(name)} draws")
        text = texts[number - 1]
        tokens = encode(tokenizer, text, drawn.spec.chat_template, place(name))
        cut = tokens[: data.max_length]
        label = f"{name}, row {text.row} of {drawn.spec.path}"
        if len(cut) < len(tokens):
            label += f", cut from {len(tokens):,}"
        yield _shown(label, tokenizer, cut)


def shown_prompts(
    config: "PreTrainedConfig",
    tokenizer: Any,  # noqa: ANN401
    settings: EvaluationSettings,
    number: int,
    trust_remote_code: bool = False,
) -> Iterator[Shown]:
    """Show the prompt of one question of each task, as lm-eval gives it to the model.

    Args:
        config: The model's config.
        tokenizer: The model's tokenizer.
        settings: Which tasks, and how.
        number: Which question, from 1.
        trust_remote_code: Whether code that comes with the model may run.

    Raises:
        InputError: If a task cannot be loaded, or has fewer questions.
    """
    if not settings.tasks and not settings.programs:
        return
    from mathneuro.live_model import LiveModel

    if settings.chat_template:
        check_chat_template(tokenizer, "lm_eval")
    tasks = load_tasks(settings)["tasks"]
    live = LiveModel(empty_model(config, trust_remote_code), tokenizer)
    for name, task in tasks.items():
        with isolate_rng(), quiet():
            task.build_all_requests(
                limit=settings.limit,
                rank=0,
                world_size=1,
                apply_chat_template=settings.chat_template,
                fewshot_as_multiturn=settings.fewshot_as_multiturn,
                system_instruction=settings.system_instruction,
                chat_template=live.apply_chat_template if settings.chat_template else None,
                tokenizer_name=live.tokenizer_name if settings.chat_template else "",
            )
        questions = list(dict.fromkeys(each.doc_id for each in task.instances))
        _check_number(number, len(questions), f"questions that are asked of {name}")
        mine = [each for each in task.instances if each.doc_id == questions[number - 1]]
        yield from _requests(live, name, number, mine)


def _requests(
    live: "LiveModel", name: str, number: int, requests: Sequence[Any]
) -> Iterator[Shown]:
    """Show what the model reads of one question: the prompt, or the prompt with each choice."""
    for number_of_choice, each in enumerate(requests, start=1):
        kind, arguments = each.request_type, each.args
        label = f"{name}, question {number}"
        label += f", choice {number_of_choice} of {len(requests)}" if len(requests) > 1 else ""
        if kind == "loglikelihood":
            context, continuation = live._encode_pair(*arguments)
            answer = f"scored: {arguments[1]!r} ({len(continuation)} tokens)"
            # The last token is scored and not read.
            most = live.max_length + 1
            yield _cut(label, live.tokenizer, [*context, *continuation], most, answer)
        elif kind == "loglikelihood_rolling":
            yield _shown(label, live.tokenizer, live.tok_encode(arguments[0]), "scored: all")
        else:
            ids, _ = live.tok_batch_encode([arguments[0]])
            new = arguments[1].get("max_gen_toks", live.max_gen_toks)
            answer = f"generated until {arguments[1].get('until')}, up to {new} tokens"
            yield _cut(label, live.tokenizer, ids[0].tolist(), live.max_length - new, answer)


def _cut(label: str, tokenizer: Any, tokens: list[int], most: int, answer: str) -> Shown:  # noqa: ANN401
    """Show a prompt as it is read: one that is too long loses its beginning."""
    if len(tokens) > most:
        label += f", cut from {len(tokens):,}, which the context does not hold"
    return _shown(label, tokenizer, tokens[-most:], answer)


def _shown(label: str, tokenizer: Any, tokens: Sequence[int], answer: str | None = None) -> Shown:  # noqa: ANN401
    text = str(tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))
    pieces = tuple(_piece(tokenizer, token) for token in tokens)
    return Shown(label, text, tuple(tokens), pieces, answer)


def _piece(tokenizer: Any, token: int) -> str:  # noqa: ANN401
    """Return what a token stands for; its name if it is a part of a character."""
    piece = str(tokenizer.decode([token], clean_up_tokenization_spaces=False))
    return str(tokenizer.convert_ids_to_tokens(token)) if UNREADABLE in piece else piece


def _check_number(number: int, there: int, what: str) -> None:
    if not 1 <= number <= there:
        raise InputError(
            f"number: got {number}, but the {what} are {there:,}, counted from 1; give one of them"
        )
