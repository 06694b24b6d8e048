"""How many requests of an evaluation fit into one forward pass."""

from typing import TYPE_CHECKING, cast

import torch

from mathneuro.data.budget import MOST, MOST_ELSEWHERE, fits_in_memory
from mathneuro.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

MOST_REQUESTS = 64
"""What is tried first if that many requests are short; more are hardly faster."""


def find_batch_size(model: "PreTrainedModel", longest: int, device: torch.device, kind: str) -> int:
    """Find how many requests fit into a batch, by halves.

    A CPU does not run out of memory but takes the whole machine with it, so that nothing is tried
    there: a batch holds as many tokens as a batch of identification at most.

    Args:
        model: The model, in evaluation mode.
        longest: Tokens of the longest request, generated ones included.
        device: Where the requests go.
        kind: lm-eval's name of the kind of request.

    Raises:
        InputError: If not even one request fits.
    """
    size = min(MOST_REQUESTS, max(1, MOST.get(device.type, MOST_ELSEWHERE) // longest))
    while device.type != "cpu" and not _fits(model, size, longest, device, kind):
        if size == 1:
            raise InputError(
                f"lm_eval.batch_size: the longest request has {longest:,} tokens, which do not fit "
                "on the device even by themselves; use fewer examples or shorter answers, or "
                "spread the model over several devices"
            )
        size //= 2
    return size


def _fits(
    model: "PreTrainedModel", size: int, longest: int, device: torch.device, kind: str
) -> bool:
    """Tell whether a batch of the longest request fits: run it as an evaluation does."""
    tokens = torch.ones((size, longest), dtype=torch.long, device=device)

    @torch.no_grad()
    def run() -> None:
        if kind == "generate_until":
            mask = torch.ones_like(tokens)
            generate = cast("Callable[..., torch.Tensor]", model.generate)
            generate(tokens, attention_mask=mask, max_new_tokens=1, do_sample=False)
        else:
            torch.log_softmax(model(tokens, use_cache=False).logits, dim=-1)

    return fits_in_memory(run)
