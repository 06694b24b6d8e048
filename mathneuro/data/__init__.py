"""From files to batches of tokens: sets of texts, draws, held-out texts, tokens, batches."""

from mathneuro.data.spec import TextSet

__all__ = ["TextSet"]
