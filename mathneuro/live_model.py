"""A model in memory as lm-eval sees it, left as it was found."""

import copy
import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from lm_eval.api.model import CacheHook
from lm_eval.models.huggingface import HFLM
from transformers import LogitsProcessorList

from mathneuro.batch_size import find_batch_size
from mathneuro.decoder import input_device
from mathneuro.evaluation import quiet
from mathneuro.ranks import ALONE, Ranks
from mathneuro.request_batches import TokenRequest, generation_batches, likelihood_batches
from mathneuro.tasks import longest_answer
from mathneuro.void import FiniteLogits, VoidAnswer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class LiveModel(HFLM):  # type: ignore[misc]
    """lm-eval's Hugging Face model around a model that already is in memory.

    lm-eval's own class ties weights again (which would undo an edit of a head), sets a pad token
    for good and changes the padding side; this one works on a copy of the tokenizer and leaves the
    model's weights, mode and settings alone. It also counts what lm-eval cuts without a word.

    Several processes share the requests, batch by batch: the batches are those of one process, so
    that scores are too, and every process gets all answers. lm-eval itself sees one process. (Its
    own way divides documents, which changes batches, repeats requests, and needs a document for
    each process.)

    Args:
        model: The model.
        tokenizer: Its tokenizer; only a copy of it is used.
        batch_size: Requests a forward pass, or ``auto``: found once for each kind of request, then
            kept, so that scores before and after an edit share it.
        ranks: The processes that share the requests.
        progress: Whether bars show how far it is.
        chat_template_args: What the chat template is given besides the turns.
        think_end_token: What ends a model's thoughts, by text or number; answers begin after it.

    Attributes:
        batch_sizes: The batch size that was used, by lm-eval's kinds of requests.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        batch_size: int | str = 1,
        ranks: Ranks = ALONE,
        progress: bool = True,
        chat_template_args: Mapping[str, Any] | None = None,
        think_end_token: str | int | None = None,
    ) -> None:
        with _keep_ties(model), _keep_mode(model), quiet():
            super().__init__(
                pretrained=model,
                tokenizer=copy.deepcopy(tokenizer),
                batch_size=batch_size,
                chat_template_args=dict(chat_template_args or {}),
                think_end_token=think_end_token,
            )
        self.ranks = ranks
        self._progress = progress
        self._asked_batch_size = batch_size
        self.batch_size_per_gpu: int | str
        self.batch_sizes: dict[str, int] = {}
        self._windows: int | None = None
        self._cut = Counter[str]()
        self._rows = _Rows()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Evaluate in this block: in evaluation mode, where texts have to be, with new counts."""
        self._device = input_device(self.model)
        self._cut = Counter[str]()
        with _keep_mode(self.model), torch.no_grad():
            self.model.eval()
            yield

    def notes(self) -> list[str]:
        """Say in sentences what all processes cut since the block began; all have to call it."""
        cut, notes = sum(self.ranks.collect(self._cut), Counter[str]()), []
        if prompts := cut["prompts"]:
            notes.append(
                f"{prompts} prompts were longer than the model's context and lost their beginning"
            )
        if answers := cut["answers"]:
            notes.append(
                f"{answers} generated answers ended at the limit of new tokens, not at a stop word"
            )
        return notes

    def tok_batch_encode(
        self, strings: list[str], *args: Any, left_truncate_len: int | None = None, **keywords: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode prompts as lm-eval does, and count those that do not fit."""
        ids, mask = super().tok_batch_encode(strings, *args, left_truncate_len=None, **keywords)
        if left_truncate_len is not None and ids.shape[1] > left_truncate_len:
            self._cut["prompts"] += int((mask.sum(1) > left_truncate_len).sum())
            ids, mask = ids[:, -left_truncate_len:], mask[:, -left_truncate_len:]
        return ids, mask

    def loglikelihood(
        self, requests: list[Any], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Score continuations as lm-eval does."""
        hidden = disable_tqdm or not self._progress
        result: list[tuple[float, bool]] = super().loglikelihood(requests, hidden)
        return result

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Generate as lm-eval does, this process's share, and get the others'."""
        lengths = [len(self.tok_encode(each.args[0])) for each in requests]

        def longest() -> int:
            answers = (longest_answer(each.args[1], self.max_gen_toks) for each in requests)
            return max(length + answer for length, answer in zip(lengths, answers, strict=True))

        answer = super().generate_until

        def run(mine: list[Any]) -> list[str]:
            self.cache_hook = rows = _Rows()
            self._rows = rows
            texts = answer(mine, disable_tqdm or not self._progress)
            void = rows.void
            return [
                VoidAnswer(text) if _asked(*each.args) in void else text
                for each, text in zip(mine, texts, strict=True)
            ]

        with self._sized("generate_until", longest) as size:

            def batches() -> list[list[int]]:
                contexts = [each.args[0] for each in requests]
                return generation_batches(
                    contexts, [each.args[1] for each in requests], lengths, size
                )

            return self._together(requests, batches, run)

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """Score whole texts as lm-eval does, this process's share of their windows.

        What the windows of the others give is added to each text.
        """

        def longest() -> int:
            return 1 + max(len(self.tok_encode(each.args[0])) for each in requests)

        self._windows = 0
        try:
            hidden = disable_tqdm or not self._progress
            with self._sized("loglikelihood_rolling", longest):
                mine = super().loglikelihood_rolling(requests, hidden)
        finally:
            self._windows = None
        return [math.fsum(parts) for parts in zip(*self.ranks.collect(mine), strict=True)]

    def _loglikelihood_tokens(
        self,
        requests: Sequence[TokenRequest],
        disable_tqdm: bool = False,
        override_bs: int | None = None,
    ) -> list[tuple[float, bool]]:
        """Score continuations as lm-eval does, this process's share, and get the others'."""
        score = super()._loglikelihood_tokens

        def run(mine: list[TokenRequest], size: int) -> list[tuple[float, bool]]:
            self._cut["prompts"] += sum(
                len(context) + len(continuation) > self.max_length + 1
                for _, context, continuation in mine
            )
            result: list[tuple[float, bool]] = score(
                mine, disable_tqdm or not self._progress, override_bs=size
            )
            return result

        if self._windows is not None:
            # A batch of windows, of which each process takes its share; see above.
            self._windows += 1
            if self.ranks.divides and self._windows % self.ranks.count != self.ranks.rank:
                return [(0.0, False)] * len(requests)
            return run(list(requests), override_bs or len(requests))

        def longest() -> int:
            return max(len(each[1]) + len(each[2]) for each in requests)

        with self._sized("loglikelihood", longest) as size:
            return self._together(
                requests, lambda: likelihood_batches(requests, size), lambda mine: run(mine, size)
            )

    def _together(
        self,
        requests: Sequence[Any],
        batches: Callable[[], list[list[int]]],
        run: Callable[[list[Any]], list[Any]],
    ) -> list[Any]:
        """Answer requests, shared among the processes.

        Args:
            requests: The requests.
            batches: Finds the positions of the requests of each batch.
            run: Answers requests.

        Returns:
            All answers, in the order of the requests, in every process.
        """
        if not self.ranks.divides:
            return run(list(requests))
        mine = [position for batch in self.ranks.share(batches()) for position in batch]
        answers = run([requests[position] for position in mine]) if mine else []
        found: dict[int, Any] = {}
        for share in self.ranks.collect(dict(zip(mine, answers, strict=True))):
            found |= share
        return [found[position] for position in range(len(requests))]

    def _model_generate(
        self, context: torch.Tensor, max_length: int, stop: list[str], **keywords: Any
    ) -> torch.Tensor:
        """Generate as lm-eval does, and count answers that neither a stop word nor EOS ended."""
        # Processes that run one model together have to run it equally often.
        keywords["synced_gpus"] = self.ranks.in_lockstep

        def has_ended(answer: list[int]) -> bool:
            text = self.tok_decode(answer)
            return self.eot_token_id in answer or any(word in text for word in stop)

        finite = FiniteLogits(context.shape[1], self.eot_token_id, has_ended)
        keywords["logits_processor"] = LogitsProcessorList([finite])
        output: torch.Tensor = super()._model_generate(context, max_length, stop, **keywords)
        self._rows.add(len(output), finite.void)
        if output.shape[1] >= max_length:
            for answer in output[:, context.shape[1] :]:
                self._cut["answers"] += not has_ended(answer.tolist())
        return output

    @contextmanager
    def _sized(self, kind: str, longest: Callable[[], int]) -> Iterator[int]:
        """Let the batch size be the given one in this block, or the one that is found now.

        Args:
            kind: lm-eval's name of the kind of request.
            longest: Finds the tokens of the longest request, generated ones included.
        """
        if self._asked_batch_size != "auto":
            self.batch_sizes[kind] = int(self._asked_batch_size)
        elif kind not in self.batch_sizes:
            length = min(longest(), self.max_length)
            found = find_batch_size(self.model, length, self.device, kind)
            self.batch_sizes[kind] = min(self.ranks.gather(found))
        asked = self.batch_size_per_gpu
        self.batch_size_per_gpu = self.batch_sizes[kind]
        try:
            yield self.batch_sizes[kind]
        finally:
            self.batch_size_per_gpu = asked


class _Rows(CacheHook):  # type: ignore[misc]
    """Which requests have void answers: lm-eval hands over every answer in the order of the rows.

    Attributes:
        void: What was asked with them.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.void: set[str] = set()
        self._flags: deque[bool] = deque()

    def add(self, count: int, void: set[int]) -> None:
        """Note which rows of a batch are void.

        Args:
            count: Rows of the batch.
            void: Those that are void.
        """
        self._flags.extend(row in void for row in range(count))

    def add_partial(self, attr: str, req: tuple[str, dict[str, Any]], res: str) -> None:
        """Take the answer of the next row; log-likelihoods tell themselves."""
        if attr == "generate_until" and self._flags.popleft():
            self.void.add(_asked(*req))


def _asked(context: str, how: dict[str, Any]) -> str:
    """Return a key for a request to generate."""
    return json.dumps([context, how], sort_keys=True, default=str)


class RequestReader(LiveModel):
    """Turns requests into tokens as lm-eval does, and answers none; needs no weights."""

    def read(self, request: Any) -> tuple[list[int], list[int]]:  # noqa: ANN401
        """Return the tokens of a context and of the continuation that is scored after it."""
        self._read: list[TokenRequest] = []
        self.loglikelihood([request], disable_tqdm=True)
        ((_, context, continuation),) = self._read
        return list(context), list(continuation)

    def _loglikelihood_tokens(
        self, requests: Sequence[TokenRequest], *_args: Any, **_keywords: Any
    ) -> list[tuple[float, bool]]:
        """Keep the requests."""
        self._read = list(requests)
        return [(0.0, False)] * len(requests)


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
