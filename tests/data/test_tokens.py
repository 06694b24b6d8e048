"""Special tokens once, truncation only when asked for."""

import logging
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from mathneuro.data import tokens
from mathneuro.data.reading import Text
from mathneuro.data.tokens import check_chat_template, encode, tokenize, writes_the_date
from mathneuro.errors import InputError
from tests.data.tiny import (
    BEGIN,
    CHAT_TEMPLATE,
    END,
    PAD,
    WORDS,
    A,
    B,
    C,
    make_text,
    make_texts,
    make_tokenizer,
)

USER = WORDS["user"]


def ids(tokenizer: PreTrainedTokenizerFast, text: str, chat: bool = False) -> list[int]:
    """Return the tokens of a text."""
    return encode(tokenizer, make_text(text), {} if chat else None, "data.math")[0]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("<s> $A </s>", [BEGIN, A, B, END]),
        ("<s> $A", [BEGIN, A, B]),
        ("$A </s>", [A, B, END]),
        ("$A", [A, B]),
    ],
)
def test_special_tokens_are_those_that_the_tokenizer_adds(
    template: str, expected: list[int]
) -> None:
    """At the beginning, at the end, at both or at none."""
    tokenizer = make_tokenizer(template)
    assert ids(tokenizer, "a b") == expected == tokenizer("a b")["input_ids"]


@pytest.mark.parametrize("text", ["a b", "<s> a b", "a b </s>", "<s> a b </s>"])
def test_special_tokens_of_the_text_are_not_added_again(
    both_ends: PreTrainedTokenizerFast, text: str
) -> None:
    """One that it lacks still is."""
    assert ids(both_ends, text) == [BEGIN, A, B, END]


@pytest.mark.parametrize(("text", "expected"), [("<s>", [BEGIN, END]), ("</s>", [BEGIN, END])])
def test_a_text_that_is_a_special_token_keeps_it(
    both_ends: PreTrainedTokenizerFast, text: str, expected: list[int]
) -> None:
    """Once."""
    assert ids(both_ends, text) == expected


def test_what_the_text_itself_doubles_stays() -> None:
    """Only added tokens are taken away."""
    assert ids(make_tokenizer("$A"), "<s> <s> a </s> </s>") == [BEGIN, BEGIN, A, END, END]
    assert ids(make_tokenizer("$A </s>"), "<s> <s> a") == [BEGIN, BEGIN, A, END]


def test_special_tokens_within_a_text_stay(both_ends: PreTrainedTokenizerFast) -> None:
    """As between two examples in one text."""
    assert ids(both_ends, "a </s> b") == [BEGIN, A, END, B, END]


def test_a_chat_template_writes_its_own_special_tokens(both_ends: PreTrainedTokenizerFast) -> None:
    """The tokenizer adds none to them."""
    both_ends.chat_template = CHAT_TEMPLATE
    assert ids(both_ends, "a b", chat=True) == [BEGIN, USER, A, B]
    turns = [{"role": "user", "content": "a b"}]
    expected = both_ends.apply_chat_template(turns)
    assert ids(both_ends, "a b", chat=True) == expected["input_ids"]  # type: ignore[index, call-overload]


def test_question_and_solution_become_two_turns(both_ends: PreTrainedTokenizerFast) -> None:
    """The user's and the assistant's."""
    both_ends.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    text = Text(0, "unused", (("user", "a"), ("assistant", "b")))
    assert encode(both_ends, text, {}, "data.math") == ([A, B], False)


def test_a_chat_template_takes_arguments(both_ends: PreTrainedTokenizerFast) -> None:
    """Such as whether the model is to think first."""
    both_ends.chat_template = "{{ 'b' if enable_thinking else 'a' }} {{ messages[0].content }}"
    text = Text(0, "unused", (("user", "c"),))
    assert encode(both_ends, text, {"enable_thinking": True}, "data.math")[0] == [B, C]
    assert encode(both_ends, text, {"enable_thinking": False}, "data.math")[0] == [A, C]


def test_a_tokenizer_without_a_chat_template_is_told(both_ends: PreTrainedTokenizerFast) -> None:
    """As what it is, not as a failure of the model."""
    with pytest.raises(InputError, match=r"^data\.math\.chat_template: got true, but the token"):
        check_chat_template(both_ends, "data.math")


