"""Running a model's decoder without its head."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def run_decoder(model: "PreTrainedModel", input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Run the decoder alone: no head's matrix product, no key-value cache.

    Args:
        model: A causal language model.
        input_ids: ``[texts, tokens]``.
        attention_mask: 1 where a token belongs to a text, ``[texts, tokens]``.

    Returns:
        The decoder's output, ``[texts, tokens, hidden]``: what the head reads.
    """
    decoder: nn.Module = model.get_decoder()
    output: Tensor = decoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)[0]
    return output


def check_head(model: "PreTrainedModel") -> None:
    """Make sure that the head reads the decoder's output as it is, with a text of a few tokens.

    Identification relies on it: it takes the decoder's output for the head's input.

    Raises:
        InputError: If the model changes the decoder's output before the head reads it.
    """
    read: list[Tensor] = []

    def keep(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        read.append(inputs[0])

    # Several ids, since the embedding of a padding token may be zero, and zero proves nothing.
    tokens = min(8, model.config.get_text_config().vocab_size)
    ids = torch.arange(tokens, device=model.device).unsqueeze(0)
    head: nn.Module = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(keep)
    try:
        with torch.no_grad():
            model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
            output = run_decoder(model, ids, torch.ones_like(ids))
    finally:
        handle.remove()
    if len(read) != 1 or not torch.equal(read[0], output):
        raise InputError(
            f"model: the head of {type(model).__name__} does not read the decoder's output as it "
            "is, so its importance cannot be measured; this kind of model is not supported"
        )


def position_table(model: "PreTrainedModel") -> int | None:
    """Return how many positions a model has learned; None if it computes them.

    A table of positions is an embedding of one row for each, besides the rows that some families
    keep before the first.
    """
    length: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and ("position" in name or name.endswith("wpe")):
            return length
    return None
