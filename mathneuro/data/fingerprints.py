"""What tells whether two runs saw the same texts."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mathneuro.data.draws import DrawKey
from mathneuro.data.reading import Text
from mathneuro.data.sets import DrawnSet, TokenizedSet
from mathneuro.data.tokens import TokenizedText


def draw_fingerprint(drawn: DrawnSet, texts: TokenizedSet, key: DrawKey) -> dict[str, Any]:
    """Return what one draw took from a set: all that is needed to draw the same again."""
    taken = drawn.draws[key]
    tokenized = dict(zip((text.text for text in drawn.texts), texts.identification, strict=True))
    mine = [tokenized[text.text] for text in taken.texts]
    tokens = sum(len(text.tokens) * count for text, count in zip(mine, taken.counts, strict=True))
    return {
        **asdict(drawn.spec),
        "rows": list(taken.rows),
        "texts": len(taken.rows),
        "distinct_texts": len(taken.texts),
        "tokens": tokens,
        "sha256": hash_texts(taken.texts),
        "text_hashes": [short_hash(text) for text in taken.texts],
        "tokens_sha256": hash_tokens(mine),
        "empty_rows_skipped": drawn.empty,
        "num_samples": key.num_samples,
        "repeat": key.repeat,
    }


def held_out_fingerprint(drawn: DrawnSet, texts: TokenizedSet) -> dict[str, Any]:
    """Return which held-out texts of a set perplexity is measured on."""
    return {
        **asdict(drawn.spec.held_out() if drawn.spec.has_own_held_out else drawn.spec),
        "rows": [text.row for text in drawn.held_out],
        "texts": len(drawn.held_out),
        "tokens": sum(len(text.tokens) for text in texts.held_out),
        "sha256": hash_texts(drawn.held_out),
        "tokens_sha256": hash_tokens(texts.held_out),
    }


def content_fingerprint(drawn: DrawnSet, texts: TokenizedSet) -> dict[str, Any]:
    """Return what a set holds, wherever it lies: what draws, whatever their size, come from."""
    return {
        "chat_template": drawn.spec.chat_template,
        "chat_template_args": drawn.spec.chat_template_args,
        "texts": len(drawn.usable),
        "sha256": hash_texts(drawn.usable),
        "held_out_sha256": hash_texts(drawn.held_out),
        "held_out_tokens_sha256": hash_tokens(texts.held_out),
    }


def hash_texts(texts: Sequence[Text]) -> str:
    """Hash texts in their order."""
    return hashlib.sha256("\0".join(text.text for text in texts).encode()).hexdigest()


def short_hash(text: Text) -> str:
    """Hash one text."""
    return hashlib.sha256(text.text.encode()).hexdigest()[:16]


def hash_tokens(texts: Sequence[TokenizedText]) -> str:
    """Hash what the model sees: other tokens of the same texts mean another tokenizer."""
    return hashlib.sha256(repr([text.tokens for text in texts]).encode()).hexdigest()