@pytest.mark.parametrize(
    "template",
    ["{{ raise_exception('no user') }}", "{{ messages[0].content + 1 }}", "{{ messages"],
)
def test_a_chat_template_that_refuses_a_text_is_told(
    both_ends: PreTrainedTokenizerFast, template: str
) -> None:
    """With the row, whatever it raised."""
    both_ends.chat_template = template
    with pytest.raises(InputError, match=r"^data\.math\.chat_template: .* refuses row 0 \("):
        ids(both_ends, "a", chat=True)


def test_a_chat_template_that_writes_the_date_is_noticed(
    both_ends: PreTrainedTokenizerFast,
) -> None:
    """Its texts are others on another day."""
    assert not writes_the_date(both_ends)
    both_ends.chat_template = CHAT_TEMPLATE
    assert not writes_the_date(both_ends)
    both_ends.chat_template = "{{ strftime_now('%d %b %Y') }}" + CHAT_TEMPLATE
    assert writes_the_date(both_ends)


def test_texts_are_cut_only_when_asked_and_then_counted(
    both_ends: PreTrainedTokenizerFast,
) -> None:
    """To the number of tokens that was asked for, special ones included."""
    texts = make_texts("a b c a b c", "a", "a b")
    whole, cut = tokenize(both_ends, texts, [(1,), (2,), (3,)], None, None, "data.math")
    assert ([len(text.tokens) for text in whole], cut) == ([8, 3, 4], 0)
    short, cut = tokenize(both_ends, texts, [(1,), (2,), (3,)], None, 4, "data.math")
    assert [text.tokens for text in short] == [
        (BEGIN, A, B, C),
        (BEGIN, A, END),
        (BEGIN, A, B, END),
    ]
    assert cut == 1


def test_rows_and_counts_go_along(both_ends: PreTrainedTokenizerFast) -> None:
    """So that a text can be named and counted."""
    texts, _ = tokenize(both_ends, make_texts("a", "b"), [(5, 0), (7, 1)], None, None, "data.math")
    assert [(text.name, text.counts) for text in texts] == [
        ("row 0 of data.math", (5, 0)),
        ("row 1 of data.math", (7, 1)),
    ]


def test_what_is_set_in_the_tokenizer_neither_cuts_nor_pads(
    both_ends: PreTrainedTokenizerFast,
) -> None:
    """As when it was saved in the middle of a training."""
    both_ends.backend_tokenizer.enable_truncation(2)
    both_ends.backend_tokenizer.enable_padding(length=9, pad_id=PAD, pad_token="<pad>")
    assert ids(both_ends, "a b c") == [BEGIN, A, B, C, END]


def test_the_tokenizer_does_not_warn_of_every_long_text(
    both_ends: PreTrainedTokenizerFast, caplog: pytest.LogCaptureFixture
) -> None:
    """The data tells of them, set by set."""
    both_ends.model_max_length = 2
    logging.getLogger("transformers").propagate = True
    with caplog.at_level(logging.WARNING):
        assert ids(both_ends, "a b c") == [BEGIN, A, B, C, END]
    assert "longer than" not in caplog.text


def test_a_text_without_any_token_is_refused_with_its_row() -> None:
    """A model cannot run on nothing."""
    tokenizer = make_tokenizer("$A")
    with pytest.raises(InputError, match=r"^data\.math: row 7 gives no token"):
        encode(tokenizer, Text(7, "\n", (("user", "\n"),)), None, "data.math")


@pytest.mark.parametrize("blank", [0, 500_000])
@pytest.mark.parametrize("chat", [None, {}])
def test_what_is_cut_of_a_long_text_is_not_tokenized(
    both_ends: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
    chat: dict[str, Any] | None,
    blank: int,
) -> None:
    """The tokens are the first of the whole text; of a text with few of them more is read."""
    both_ends.chat_template = "{{ messages[0]['content'] }}"
    content = " " * blank + "the red cat sees a dog . " * 40_000
    texts = [Text(0, content, (("user", content),))]
    (whole,), _ = tokenize(both_ends, texts, [(1,)], chat, None, "data.math")
    read, tokenized = list[int](), tokens._ids

    def watched(tokenizer: PreTrainedTokenizerFast, part: str, special: bool) -> list[int]:
        read.append(len(part))
        return tokenized(tokenizer, part, special)

    monkeypatch.setattr(tokens, "_ids", watched)
    (found,), cut = tokenize(both_ends, texts, [(1,)], chat, 128, "data.math")
    assert (found.tokens, cut) == (whole.tokens[:128], 1)
    assert max(read) <= (len(content) - 1 if blank else 2**16)
