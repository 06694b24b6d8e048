"""A model in memory as lm-eval sees it, left as it was found."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from lm_eval.models.huggingface import HFLM

from mathneuro.decoder import input_device
from mathneuro.evaluation import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class LiveModel(HFLM):  # type: ignore[misc]
    """lm-eval's Hugging Face model around a model that already is in memory.

    lm-eval's own class ties weights again (which would undo an edit of a head), sets a pad token
    for good and changes the padding side; this one works on a copy of the tokenizer and leaves the
    model's weights, mode and settings alone. It also counts what lm-eval cuts without a word.

    Args:
        model: The model.
        tokenizer: Its tokenizer; only a copy of it is used.
        batch_size: Requests a forward pass, or ``auto``: found once, then kept, so that scores
            before and after an edit share it.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        batch_size: int | str = 1,
    ) -> None:
        with _keep_ties(model), _keep_mode(model), quiet():
            super().__init__(
                pretrained=model, tokenizer=copy.deepcopy(tokenizer), batch_size=batch_size
            )
        self._found_batch_size: int | None = None
        self._forget()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Evaluate in this block: in evaluation mode, where texts have to be, with new counts."""
        self._device = input_device(self.model)
        self._forget()
        with _keep_mode(self.model), torch.no_grad():
            self.model.eval()
            yield

    def notes(self) -> list[str]:
        """Say in sentences what was cut since the block began."""
        notes = []
        if self._cut_prompts:
            notes.append(
                f"{self._cut_prompts} prompts were longer than the model's context and lost their "
                "beginning"
            )
        if self._cut_answers:
            notes.append(
                f"{self._cut_answers} generated answers ended at the limit of new tokens, not at a "
                "stop word"
            )
        return notes

    def tok_batch_encode(
        self, strings: list[str], *args: Any, left_truncate_len: int | None = None, **keywords: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode prompts as lm-eval does, and count those that do not fit."""
        ids, mask = super().tok_batch_encode(strings, *args, left_truncate_len=None, **keywords)
        if left_truncate_len is not None and ids.shape[1] > left_truncate_len:
            self._cut_prompts += int((mask.sum(1) > left_truncate_len).sum())
            ids, mask = ids[:, -left_truncate_len:], mask[:, -left_truncate_len:]
        return ids, mask

    def _loglikelihood_tokens(
        self, requests: list[Any], *args: Any, **keywords: Any
    ) -> list[tuple[float, bool]]:
        """Score continuations as lm-eval does, and count the prompts that do not fit."""
        self._cut_prompts += sum(
            len(context) + len(continuation) > self.max_length + 1
            for _, context, continuation in requests
        )
        result: list[tuple[float, bool]] = super()._loglikelihood_tokens(
            requests, *args, **keywords
        )
        return result

    def _model_generate(
        self, context: torch.Tensor, max_length: int, stop: list[str], **keywords: Any
    ) -> torch.Tensor:
        """Generate as lm-eval does, and count answers that neither a stop word nor EOS ended."""
        output: torch.Tensor = super()._model_generate(context, max_length, stop, **keywords)
        if output.shape[1] >= max_length:
            for answer in output[:, context.shape[1] :]:
                ended = bool((answer == self.eot_token_id).any())
                text = self.tok_decode(answer.tolist())
                self._cut_answers += not ended and not any(word in text for word in stop)
        return output

    def _detect_batch_size(self, *args: Any, **keywords: Any) -> int:
        """Find the largest batch size that fits, once."""
        if self._found_batch_size is None:
            self._found_batch_size = int(super()._detect_batch_size(*args, **keywords))
        return self._found_batch_size

    def _forget(self) -> None:
        self._cut_prompts = 0
        self._cut_answers = 0


@contextmanager
def _keep_ties(model: "PreTrainedModel") -> Iterator[None]:
    """Keep weights as they are, tied or not, while lm-eval wraps the model."""
    model.tie_weights = lambda *_args, **_keywords: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        del model.tie_weights


@contextmanager
def _keep_mode(model: torch.nn.Module) -> Iterator[None]:
    """Put every module back into the mode that it was in, training or evaluation."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
