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
from transformers import LogitsProcessorList, StoppingCriteriaList

from mathneuro.answer_ends import AnswerEnds
from mathneuro.batch_size import find_batch_size
from mathneuro.decoder import context_length, input_device
from mathneuro.errors import InputError
from mathneuro.evaluation import quiet
from mathneuro.ranks import ALONE, Ranks
from mathneuro.request_batches import TokenRequest, generation_batches, likelihood_batches
from mathneuro.tasks import longest_answer
from mathneuro.void import FiniteLogits, VoidAnswer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


UNLIMITED = 2**31 - 1
"""The context of a model that has no limit."""


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
        if isinstance(think_end_token, str) and think_end_token in tokenizer.all_special_tokens:
            # Answers are decoded without special tokens.
            think_end_token = tokenizer.get_vocab()[think_end_token]
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
        self._long = set[str]()
        self._merged = set[tuple[str, str]]()
        self._rows = _Rows()

    @property
    def max_length(self) -> int:
        """The longest text that the model reads, in tokens; lm-eval assumes 2,048 if none is told.

        Models without attention have no limit.
        """
        return context_length(self.model.config) or UNLIMITED

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Evaluate in this block: in evaluation mode, where texts have to be, with new counts."""
        self._device = input_device(self.model)
        self._cut = Counter[str]()
        self._long = set()
        self._merged = set()
        with _keep_mode(self.model), torch.no_grad():
            self.model.eval()
            yield

    def notes(self) -> list[str]:
        """Say in sentences what all processes cut since the block began; all have to call it."""
        cut, notes = sum(self.ranks.collect(self._cut), Counter[str]()), []
        if long := len(set().union(*self.ranks.collect(self._long))):
            notes.append(
                f"{long} prompts were longer than the model's context and lost their beginning"
            )
        if merged := cut["merged"]:
            notes.append(
                f"the choices of {merged} questions were encoded apart from their prompts, since "
                "the tokenizer merges the end of a prompt with the beginning of a choice"
            )
        if answers := cut["answers"]:
            notes.append(
                f"{answers} generated answers ended at the limit of new tokens, not at a stop word"
            )
        return notes

    def tok_batch_encode(
        self,
        strings: Sequence[str],
        padding_side: str = "left",
        left_truncate_len: int | None = None,
        truncation: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode prompts, each as if it were alone, and note those that do not fit."""
        if padding_side != "left":
            raise ValueError("Expected prompts to be padded on the left.")
        prompts = [self._prompt_tokens(text) for text in strings]
        most = left_truncate_len or max(map(len, prompts))
        self._long.update(
            text for text, tokens in zip(strings, prompts, strict=True) if len(tokens) > most
        )
        length = min(most, max(map(len, prompts)))
        ids = torch.full((len(prompts), length), self.tokenizer.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(prompts):
            kept = tokens[-length:]
            ids[row, length - len(kept) :] = torch.tensor(kept)
            mask[row, length - len(kept) :] = 1
        return ids, mask

    def loglikelihood(
        self, requests: list[Any], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Score continuations as lm-eval does, each over tokens of its own."""
        pairs = [self._encode_pair(*each.args) for each in requests]
        for each, (_, continuation) in zip(requests, pairs, strict=True):
            if not continuation:
                raise InputError(
                    f"lm_eval.tasks: a choice of question {each.doc_id} of {each.task_name} has no "
                    f"tokens ({each.args[1]!r}), so that it cannot be scored; correct the task's "
                    "choices, or leave the task out"
                )
        if self.ranks.rank == 0:
            # Every process encodes all requests.
            self._cut["merged"] += len(
                {
                    (each.task_name, each.doc_id)
                    for each in requests
                    if tuple(each.args) in self._merged
                }
            )
        asked = [(tuple(each.args), *pair) for each, pair in zip(requests, pairs, strict=True)]
        return self._loglikelihood_tokens(asked, disable_tqdm)

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Encode a prompt and what is scored after it.

        Spaces between both belong to the latter, as lm-eval has it. Where the tokenizer merges the
        end of a prompt with the beginning of a choice, lm-eval scores what the choice has left, if
        anything; here the choice is encoded by itself.
        """
        spaces = context[len(context.rstrip()) :]
        prompt, scored = context.rstrip(), spaces + continuation
        first = self._prompt_tokens(prompt) if prompt else []
        if not first:
            tokens = self.tok_encode(scored, add_special_tokens=False)
            begins = len(tokens) > 1 and tokens[0] == self.prefix_token_id
            return (tokens[:1], tokens[1:]) if begins else ([self.prefix_token_id], tokens)
        whole = self._prompt_tokens(prompt + scored)
        if len(whole) > len(first) and whole[: len(first)] == first:
            return first, whole[len(first) :]
        self._merged.add((context, continuation))
        return first, self._tokens_alone(scored)

    def _prompt_tokens(self, text: str) -> list[int]:
        """Encode a text that goes on: without the end that some tokenizers add."""
        tokens: list[int] = self.tok_encode(text)
        ends = self.tokenizer.eos_token_id
        added = tokens[-1:] == [ends] and not text.endswith(self.tokenizer.eos_token)
        return tokens[:-1] if added else tokens

    def _tokens_alone(self, text: str) -> list[int]:
        """Encode a text as it would be after others, where some tokenizers put no space first."""
        anchor, whole = (
            self.tok_encode(each, add_special_tokens=False) for each in ("\n", f"\n{text}")
        )
        if whole[: len(anchor)] == anchor:
            return list(whole[len(anchor) :])
        return list(self.tok_encode(text, add_special_tokens=False))

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
            self._long.update(
                texts[0]
                for texts, context, continuation in mine
                if len(context) + len(continuation) > self.max_length + 1
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
        """Generate as lm-eval does, each row up to its own end; count those that had none."""
        # Processes that run one model together have to run it equally often.
        keywords["synced_gpus"] = self.ranks.in_lockstep
        beams = keywords.get("num_beams") or self.model.generation_config.num_beams or 1
        ends = AnswerEnds(
            self.tokenizer, stop, self._end_tokens, context.shape[1], self.think_end_token
        )
        finite = FiniteLogits(self.eot_token_id, ends.lengths, beams)
        keywords["logits_processor"] = LogitsProcessorList([finite])
        if beams > 1:
            # Beams change places, so that their ends are lm-eval's to find.
            output: torch.Tensor = super()._model_generate(context, max_length, stop, **keywords)
            for row, answer in enumerate(output[:, context.shape[1] :].tolist()):
                text = self.tok_decode(answer, skip_special_tokens=False)
                if any(word in text for word in stop) or self._end_tokens.intersection(answer):
                    ends.lengths[row] = len(answer)
        else:
            output = self._generate(context, max_length, ends, keywords)
        self._rows.add(len(output), finite.void)
        self._cut["answers"] += len(output) - len(ends.lengths)
        return output

    def _generate(
        self, context: torch.Tensor, max_length: int, ends: AnswerEnds, keywords: dict[str, Any]
    ) -> torch.Tensor:
        """Generate one answer a row, and leave nothing after its end."""
        keywords = {"temperature": 0.0} | keywords
        if keywords["temperature"] == 0.0 and not keywords.setdefault("do_sample", False):
            del keywords["temperature"]
        output: torch.Tensor = self.model.generate(
            input_ids=context,
            max_length=max_length,
            stopping_criteria=StoppingCriteriaList([ends]),
            pad_token_id=self.tokenizer.pad_token_id,
            use_cache=True,
            **keywords,
        )
        for row, answer in enumerate(output[:, context.shape[1] :].tolist()):
            kept = ends.kept(row, answer)
            # lm-eval cuts at this token's text, also where the tokenizer does not call it special.
            output[row, context.shape[1] + len(kept) :] = self.eot_token_id
        return output

    @property
    def _end_tokens(self) -> frozenset[int]:
        """All tokens that end an answer; chat models have several."""
        ends = self.model.generation_config.eos_token_id
        several = ends if isinstance(ends, list) else [ends]
        return frozenset(token for token in (*several, self.eot_token_id) if token is not None)

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
