"""Whole sets of texts as the model sees them."""

from collections.abc import Mapping
from typing import Any

from mathneuro.data.drawing import place
from mathneuro.data.reading import Text
from mathneuro.data.sets import DrawnSet, TokenizedSet
from mathneuro.data.tokens import TokenizedText, check_chat_template, tokenize, writes_the_date
from mathneuro.errors import InputError


def tokenize_sets(
    tokenizer: Any,  # noqa: ANN401
    drawn: Mapping[str, DrawnSet],
    max_length: int | None,
    vocabulary: int | None,
) -> dict[str, TokenizedSet]:
    """Give every text of every set its tokens.

    Args:
        tokenizer: A Hugging Face tokenizer.
        drawn: The sets.
        max_length: Cut texts to so many tokens. None: never cut.
        vocabulary: How many tokens the model knows. None: not known.

    Raises:
        InputError: If a chat template is missing or refuses a text, a text gives no token, or the
            tokenizer is not for this model.
    """
    for name, each in drawn.items():
        if each.spec.chat_template:
            check_chat_template(tokenizer, place(name))
    tokenized = {
        name: _tokenize(tokenizer, each, max_length, place(name)) for name, each in drawn.items()
    }
    for texts in tokenized.values():
        _check_vocabulary([*texts.identification, *texts.held_out], vocabulary)
    return tokenized


def _tokenize(
    tokenizer: Any,  # noqa: ANN401
    drawn: DrawnSet,
    max_length: int | None,
    where: str,
) -> TokenizedSet:
    chat = drawn.spec.chat

    def convert(
        texts: tuple[Text, ...], counts: list[tuple[int, ...]]
    ) -> tuple[list[TokenizedText], int]:
        return tokenize(tokenizer, texts, counts, chat, max_length, where)

    identification, cut = convert(drawn.texts, drawn.counts)
    held_out, held_out_cut = convert(drawn.held_out, [(1,)] * len(drawn.held_out))
    dated = chat is not None and writes_the_date(tokenizer)
    return TokenizedSet(identification, held_out, cut + held_out_cut, dated)


def _check_vocabulary(texts: list[TokenizedText], vocabulary: int | None) -> None:
    """Refuse a tokenizer that is not for this model."""
    for text in texts:
        if vocabulary is not None and max(text.tokens) >= vocabulary:
            raise InputError(
                f"model.tokenizer: {text.name} gives token {max(text.tokens)}, but the model knows "
                f"only {vocabulary} tokens; use the tokenizer that belongs to the model"
            )
