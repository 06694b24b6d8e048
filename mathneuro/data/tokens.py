"""From texts to tokens: special tokens once, truncation only when asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mathneuro.data.reading import Text
from mathneuro.errors import InputError


@dataclass(frozen=True)
class TokenizedText:
    """One text as the model sees it.

    Attributes:
        name: How to name it to the user.
        tokens: Its token ids, special tokens included.
        counts: How often each draw drew it.
    """

    name: str
    tokens: tuple[int, ...]
    counts: tuple[int, ...]


def encode(tokenizer: Any, text: Text, chat_template: bool, where: str) -> list[int]:  # noqa: ANN401
    """Turn one text into token ids.

    Special tokens are those that the tokenizer adds by itself, except one that the text already
    begins or ends with. If a chat template was applied, none is added: it writes its own.

    Args:
        tokenizer: A Hugging Face tokenizer.
        text: The text.
        chat_template: Whether the tokenizer's chat template is applied.
        where: Where the user gave the set, for messages.

    Raises:
        InputError: If there is no chat template, it refuses the text, or nothing is left.
    """
    if chat_template:
        tokens = _ids(tokenizer, written(tokenizer, text, chat_template, where), False)
    else:
        tokens = _ids(tokenizer, text.text, True)
        begins = tokenizer.bos_token and text.text.startswith(tokenizer.bos_token)
        ends = tokenizer.eos_token and text.text.endswith(tokenizer.eos_token)
        if begins or ends:
            tokens = _once(tokens, _ids(tokenizer, text.text, False), tokenizer)
    if not tokens:
        raise InputError(
            f"{where}: row {text.row} gives no token, but every text must give at least one; "
            "remove that row"
        )
    return tokens


def written(tokenizer: Any, text: Text, chat_template: bool, where: str) -> str:  # noqa: ANN401
    """Return one text as the tokenizer gets it; see `encode`."""
    return _apply_chat_template(tokenizer, text, where) if chat_template else text.text


def _ids(tokenizer: Any, text: str, add_special_tokens: bool) -> list[int]:  # noqa: ANN401
    # Not verbose: texts that are too long are reported once, by set, and not by the tokenizer.
    return list(tokenizer(text, add_special_tokens=add_special_tokens, verbose=False)["input_ids"])


def _once(tokens: list[int], plain: list[int], tokenizer: Any) -> list[int]:  # noqa: ANN401
    """Take away an added token for the beginning or the end where the text holds its own.

    Args:
        tokens: The tokens with special tokens added.
        plain: The tokens without.
        tokenizer: The tokenizer.
    """
    begin, end, length = [tokenizer.bos_token_id], [tokenizer.eos_token_id], len(plain)
    if tokens[:1] == plain[:1] == begin and tokens[1 : length + 1] == plain:
        tokens = tokens[1:]
    if tokens[-1:] == plain[-1:] == end and tokens[-length - 1 : -1] == plain:
        tokens = tokens[:-1]
    return tokens


def tokenize(
    tokenizer: Any,  # noqa: ANN401
    texts: Sequence[Text],
    counts: Sequence[tuple[int, ...]],
    chat_template: bool,
    max_length: int | None,
    where: str,
) -> tuple[list[TokenizedText], int]:
    """Turn texts into token ids.

    Args:
        tokenizer: A Hugging Face tokenizer.
        texts: The texts.
        counts: For each text, how often each draw drew it.
        chat_template: Whether the tokenizer's chat template is applied.
        max_length: Cut texts to so many tokens. None: never cut.
        where: Where the user gave the set, for messages.

    Returns:
        The texts and how many of them were cut.
    """
    result, cut = [], 0
    for text, drawn in zip(texts, counts, strict=True):
        tokens = encode(tokenizer, text, chat_template, where)
        if max_length is not None and len(tokens) > max_length:
            tokens, cut = tokens[:max_length], cut + 1
        result.append(TokenizedText(f"row {text.row} of {where}", tuple(tokens), drawn))
    return result, cut


def check_chat_template(tokenizer: Any, where: str) -> None:  # noqa: ANN401
    """Refuse a tokenizer without a chat template.

    Raises:
        InputError: If it has none.
    """
    if getattr(tokenizer, "chat_template", None) is None:
        raise InputError(
            f"{where}.chat_template: got true, but the tokenizer has no chat template; set it to "
            "false, or use a model that was tuned on conversations"
        )


def writes_the_date(tokenizer: Any) -> bool:  # noqa: ANN401
    """Tell whether the chat template writes the day of the run, so that texts differ by day."""
    return "strftime_now" in str(getattr(tokenizer, "chat_template", None))


def _apply_chat_template(tokenizer: Any, text: Text, where: str) -> str:  # noqa: ANN401
    check_chat_template(tokenizer, where)
    turns = [{"role": role, "content": content} for role, content in text.turns]
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False))
    # A chat template is a program that came with the model: it can raise anything.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{where}.chat_template: the tokenizer's chat template refuses row {text.row} "
            f"({reason}); set it to false"
        ) from error
