"""Where generated answers end: each by itself, whatever else is in its batch."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import StoppingCriteria

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SPARE_TOKENS = 2
"""Tokens before the longest stop word that are looked at too: some decoders drop a first space."""


class AnswerEnds(StoppingCriteria):
    """Ends each row of a batch at its first end token or stop word.

    lm-eval's own criterion goes on until every row has met a stop word, and finds it again in the
    finished text, which lacks special tokens: what an answer is then depends on its neighbours.

    Args:
        tokenizer: The model's tokenizer.
        stop_words: Texts that end an answer; they may hold special tokens.
        end_tokens: Tokens that end an answer.
        prompt_length: Tokens of each row before the first generated one.
        think_end: What ends a model's thoughts, in which stop words do not count: a text, or a
            token. None: there are no thoughts.

    Attributes:
        lengths: How many tokens the answer of each row has, by row, once it has ended: up to the
            end token or the end of the stop word.
        eos_token_id: The end tokens; tells transformers to fill up rows that have ended.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        stop_words: Sequence[str],
        end_tokens: Collection[int],
        prompt_length: int,
        think_end: str | int | None = None,
    ) -> None:
        self.lengths: dict[int, int] = {}
        self.eos_token_id = sorted(end_tokens)
        self._tokenizer = tokenizer
        self._stop_words = [word for word in stop_words if word]
        self._end_tokens = frozenset(end_tokens)
        self._prompt_length = prompt_length
        self._think_end = think_end
        self._window = _window([*self._stop_words, str(think_end or "")])
        self._thought: dict[int, int] = {}

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:  # noqa: ANN401
        """Tell which rows have ended.

        Args:
            input_ids: Tokens so far, ``[rows, tokens]``.
            scores: Not looked at.

        Returns:
            ``[rows]``.
        """
        length = input_ids.shape[1] - self._prompt_length
        recent = input_ids[:, self._prompt_length :][:, -self._window :].tolist()
        going = [row for row in range(len(recent)) if row not in self.lengths]
        for row in going:
            if recent[row][-1] in self._end_tokens:
                self.lengths[row] = length
        going = [row for row in going if row not in self.lengths]
        if self._think_end is not None:
            recent, going = self._after_thoughts(recent, going, length)
        texts = self._tokenizer.batch_decode([recent[row] for row in going])
        for row, text in zip(going, texts, strict=True):
            if any(word in text for word in self._stop_words):
                self.lengths[row] = length
        ended = [row in self.lengths for row in range(len(recent))]
        return torch.tensor(ended, device=input_ids.device)

    def kept(self, row: int, answer: Sequence[int]) -> list[int]:
        """Return the tokens of an answer, without its end token and what came after its end.

        A stop word that holds a special token is left out too, since a text does not show it.

        Args:
            row: The row.
            answer: All tokens that were generated in this row.
        """
        tokens = list(answer[: self.lengths.get(row, len(answer))])
        if row not in self.lengths:
            return tokens
        if tokens[-1] in self._end_tokens:
            return tokens[:-1]
        begin = max(self._thought.get(row, 0), len(tokens) - self._window)
        window = tokens[begin:]
        text = str(self._tokenizer.decode(window))
        found = [text.index(word) for word in self._stop_words if word in text]
        first = len(window)
        while first and len(self._tokenizer.decode(window[:first])) > min(found):
            first -= 1
        if set(self._tokenizer.all_special_ids).isdisjoint(window[first:]):
            return tokens
        return tokens[: begin + first]

    def _after_thoughts(
        self, recent: list[list[int]], going: list[int], length: int
    ) -> tuple[list[list[int]], list[int]]:
        """Keep the rows that are past their thoughts, and of these what comes after the thoughts.

        Args:
            recent: The last tokens of each row.
            going: The rows that have not ended.
            length: How many tokens each of these has.
        """
        for row in going:
            if row not in self._thought and self._ends_thoughts(recent[row]):
                self._thought[row] = length
        past = [row for row in going if row in self._thought]
        cut = list(recent)
        for row in past:
            since = length - self._thought[row]
            cut[row] = recent[row][-since:] if since else []
        return cut, past

    def _ends_thoughts(self, tokens: list[int]) -> bool:
        if isinstance(self._think_end, int):
            return tokens[-1] == self._think_end
        return str(self._think_end) in str(self._tokenizer.decode(tokens))


def _window(words: Sequence[str]) -> int:
    """Return how many last tokens can hold any of some words: a token is a byte at least."""
    return SPARE_TOKENS + max(len(word.encode()) for word in words)
