"""The tokenizer of a model, as its tokenizer.json states it."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mathneuro.errors import InputError
from mathneuro.hub import load_pretrained

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

    from mathneuro.loading import ModelSource

FILE = "tokenizer.json"

CONFIG = "tokenizer_config.json"

SECTIONS = ("normalizer", "pre_tokenizer", "model", "post_processor", "decoder", "added_tokens")
"""The parts of tokenizer.json that decide about tokens."""

WITHOUT_EFFECT = frozenset({"trim_offsets"})
"""Fields that change no token."""

UNRAISED = (
    "_raise_exceptions_for_missing_entries",
    "_raise_exceptions_for_connection_errors",
)
"""Arguments of transformers' search for a file that need not be there."""


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer and where it came from.

    Attributes:
        tokenizer: The tokenizer.
        built: The class that transformers chose for it.
        differs: The parts of tokenizer.json that this class would have replaced by its own, so that
            the file was taken as it is. Empty: none.
        followed: What tokenizer_config.json says of special tokens that transformers would have
            left out, such as ``add_bos_token true``. Empty: nothing.
    """

    tokenizer: "PreTrainedTokenizerBase"
    built: str
    differs: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()

    @cached_property
    def note(self) -> str | None:
        """What the user must know, in one sentence without its full stop; None: nothing."""
        parts = []
        if self.differs:
            parts.append(
                f"{FILE} is used as it is, since transformers' {self.built} replaces its "
                f"{', '.join(self.differs)} and would give other tokens"
            )
        if self.followed:
            parts.append(
                f"{', '.join(self.followed)} of {CONFIG} is followed, which transformers leaves out"
            )
        return "; ".join(parts) or None

    def record(self) -> dict[str, Any]:
        """Return what results state of the tokenizer."""
        return {
            "class": type(self.tokenizer).__name__,
            "chosen_by_transformers": self.built,
            "replaced_parts": list(self.differs),
            "followed": list(self.followed),
        }


def load_tokenizer(source: "ModelSource") -> LoadedTokenizer:
    """Load a tokenizer; where it has a tokenizer.json, exactly as that file states it.

    transformers picks a class by the type of the model, and some classes put a normalizer or a
    pre-tokenizer of their own in place of the file's, which gives other tokens than the model was
    trained on. What tokenizer_config.json says, of special tokens for one, stands.

    Args:
        source: Where the model and its tokenizer come from.

    Raises:
        InputError: If there is no tokenizer, or transformers cannot build the one of the file.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    name, keywords = source.arguments()
    if source.tokenizer is not None:
        name, keywords = source.tokenizer, {"trust_remote_code": source.trust_remote_code}
    field = "model.tokenizer"
    chosen: PreTrainedTokenizerBase = load_pretrained(
        AutoTokenizer.from_pretrained, name, keywords, field
    )
    built = type(chosen).__name__
    # Classes without such a backend, as those that models bring as code, do not claim to read it.
    stated = None if "gguf_file" in keywords or not chosen.is_fast else _stated(name, keywords)
    if stated is None:
        return LoadedTokenizer(chosen, built)
    plain: PreTrainedTokenizerBase = load_pretrained(
        PreTrainedTokenizerFast.from_pretrained, name, keywords, field
    )
    _check_read_as_stated(plain, stated, name)
    differs = different_parts(chosen.backend_tokenizer, plain.backend_tokenizer)
    tokenizer = plain if differs else chosen
    return LoadedTokenizer(tokenizer, built, differs, _follow_config(tokenizer, name, keywords))


def different_parts(first: "Tokenizer", second: "Tokenizer") -> tuple[str, ...]:
    """Return the parts in which two tokenizers differ so that they may give other tokens.

    Args:
        first: A tokenizer of the tokenizers library.
        second: Another one.

    Example:
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> first, second = (Tokenizer(models.WordLevel({"a": 0}, unk_token="a")) for _ in "12")
        >>> second.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> different_parts(first, second)
        ('pre_tokenizer',)
    """
    one, other = _parts(first), _parts(second)
    return tuple(name for name in SECTIONS if one[name] != other[name])


def _stated(name: str, keywords: dict[str, Any]) -> "Tokenizer | None":
    """Read a folder's or repository's tokenizer.json; None if it has none."""
    from tokenizers import Tokenizer
    from transformers.utils.hub import cached_file

    where: dict[str, Any] = {"revision": keywords.get("revision")}
    where |= dict.fromkeys(UNRAISED, False)
    path = load_pretrained(cached_file, name, {"filename": FILE, **where}, "model.tokenizer")
    return None if path is None else Tokenizer.from_file(path)


def _check_read_as_stated(plain: "PreTrainedTokenizerBase", stated: "Tokenizer", name: str) -> None:
    """Refuse a version of transformers whose plain class changes the file too."""
    # Special tokens are those of tokenizer_config.json, which this class adds as it should.
    changed = different_parts(plain.backend_tokenizer, stated)
    changed = tuple(part for part in changed if part not in ("post_processor", "added_tokens"))
    # tokenizer_config.json may ask for the repaired pre-tokenizer of Mistral's.
    if changed and not getattr(plain, "fix_mistral_regex", False):
        from transformers import __version__

        raise InputError(
            f"model.tokenizer: transformers {__version__} reads {FILE} of {name} with another "
            f"{', '.join(changed)} than the file states, which would give other tokens; install "
            "another version of transformers"
        )


def _follow_config(
    tokenizer: "PreTrainedTokenizerBase", name: str, keywords: dict[str, Any]
) -> tuple[str, ...]:
    """Add the special tokens that tokenizer_config.json asks for, and no others.

    transformers 5 takes no notice of ``add_bos_token`` and ``add_eos_token`` beside a
    tokenizer.json.

    Returns:
        What had been left out.
    """
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    stated: dict[str, Any] = load_pretrained(
        get_tokenizer_config, name, keywords, "model.tokenizer"
    )
    encoded = tokenizer("0", add_special_tokens=True, return_special_tokens_mask=True)
    ids, added = encoded["input_ids"], encoded["special_tokens_mask"]
    now = {
        "add_bos_token": bool(ids and added[0] and ids[0] == tokenizer.bos_token_id),
        "add_eos_token": bool(ids and added[-1] and ids[-1] == tokenizer.eos_token_id),
    }
    known = {"add_bos_token": tokenizer.bos_token, "add_eos_token": tokenizer.eos_token}
    wanted = {
        key: stated[key]
        for key, before in now.items()
        if isinstance(stated.get(key), bool) and known[key] is not None and stated[key] != before
    }
    if wanted:
        # Each setter builds the post-processor of both.
        for key, value in (now | wanted).items():
            setattr(tokenizer, key, value)
    return tuple(f"{key} {str(value).lower()}" for key, value in wanted.items())


def _parts(tokenizer: "Tokenizer") -> dict[str, Any]:
    parts = json.loads(tokenizer.to_str())
    return {name: _normal(name, parts[name]) for name in SECTIONS}


def _normal(name: str, value: Any) -> Any:  # noqa: ANN401
    """Leave out what has no effect on tokens."""
    if name == "model":
        values = {key: None if each == "" else each for key, each in value.items()}
        return values if values.get("unk_token") else {**values, "fuse_unk": None}
    if name == "added_tokens":
        return sorted(value, key=lambda token: int(token["id"]))
    if isinstance(value, list):
        return [_normal("", each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "ByteLevel" and name in ("decoder", "post_processor"):
        # Here it has no settings but for offsets.
        return None if name == "post_processor" else {"type": "ByteLevel"}
    return {key: _normal("", each) for key, each in value.items() if key not in WITHOUT_EFFECT}
