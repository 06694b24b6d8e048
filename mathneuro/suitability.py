"""Whether a model can be treated, found out before anything is measured."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from mathneuro.decoder import run_decoder
from mathneuro.errors import InputError
from mathneuro.norms import InputNorms

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def check_model(
    model: "PreTrainedModel", linears: Mapping[str, nn.Linear], head_weight: str | None
) -> None:
    """Make sure, with a text of a few tokens, that importance can be measured.

    Args:
        model: The model.
        linears: The linear modules that take part, by the name of their weight.
        head_weight: Name of the head's weight, if it takes part.

    Raises:
        InputError: If a module does not see the tokens of each text once in a pass, or the head
            reads something else than the decoder's output.
    """
    # Several ids, since the embedding of a padding token may be zero, and zero proves nothing.
    tokens = min(8, model.config.get_text_config().vocab_size)
    ids = torch.arange(tokens, device=model.device).unsqueeze(0)
    mask = torch.ones_like(ids)
    norms = InputNorms(linears)
    with norms.recording(), norms.batch(mask, ["a trial text"]), torch.no_grad():
        output = run_decoder(model, ids, mask)
        if head_weight is not None:
            norms.observe(head_weight, output)
    norms.sums()
    if head_weight is not None and not torch.equal(_head_input(model, ids), output):
        raise InputError(
            f"model: the head of {type(model).__name__} does not read the decoder's output as it "
            "is, so its importance cannot be measured; this kind of model is not supported"
        )


def _head_input(model: "PreTrainedModel", ids: Tensor) -> Tensor:
    """Return what the head reads when the whole model runs."""
    read: list[Tensor] = []

    def keep(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        read.append(inputs[0])

    head: nn.Module = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(keep)
    try:
        with torch.no_grad():
            model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
    finally:
        handle.remove()
    return torch.cat(read)


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
