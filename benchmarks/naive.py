"""The method as it was first published: weight-sized sums, one text after the other.

For every text each weight's scores are added to a buffer of the weight's size, in bfloat16, and for
every setting of a grid the texts are read anew.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mathneuro.weights import Weight

Sums = dict[str, Tensor]


def add_up(
    model: PreTrainedModel,
    weights: Mapping[str, Weight],
    texts: Sequence[Sequence[int]],
    dtype: torch.dtype = torch.bfloat16,
) -> Sums:
    """Add up the scores of every parameter over texts.

    Args:
        model: The model.
        weights: The weights that take part: of plain linear layers alone.
        texts: The tokens of each text.
        dtype: Type of the sums.
    """
    sums = {
        name: torch.zeros(each.matrix.shape, dtype=dtype, device=each.matrix.device)
        for name, each in weights.items()
    }
    handles = [
        each.module.register_forward_hook(partial(_add, each, sums[name]))
        for name, each in weights.items()
    ]
    try:
        with torch.no_grad():
            for tokens in texts:
                model(input_ids=torch.tensor([list(tokens)], device=model.device))
    finally:
        for handle in handles:
            handle.remove()
    return sums


def _add(
    weight: Weight, total: Tensor, _module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor
) -> None:
    norms = torch.linalg.vector_norm(inputs[0].flatten(0, 1), dim=0)
    total += (weight.matrix.detach().abs() * norms).to(total.dtype)


def select(math: Sums, calibration: Sums, proportion: float) -> dict[str, Tensor]:
    """Select what is in the top for math and not in that for calibration, by `torch.topk`.

    Returns:
        The flat positions in each weight.
    """
    positions = {}
    for name, scores in math.items():
        count = int(scores.numel() * proportion)
        mask = torch.zeros(scores.numel(), dtype=torch.bool, device=scores.device)
        mask[scores.flatten().topk(count).indices] = True
        mask[calibration[name].flatten().topk(count).indices] = False
        positions[name] = mask.nonzero().flatten()
    return positions
