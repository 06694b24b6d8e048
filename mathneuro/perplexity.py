"""Token perplexity of held-out texts as a streaming metric."""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat


def token_losses(logits: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Negative log-likelihood of every token given those before it.

    Args:
        logits: ``[texts, tokens, vocabulary]``.
        input_ids: ``[texts, tokens]``.
        attention_mask: 1 where a token belongs to a text, ``[texts, tokens]``.

    Returns:
        Losses in nats, float32, ``[texts, tokens - 1]``; 0 where the next token is padding.
    """
    losses = cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), input_ids[:, 1:].flatten(), reduction="none"
    )
    return losses.view(len(input_ids), -1) * (attention_mask[:, 1:] != 0)


class TokenPerplexity(Metric):
    """Perplexity over all predicted tokens of a set of texts, with its standard error.

    ``exp(sum of losses / number of predicted tokens)``. The first token of a text is predicted by
    nothing and does not count. The standard error treats texts, not tokens, as independent: that of
    a ratio of two sums over texts, carried through the exponential to first order.

    Example:
        >>> metric = TokenPerplexity()
        >>> metric.update(torch.log(torch.tensor([[2.0, 2.0], [8.0, 8.0]])), torch.ones(2, 2))
        >>> {name: round(float(value), 3) for name, value in metric.compute().items()}
        {'perplexity': 4.0, 'standard_error': 2.773, 'texts': 2.0, 'tokens': 4.0}
    """

    full_state_update = False
    losses: list[Tensor]
    tokens: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        for name in ("losses", "tokens"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, losses: Tensor, predicted: Tensor) -> None:
        """Add texts.

        Args:
            losses: Loss of each token in nats, 0 where none is predicted, ``[texts, tokens]``.
            predicted: 1 where a token is predicted, ``[texts, tokens]``.
        """
        self.losses.append(losses.sum(1, dtype=torch.float64))
        self.tokens.append(predicted.sum(1, dtype=torch.float64))

    def by_text(self) -> tuple[Tensor, Tensor]:
        """Return the summed loss in nats and the number of predicted tokens of every text."""
        return dim_zero_cat(self.losses), dim_zero_cat(self.tokens)

    def compute(self) -> dict[str, Tensor]:
        """Return perplexity, its standard error, and the numbers of texts and tokens.

        The standard error of a single text is NaN: nothing is known about it.
        """
        losses, tokens = self.by_text()
        mean = losses.sum() / tokens.sum()
        perplexity, texts = mean.exp(), len(losses)
        squares = (losses - mean * tokens).square().sum()
        variance = squares * texts / (texts - 1 or math.nan) / tokens.sum() ** 2
        return {
            "perplexity": perplexity,
            "standard_error": perplexity * variance.sqrt(),
            "texts": torch.tensor(float(texts)),
            "tokens": tokens.sum(),
        }
