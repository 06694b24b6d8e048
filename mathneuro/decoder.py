"""Running a model's decoder without its head."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def find_decoder(model: "PreTrainedModel") -> nn.Module:
    """Return the decoder of a causal language model: the model without its head.

    transformers takes whatever is called ``decoder`` for it, which in some families is the head.
    """
    decoder: nn.Module = model.get_decoder()
    if decoder is model.get_output_embeddings() or not hasattr(decoder, "config"):
        base: nn.Module = model.base_model
        return base
    return decoder


def run_decoder(model: "PreTrainedModel", input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Run the decoder alone: no head's matrix product, no key-value cache.

    Args:
        model: A causal language model.
        input_ids: ``[texts, tokens]``.
        attention_mask: 1 where a token belongs to a text, ``[texts, tokens]``.

    Returns:
        The decoder's output, ``[texts, tokens, hidden]``: what the head reads.
    """
    decoder = find_decoder(model)
    output: Tensor = decoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)[0]
    return output
