"""The LightningDataModule: one math set, any number of calibration sets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader
from typing_extensions import override

from mathneuro.data.batches import Batch, BatchedTexts, BatchLimit, bucket, pad
from mathneuro.data.budget import MOST, MOST_ELSEWHERE, find_budget
from mathneuro.data.drawing import Drawing, draw_sets, place
from mathneuro.data.draws import DrawKey
from mathneuro.data.fingerprints import (
    content_fingerprint,
    draw_fingerprint,
    held_out_fingerprint,
    short_hash,
)
from mathneuro.data.sets import DrawnSet, TokenizedSet
from mathneuro.data.spec import MATH, TextSet
from mathneuro.data.tokenizing import tokenize_sets
from mathneuro.data.tokens import TokenizedText
from mathneuro.errors import InputError
from mathneuro.ranks import ALONE, Ranks
from mathneuro.whole_number import WholeNumber

if TYPE_CHECKING:
    from mathneuro.module import CausalLanguageModel

Purpose = Literal["identification", "perplexity"]
"""What batches are for."""


class TextDataModule(LightningDataModule):
    """Texts for identification and held-out texts for perplexity, set by set.

    Args:
        math: The math set.
        calibration: Calibration sets by name; what matters for them is not math-specific.
        num_samples: Texts drawn from each set for identification. null: all, each once.
        replacement: Whether a text can be drawn more than once, as in the paper.
        seed: Seed of the draws, and of which texts are held out.
        repeat: Which of several draws with that seed, from 1; all hold out the same texts.
        batch_size: Texts a forward pass; it changes the speed, and the result by rounding alone.
            null: 8, or as many as batch_tokens allows.
        batch_tokens: Tokens a forward pass, padding included, so that one setting suits short and
            long texts; with batch_size, both are limits. auto: as many as fit on the device, found
            by trying the largest batch; with another device, results may differ by rounding.
        max_length: Cut texts to so many tokens. null: never cut.
        held_out: Texts of each set that identification never uses; perplexity is measured on them.
            0: none is held out, and no perplexity is measured.
    """

    def __init__(
        self,
        math: TextSet,
        calibration: dict[str, TextSet],
        num_samples: WholeNumber | None = 500,
        replacement: bool = True,
        seed: WholeNumber = 0,
        repeat: WholeNumber = 1,
        batch_size: WholeNumber | None = None,
        batch_tokens: WholeNumber | Literal["auto"] | None = None,
        max_length: WholeNumber | None = None,
        held_out: WholeNumber = 100,
    ) -> None:
        super().__init__()
        self.specs = {MATH: math, **calibration}
        self.num_samples = num_samples
        self.replacement = replacement
        self.seed = seed
        self.repeat = repeat
        self.batch_size = 8 if batch_size is None and batch_tokens is None else batch_size
        self.batch_tokens = batch_tokens
        self.budgets: dict[str, int] = {}
        self.untold: list[str] = []
        self.max_length = max_length
        self.number_held_out = held_out
        self.draws: Sequence[DrawKey] = (DrawKey(num_samples, repeat),)
        self._check(calibration)
        self.positions: Sequence[int] | None = None
        self._drawn: dict[str, DrawnSet] | None = None
        self._tokenized: dict[str, TokenizedSet] | None = None

    @property
    def names(self) -> list[str]:
        """Names of the sets: ``math`` first, then the calibration sets."""
        return list(self.specs)

    @property
    def drawn(self) -> dict[str, DrawnSet]:
        """The texts by set; read at the first use, without model or tokenizer."""
        if self._drawn is None:
            how = Drawing(self.draws, self.replacement, self.seed, self.number_held_out)
            self._drawn = draw_sets(self.specs, how)
        return self._drawn

    @property
    def tokenized(self) -> dict[str, TokenizedSet]:
        """The texts by set as the model sees them; there after `setup`."""
        if self._tokenized is None:
            raise RuntimeError("TextDataModule.setup has not run: the texts have no tokens yet.")
        return self._tokenized

    @override
    def prepare_data(self) -> None:
        """Read the texts in one process of each machine first, so that it builds their caches."""
        _ = self.drawn

    @override
    def setup(self, stage: str) -> None:
        """Read, draw and tokenize, once for all stages; every mistake in the data shows here."""
        if self.trainer is None:
            return
        if self._tokenized is None:
            self._tokenize_all(self._module())
        if stage == "validate":
            self._check_held_out()

    @override
    def predict_dataloader(self) -> list[DataLoader[Batch]]:
        """Return one loader a set, in the order of `names`."""
        ranks = self._ranks()
        sets = [each.identification for each in self.tokenized.values()]
        limit = self._limit("identification", sets)
        return [self._loader(texts, limit, ranks) for texts in sets]

    @override
    def val_dataloader(self) -> list[DataLoader[Batch]]:
        """Return what is evaluated: held-out texts by set, or the settings of a sweep."""
        if self.positions is not None:
            mine: list[int | None] = [*self._ranks().part(self.positions)]
            if self.positions and not mine:
                # A process without any batch would skip the epoch, and not wait for the others.
                mine = [None]
            if self.positions and self.number_held_out:
                # Processes find it together; later each measures by itself.
                self._limit("perplexity", self._held_out())
            return [DataLoader(mine, batch_size=None)]  # type: ignore[arg-type]
        if self.number_held_out == 0:
            # Without any batch, Lightning would skip the epoch and with it the evaluation of tasks.
            empty: list[Batch] = [{}]
            return [DataLoader(empty, batch_size=None)]  # type: ignore[arg-type]
        return self.held_out_loaders(self._ranks())

    def held_out_loaders(self, ranks: Ranks) -> list[DataLoader[Batch]]:
        """Return one loader a set that has held-out texts, in the order of `names`.

        Args:
            ranks: The processes that share the texts.
        """
        sets = self._held_out()
        limit = self._limit("perplexity", sets)
        return [self._loader(texts, limit, ranks) for texts in sets]

    def _held_out(self) -> list[list[TokenizedText]]:
        """Return the held-out texts of every set that has any."""
        return [each.held_out for each in self.tokenized.values() if each.held_out]

    @property
    def batches(self) -> str:
        """What a batch holds at most, in words."""
        limits = {"text": self.batch_size, "token": self.batch_tokens}
        known = [_count(limit, noun) for noun, limit in limits.items() if isinstance(limit, int)]
        return " and ".join(known) or "as many tokens as fit"

    def _limit(self, purpose: Purpose, sets: Sequence[list[TokenizedText]]) -> BatchLimit:
        """Return what a batch may hold; found by trying, if it is to be."""
        if self.batch_tokens != "auto":
            return BatchLimit(self.batch_size, self.batch_tokens)
        if purpose not in self.budgets:
            self.budgets[purpose] = self._find_budget(purpose, sets)
        return BatchLimit(self.batch_size, self.budgets[purpose])

    def _find_budget(self, purpose: Purpose, sets: Sequence[list[TokenizedText]]) -> int:
        """Try the largest batch of all sets until it fits, in every process."""
        module = self._module()
        if module.ranks.in_lockstep:
            raise InputError(
                "data.batch_tokens: got auto, but processes that share one model cannot try what "
                "fits in each; give a number"
            )
        texts = max(sets, key=lambda each: max(len(text.tokens) for text in each))
        longest = max(len(text.tokens) for text in texts)
        most = MOST.get(module.input_device.type, MOST_ELSEWHERE)

        def fits(tokens: int) -> bool:
            positions = bucket(texts, BatchLimit(self.batch_size, tokens))[0]
            batch = pad([texts[position] for position in positions], self._pad_token)
            return module.fits({**batch, "positions": torch.tensor(positions)}, purpose)

        budget = min(module.ranks.gather(find_budget(fits, most, longest, "data.max_length")))
        if budget < most:
            self.untold.append(
                f"{purpose}: batches of up to {budget:,} tokens, as more did not fit on the device"
            )
        return budget

    def _module(self) -> "CausalLanguageModel":
        """Return the model of the run.

        Raises:
            RuntimeError: If there is none yet.
        """
        if self.trainer is None:
            raise RuntimeError("TextDataModule has no Trainer yet, and so no model.")
        module: CausalLanguageModel = self.trainer.lightning_module  # type: ignore[assignment]
        return module

    def _ranks(self) -> Ranks:
        """Return the processes of the run."""
        return ALONE if self.trainer is None else self._module().ranks

    def notes(self, context_length: int | None) -> list[str]:
        """Tell what happened to texts that could not be used as they are.

        Args:
            context_length: The longest text that the model was made for, in tokens.
        """
        notes = []
        for name, drawn in self.drawn.items():
            texts = self.tokenized[name]
            if drawn.empty:
                notes.append(f"{name}: {_count(drawn.empty, 'empty row')} skipped")
            if texts.cut:
                notes.append(f"{name}: {_count(texts.cut, 'text')} cut to {self.max_length} tokens")
            everything = [*texts.identification, *texts.held_out]
            long = [text for text in everything if len(text.tokens) > (context_length or 1 << 62)]
            if long:
                notes.append(
                    f"{name}: {_count(len(long), 'text')} longer than the model's context of "
                    f"{context_length} tokens ({long[0].name} first); set data.max_length to cut"
                )
            if texts.dated:
                notes.append(
                    f"{name}: the chat template writes the date of the run into every text, so "
                    "runs of other days differ"
                )
        return notes

    def longest(self) -> TokenizedText:
        """Return the longest text of all sets, in tokens."""
        texts = [
            text for each in self.tokenized.values() for text in each.identification + each.held_out
        ]
        return max(texts, key=lambda text: len(text.tokens))

    def fingerprints(self, key: DrawKey | None = None) -> dict[str, dict[str, Any]]:
        """Return, by set, all that is needed to draw the same texts again.

        Args:
            key: Which draw. None: the first.
        """
        key = self.draws[0] if key is None else key
        settings = {
            "replacement": self.replacement,
            "seed": self.seed,
            "max_length": self.max_length,
            "held_out": self.number_held_out,
        }
        return {
            name: {
                **draw_fingerprint(drawn, self.tokenized[name], key),
                **{
                    f"held_out_{label}": value
                    for label, value in held_out_fingerprint(drawn, self.tokenized[name]).items()
                    if label in ("rows", "sha256", "tokens_sha256")
                },
                **settings,
            }
            for name, drawn in self.drawn.items()
        }

    def held_out_fingerprints(self) -> dict[str, dict[str, Any]]:
        """Return, by set, which held-out texts perplexity is measured on."""
        settings = {"seed": self.seed, "max_length": self.max_length}
        return {
            name: {**held_out_fingerprint(drawn, self.tokenized[name]), **settings}
            for name, drawn in self.drawn.items()
        }

    def draw_settings(self) -> dict[str, Any]:
        """Return what the draws of a sweep depend on besides the texts, of which none is read."""
        return {
            "seed": self.seed,
            "replacement": self.replacement,
            "max_length": self.max_length,
            "held_out": self.number_held_out,
        }

    def content(self) -> dict[str, Any]:
        """Return what the draws of a sweep depend on, wherever the files lie."""
        return {
            **self.draw_settings(),
            "sets": {
                name: content_fingerprint(drawn, self.tokenized[name])
                for name, drawn in self.drawn.items()
            },
        }

    def check_held_out(self, identified: Mapping[str, Mapping[str, Any]], option: str) -> None:
        """Refuse held-out texts that an earlier identification used.

        Args:
            identified: What `fingerprints` told of the texts that it used.
            option: The option that gave the earlier result, for the message.

        Raises:
            InputError: If a held-out text of a set is one of them.
        """
        used = {text for each in identified.values() for text in each.get("text_hashes", ())}
        for name, drawn in self.drawn.items():
            seen = sum(short_hash(text) in used for text in drawn.held_out)
            if seen:
                raise InputError(
                    f"{option}: its identification used {seen} of the {len(drawn.held_out)} "
                    f"held-out texts of {place(name)}, but it must not have seen any; use the "
                    "data.seed and data.held_out of that run, or give held_out_path"
                )

    def _check(self, calibration: dict[str, TextSet]) -> None:
        for name in calibration:
            # YAML reads a name such as 1 or 1e3 as a number.
            if name == MATH or str(name) != name or "/" in name or not name.strip():
                raise InputError(
                    f"data.calibration: the name {name!r} cannot be used; choose a text (in quotes "
                    "if it looks like a number) that is not 'math', not empty and has no '/'"
                )
        numbers = {"num_samples": self.num_samples, "batch_size": self.batch_size}
        numbers |= {"max_length": self.max_length, "repeat": self.repeat}
        numbers["batch_tokens"] = None if self.batch_tokens == "auto" else self.batch_tokens
        for label, number in numbers.items():
            if number is not None and number < 1:
                raise InputError(f"data.{label}: got {number}, but it must be at least 1")
        for label, number in {"held_out": self.number_held_out, "seed": self.seed}.items():
            if number < 0:
                raise InputError(f"data.{label}: got {number}, but it may not be below 0")
        for name, spec in self.specs.items():
            spec.check(place(name))

    def _check_held_out(self) -> None:
        """Refuse held-out texts without a token to predict."""
        for name, texts in self.tokenized.items():
            if texts.held_out and all(len(text.tokens) == 1 for text in texts.held_out):
                raise InputError(
                    f"{place(name)}: each held-out text is one token long, but perplexity "
                    "needs two or more; raise data.max_length, or use longer texts"
                )

    def _tokenize_all(self, module: "CausalLanguageModel") -> None:
        """Give every text its tokens, before the model's weights are there."""
        vocabulary = getattr(module.config.get_text_config(), "vocab_size", None)
        tokenizer, drawn = module.tokenizer, self.drawn
        tokenized = tokenize_sets(tokenizer, drawn, self.max_length, vocabulary)
        pad = tokenizer.pad_token_id
        # Any token will do, if only the model knows it: the mask tells what is padding.
        self._pad_token = 0 if pad is None or pad >= (vocabulary or 0) else pad
        self._tokenized = tokenized

    def _loader(
        self, texts: list[TokenizedText], limit: BatchLimit, ranks: Ranks
    ) -> DataLoader[Batch]:
        dataset = BatchedTexts(texts, limit, self._pad_token, ranks)
        return DataLoader(dataset, batch_size=None)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
