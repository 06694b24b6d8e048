"""Running a model's decoder without its head, and trying out what a model does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from lightning.pytorch.utilities.memory import is_oom_error
from torch import Tensor, nn

from mathneuro.errors import InputError
from mathneuro.storage import run_device

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


def find_decoder(model: "PreTrainedModel") -> nn.Module:
    """Return the decoder of a causal language model: the model without its head.

    transformers takes whatever is called ``decoder`` for it, which in some families is the head.
    """
    decoder: nn.Module = model.get_decoder()
    if decoder is model.get_output_embeddings() or not hasattr(decoder, "config"):
        base: nn.Module = model.base_model
        return base
    return decoder


def context_length(config: "PreTrainedConfig") -> int | None:
    """Return the longest text that a model was made for, in tokens; None: its config has no limit.

    Args:
        config: The model's config; in a multimodal model the language model's counts.
    """
    text_config = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "n_ctx"):
        length = getattr(text_config, name, None)
        if length is not None:
            return int(length)
    return None


def input_device(model: "PreTrainedModel") -> torch.device:
    """Return the device that texts have to be on: where the model looks their tokens up."""
    embedding: nn.Module = model.get_input_embeddings()
    return run_device(embedding)


@contextmanager
def trial(model: nn.Module, part: str, consequence: str) -> Iterator[None]:
    """Run parts of a model in this block to find out what they do, without gradients.

    A model is a program of somebody else's, and can raise anything.

    Args:
        model: The model.
        part: What is tried, for the message; empty: the model.
        consequence: What a failure means, for the message.

    Raises:
        InputError: If something of the model fails.
    """
    try:
        with torch.no_grad():
            yield
    except InputError:
        raise
    except Exception as error:
        if is_oom_error(error):
            # That tells nothing of the model.
            raise
        lines = str(error).strip().splitlines() or [""]
        raise InputError(
            f"model: a trial pass of {part}{type(model).__name__} failed ({type(error).__name__}: "
            f"{lines[0]}), so that {consequence}"
        ) from error


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
