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
        count: How often it was drawn.
    """

    name: str
    tokens: tuple[int, ...]
    count: int


def encode(tokenizer: Any, text: Text, chat_template: bool, where: str) -> list[int]:  # noqa: ANN401
    """Turn one text into token ids.

    Special tokens are those that the tokenizer adds by itself. If the text already begins with
    the token for the beginning of a sequence, or a chat template was applied (which writes its
    own), none is added again.

    Args:
        tokenizer: A Hugging Face tokenizer.
        text: The text.
        chat_template: Whether the tokenizer's chat template is applied.
        where: Where the user gave the set, for messages.

    Raises:
        InputError: If there is no chat template, it refuses the text, or nothing is left.
    """
    content = text.text
    if chat_template:
        content = _apply_chat_template(tokenizer, text, where)
    begin = tokenizer.bos_token
    add = not chat_template and not (begin and content.startswith(begin))
    tokens = list(tokenizer(content, add_special_tokens=add)["input_ids"])
    if not tokens:
        raise InputError(
            f"{where}: row {text.row} gives no token, but every text must give at least one; "
            "remove that row"
        )
    return tokens


def tokenize(
    tokenizer: Any,  # noqa: ANN401
    texts: Sequence[Text],
    counts: Sequence[int],
    chat_template: bool,
    max_length: int | None,
    where: str,
) -> tuple[list[TokenizedText], int]:
    """Turn texts into token ids.

    Args:
        tokenizer: A Hugging Face tokenizer.
        texts: The texts.
        counts: How often each was drawn.
        chat_template: Whether the tokenizer's chat template is applied.
        max_length: Cut texts to so many tokens. None: never cut.
        where: Where the user gave the set, for messages.

    Returns:
        The texts and how many of them were cut.
    """
    result, cut = [], 0
    for text, count in zip(texts, counts, strict=True):
        tokens = encode(tokenizer, text, chat_template, where)
        if max_length is not None and len(tokens) > max_length:
            tokens, cut = tokens[:max_length], cut + 1
        result.append(TokenizedText(f"row {text.row} of {where}", tuple(tokens), count))
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


def _apply_chat_template(tokenizer: Any, text: Text, where: str) -> str:  # noqa: ANN401
    from jinja2 import TemplateError

    check_chat_template(tokenizer, where)
    turns = [{"role": role, "content": content} for role, content in text.turns]
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False))
    except TemplateError as error:
        raise InputError(
            f"{where}.chat_template: the tokenizer's chat template refuses row {text.row} "
            f"({error}); set it to false"
        ) from error
