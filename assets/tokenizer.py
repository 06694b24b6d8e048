"""The word-level tokenizer of the shipped model: one token a word, a digit or a sign."""

from itertools import chain, islice

import texts
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<pad>", "<eos>", "<unk>")


def build() -> PreTrainedTokenizerFast:
    """Return the tokenizer for all words that the generated texts use."""
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    sample = chain(
        islice(texts.arithmetic(0, testing=False), 4000),
        islice(texts.language(0, testing=False), 4000),
    )
    words = {word for item in sample for word, _ in split.pre_tokenize_str(item.text())}
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = split
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
