"""Norms of what a linear layer reads, text by text."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mathneuro.blocks import row_blocks


@dataclass(frozen=True)
class Padding:
    """Where padding stands in a batch.

    Attributes:
        texts: Which text each token of padding belongs to, in rising order.
        tokens: Which token of it that is.
        before: How many tokens of padding stand in the texts before each text, and in all.
    """

    texts: Tensor
    tokens: Tensor
    before: list[int]

    @classmethod
    def find(cls, attention_mask: Tensor) -> "Padding | None":
        """Find it in a mask that is 0 there, of shape ``[texts, tokens]``. None: there is none."""
        padding = attention_mask == 0
        texts, tokens = padding.nonzero(as_tuple=True)
        before = [0, *padding.sum(dim=1).cumsum(dim=0).tolist()]
        return cls(texts, tokens, before) if before[-1] else None

    def to(self, device: torch.device) -> "Padding":
        """Return the same on a device."""
        return Padding(self.texts.to(device), self.tokens.to(device), self.before)

    def within(self, texts: slice) -> tuple[Tensor, Tensor]:
        """Return the indices of padding in some texts, the first of which is 0."""
        inside = slice(self.before[texts.start], self.before[texts.stop])
        return self.texts[inside] - texts.start, self.tokens[inside]


def text_norms(inputs: Tensor, padding: Padding | None = None) -> Tensor:
    """Euclidean norm of every input feature over the tokens of each text.

    ``norm[s, j] = ||X_s[:, j]||_2`` (METHOD.md, "Importance"), computed in float32 whatever the
    type of the inputs.

    Args:
        inputs: Inputs of a linear layer, of shape ``[texts, tokens, features]``.
        padding: Where padding stands. What stands there never enters a norm, not even a NaN. None:
            there is no padding.

    Returns:
        Norms of shape ``[texts, features]``, float32.

    Example:
        >>> inputs = torch.tensor([[[3.0, 1.0], [4.0, 0.0], [float("nan"), 9.0]]])
        >>> text_norms(inputs, Padding.find(torch.tensor([[1, 1, 0]])))
        tensor([[5., 1.]])
    """
    norms = [_sums_of_squares(inputs, rows, padding) for rows in row_blocks(inputs)]
    return (norms[0] if len(norms) == 1 else torch.cat(norms)).sqrt_()


def _sums_of_squares(inputs: Tensor, texts: slice, padding: Padding | None) -> Tensor:
    """Return the sum of the squares of each feature over the tokens of some texts."""
    # Squares and a sum: torch's vector_norm over a middle dimension is many times slower on CPUs.
    squares = inputs[texts].to(torch.float32).square()
    if padding is not None:
        squares[padding.within(texts)] = 0
    return squares.sum(dim=1)
