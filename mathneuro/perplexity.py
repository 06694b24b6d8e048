"""Token perplexity of held-out texts as a streaming metric."""

import math
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from mathneuro.blocks import row_blocks


def token_losses(logits: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Negative log-likelihood of every token given those before it.

    Args:
        logits: ``[texts, tokens, vocabulary]``.
        input_ids: ``[texts, tokens]``.
        attention_mask: 1 where a token belongs to a text, ``[texts, tokens]``.

    Returns:
        Losses in nats, float32, ``[texts, tokens - 1]``; 0 where the next token is padding.
    """
    # A whole batch's logits are the largest tensor of all: they are neither cut, which would copy
    # them, nor converted at once. So a text's last token predicts something too, which is left out.
    flat, following = logits.flatten(0, 1), input_ids.roll(-1, dims=1).flatten()
    losses = torch.cat([_losses(flat[rows].float(), following[rows]) for rows in row_blocks(flat)])
    return losses.view(input_ids.shape)[:, :-1] * (attention_mask[:, 1:] != 0)


def _losses(logits: Tensor, following: Tensor) -> Tensor:
    """Negative log-likelihood of one token a row.

    ``cross_entropy`` adds the terms of a large vocabulary one after another on a CPU, so that small
    ones are lost: losses are up to 1e-5 (relative) too low at 150,000 tokens.
    """
    return logits.logsumexp(-1) - logits.gather(-1, following[:, None]).squeeze(-1)


class TokenPerplexity(Metric):
    """Perplexity over all predicted tokens of a set of texts, with its standard error.

    With several processes `compute` brings the texts of all together; it does not matter which
    process saw which, nor in what order.

    ``exp(sum of losses / number of predicted tokens)``. The first token of a text is predicted by
    nothing and does not count. The standard error treats texts, not tokens, as independent: that of
    a ratio of two sums over texts, carried through the exponential to first order.

    Example:
        >>> metric = TokenPerplexity()
        >>> metric.update(torch.log(torch.tensor([[2.0, 2.0], [8.0, 8.0]])), torch.ones(2, 2))
        >>> found = metric.compute()
        >>> round(float(found["perplexity"]), 3), round(float(found["standard_error"]), 3)
        (4.0, 2.773)
        >>> found["tokens"]
        tensor([2., 2.], dtype=torch.float64)
    """

    full_state_update = False
    losses: list[Tensor]
    tokens: list[Tensor]
    positions: list[Tensor]

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        for name in ("losses", "tokens", "positions"):
            self.add_state(name, [], dist_reduce_fx="cat")
        # A process without a text must know of the states' type, to hear of other processes'.
        self.update(torch.zeros(0, 0), torch.zeros(0, 0))

    def update(self, losses: Tensor, predicted: Tensor, positions: Tensor | None = None) -> None:
        """Add texts.

        Args:
            losses: Loss of each token in nats, 0 where none is predicted, ``[texts, tokens]``.
            predicted: 1 where a token is predicted, ``[texts, tokens]``.
            positions: Where each text stands among all, ``[texts]``. None: after those before.
        """
        if positions is None:
            before = sum(map(len, self.positions))
            positions = torch.arange(before, before + len(losses), device=losses.device)
        self.losses.append(losses.sum(1, dtype=torch.float64))
        self.tokens.append(predicted.sum(1, dtype=torch.float64))
        self.positions.append(positions)

    def compute(self) -> dict[str, Tensor]:
        """Return what was measured.

        Returns:
            ``perplexity``; its ``standard_error``, which of a single text is NaN, as nothing is
            known about it; and by text, in the order of their positions, the summed ``losses`` in
            nats and the number of predicted ``tokens``.
        """
        order = dim_zero_cat(self.positions).argsort()
        losses, tokens = dim_zero_cat(self.losses)[order], dim_zero_cat(self.tokens)[order]
        mean = losses.sum() / tokens.sum()
        perplexity, texts = mean.exp(), len(losses)
        squares = (losses - mean * tokens).square().sum()
        variance = squares * texts / (texts - 1 or math.nan) / tokens.sum() ** 2
        return {
            "perplexity": perplexity,
            "standard_error": perplexity * variance.sqrt(),
            "losses": losses,
            "tokens": tokens,
        }
