"""From texts to tokens: special tokens once, truncation only when asked for."""

from collections.abc import Mapping, Sequence
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


Chat = Mapping[str, Any] | None
"""What a chat template is given besides the turns. None: no chat template is applied."""

READ_AHEAD = 2**15
"""Characters of a text to be cut that are looked at first, at least."""

CHARACTERS = 32
"""Characters for each token that is kept that are looked at first."""


def encode(
    tokenizer: Any,  # noqa: ANN401
    text: Text,
    chat: Chat,
    where: str,
    max_length: int | None = None,
) -> tuple[list[int], bool]:
    """Turn one text into token ids.

    Special tokens are those that the tokenizer adds by itself, except one that the text already
    begins or ends with. If a chat template was applied, none is added: it writes its own.

    Args:
        tokenizer: A Hugging Face tokenizer.
        text: The text.
        chat: What the tokenizer's chat template is given. None: it is not applied.
        where: Where the user gave the set, for messages.
        max_length: Cut the text to so many tokens. None: never cut.

    Returns:
        The tokens, and whether there were more.

    Raises:
        InputError: If there is no chat template, it refuses the text, or nothing is left.
    """
    whole = written(tokenizer, text, chat, where)
    if max_length is not None:
        tokens = _beginning(tokenizer, whole, chat is None, max_length)
        if tokens is not None:
            return tokens, True
    tokens = _tokens(tokenizer, whole, chat is None)
    if not tokens:
        raise InputError(
            f"{where}: row {text.row} gives no token, but every text must give at least one; "
            "remove that row"
        )
    return tokens[:max_length], max_length is not None and len(tokens) > max_length


def written(tokenizer: Any, text: Text, chat: Chat, where: str) -> str:  # noqa: ANN401
    """Return one text as the tokenizer gets it; see `encode`."""
    return text.text if chat is None else _apply_chat_template(tokenizer, text, chat, where)


def _beginning(
    tokenizer: Any,  # noqa: ANN401
    text: str,
    add_special_tokens: bool,
    max_length: int,
) -> list[int] | None:
    """Return the first tokens of a long text without a look at all of it, which may take gigabytes.

    A part and one twice as long must agree in them, so that the place where the part ends has no
    say in them.

    Returns:
        As many tokens as are kept. None: the text is not much longer than what is looked at first.
    """
    length, before = max(READ_AHEAD, CHARACTERS * max_length), None
    while length < len(text):
        tokens = _tokens(tokenizer, text[:length], add_special_tokens)
        found = tokens[:max_length] if len(tokens) > max_length + 1 else None
        if found is not None and found == before:
            return found
        length, before = 2 * length, found
    return None


def _tokens(tokenizer: Any, text: str, add_special_tokens: bool) -> list[int]:  # noqa: ANN401
    """Tokenize a text; a special token that it begins or ends with is not added again."""
    tokens = _ids(tokenizer, text, add_special_tokens)
    if not add_special_tokens:
        return tokens
    begins = tokenizer.bos_token and text.startswith(tokenizer.bos_token)
    ends = tokenizer.eos_token and text.endswith(tokenizer.eos_token)
    return _once(tokens, _ids(tokenizer, text, False), tokenizer) if begins or ends else tokens


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
    chat: Chat,
    max_length: int | None,
    where: str,
) -> tuple[list[TokenizedText], int]:
    """Turn texts into token ids.

    Args:
        tokenizer: A Hugging Face tokenizer.
        texts: The texts.
        counts: For each text, how often each draw drew it.
        chat: What the tokenizer's chat template is given. None: it is not applied.
        max_length: Cut texts to so many tokens. None: never cut.
        where: Where the user gave the set, for messages.

    Returns:
        The texts and how many of them were cut.
    """
    result, cut = [], 0
    for text, drawn in zip(texts, counts, strict=True):
        tokens, was_cut = encode(tokenizer, text, chat, where, max_length)
        cut += was_cut
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


def _apply_chat_template(
    tokenizer: Any,  # noqa: ANN401
    text: Text,
    chat: Mapping[str, Any],
    where: str,
) -> str:
    check_chat_template(tokenizer, where)
    turns = [{"role": role, "content": content} for role, content in text.turns]
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False, **chat))
    # A chat template is a program that came with the model: it can raise anything.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{where}.chat_template: the tokenizer's chat template refuses row {text.row} "
            f"({reason}); set it to false"
        ) from error
