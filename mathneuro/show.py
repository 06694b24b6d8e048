"""What a model reads, letter by letter, without the model: texts of sets, and prompts of tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mathneuro.data.drawing import place
from mathneuro.data.tokens import check_chat_template, encode, written
from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings, fewshot_notes, quiet
from mathneuro.loading import empty_model
from mathneuro.tasks import check_answers, load_tasks, longest_answer
from mathneuro.terminal import counted

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from mathneuro.data.module import TextDataModule
    from mathneuro.live_model import RequestReader

BOUNDARY = "\N{BOX DRAWINGS LIGHT VERTICAL}"
"""What stands between tokens."""

SCORED = "\N{BOX DRAWINGS DOUBLE VERTICAL}"
"""What stands before the first token that is scored."""

UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""What a part of a character decodes to."""

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""How SentencePiece writes a space."""


@dataclass(frozen=True)
class Shown:
    """One text as a model reads it.

    Attributes:
        label: What it is.
        text: The text as the tokenizer gets it.
        tokens: The token ids that the model reads, special tokens included.
        pieces: What each token stands for.
        cut: How many more tokens there were before the text was cut.
        answer: What the model is to give; None if it only reads.
        notes: What of the settings was not used.
        scored: How many of the last tokens are scored after the others, as a choice is.
    """

    label: str
    text: str
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    cut: int = 0
    answer: str | None = None
    notes: tuple[str, ...] = ()
    scored: int = 0

    def lines(self) -> list[str]:
        """Return what to print."""
        number = f"{len(self.tokens):,} tokens"
        if self.cut:
            number += f", cut from {len(self.tokens) + self.cut:,}"
        shown = [f"== {self.label}: {number}", "\n".join(map(_printable, self.text.split("\n")))]
        if self.answer is not None:
            shown.append(f"-- {self.answer}")
        shown += [f"-- note: {each}" for each in self.notes]
        read = len(self.pieces) - self.scored
        parts = self.pieces[:read], self.pieces[read:]
        joined = SCORED.join(BOUNDARY.join(part) for part in parts if part)
        marked = "".join(map(_visible, joined))
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
        chat = drawn.spec.chat
        tokens, _ = encode(tokenizer, text, chat, place(name))
        label = f"{name}, row {text.row} of {drawn.spec.path}"
        whole = written(tokenizer, text, chat, place(name))
        kept = tokens[: data.max_length]
        yield _shown(label, whole, tokenizer, kept, len(tokens) - len(kept))


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
    from mathneuro.live_model import RequestReader

    if settings.chat_template:
        check_chat_template(tokenizer, "lm_eval")
    loaded = load_tasks(settings, to_run=False)
    tasks = loaded.tasks
    live = RequestReader(
        empty_model(config, trust_remote_code),
        tokenizer,
        chat_template_args=settings.chat_template_args,
    )
    check_answers(tasks, live.max_length)
    with quiet(), loaded.state.restored():
        # In the order of an evaluation, since tasks may share what they draw from.
        for task in tasks.values():
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
    for name, task in tasks.items():
        questions = list(dict.fromkeys(each.doc_id for each in task.instances))
        _check_number(number, len(questions), f"questions that are asked of {name}")
        mine = [each for each in task.instances if each.doc_id == questions[number - 1]]
        notes = tuple(fewshot_notes({name: task}, settings))
        for each in _requests(live, name, number, mine):
            yield replace(each, notes=notes)


def _requests(
    live: "RequestReader", name: str, number: int, requests: Sequence[Any]
) -> Iterator[Shown]:
    """Show what the model reads of one question: the prompt, or the prompt with each choice."""
    tokenizer = live.tokenizer
    for number_of_choice, each in enumerate(requests, start=1):
        kind, arguments = each.request_type, each.args
        label = f"{name}, question {number}"
        label += f", choice {number_of_choice} of {len(requests)}" if len(requests) > 1 else ""
        scored = 0
        if kind == "loglikelihood":
            context, continuation = live.read(each)
            tokens = [*context, *continuation]
            # The last token is scored and not read.
            kept = tokens[-(live.max_length + 1) :]
            scored = min(len(continuation), len(kept))
            answer = f"scored: {arguments[1]!r} (the last {counted(len(continuation), 'token')})"
            text = "".join(arguments)
        elif kind == "loglikelihood_rolling":
            (text,) = arguments
            kept = tokens = [live.prefix_token_id, *live.tok_encode(text)]
            answer = "scored: all but the first token"
            if len(tokens) > live.max_length + 1:
                answer += f", in windows of {live.max_length:,} tokens"
        else:
            text, generation = arguments
            tokens = live.tok_batch_encode([text])[0][0].tolist()
            most = longest_answer(generation)
            kept = tokens[-(live.max_length - most) :]
            answer = f"generated: {counted(most, 'token')} at most, until {generation.get('until')}"
        shown = _shown(label, text, tokenizer, kept, len(tokens) - len(kept), answer)
        yield replace(shown, scored=scored)


def _shown(
    label: str,
    text: str,
    tokenizer: Any,  # noqa: ANN401
    tokens: Sequence[int],
    cut: int,
    answer: str | None = None,
) -> Shown:
    pieces = tuple(_piece(tokenizer, token) for token in tokens)
    return Shown(label, text, tuple(tokens), pieces, cut, answer)


def _piece(tokenizer: Any, token: int) -> str:  # noqa: ANN401
    """Return what a token stands for; its name if that is nothing, or a part of a character."""
    piece = str(tokenizer.decode([token], clean_up_tokenization_spaces=False))
    name = str(tokenizer.convert_ids_to_tokens(token))
    if SPACE in name and SPACE not in piece:
        # Such decoders leave out the space that a text begins with, and here each token is one.
        spaces = len(name) - len(name.lstrip(SPACE))
        piece = " " * spaces + piece.lstrip(" ")
    return name if UNREADABLE in piece or not piece else piece


def _visible(character: str) -> str:
    r"""Write what a terminal would not show.

    Example:
        >>> "".join(map(_visible, "a b\tc\r\x1b"))
        'a b\\tc\\r\\x1b'
    """
    return "\\n\n" if character == "\n" else _printable(character)


def _printable(text: str) -> str:
    r"""Write what a terminal would obey or drop as Python writes it.

    Example:
        >>> _printable("a\tb\x1b[31m")
        'a\\tb\\x1b[31m'
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _check_number(number: int, there: int, what: str) -> None:
    if not 1 <= number <= there:
        raise InputError(
            f"number: got {number}, but the {what} are {there:,}, counted from 1; give one of them"
        )
