"""Tiny real tokenizers, folders of models without weights, and files of texts."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils.data import DataLoader
from transformers import LlamaConfig, PreTrainedTokenizerFast

from mathneuro.data import TextSet
from mathneuro.data.batches import Batch
from mathneuro.data.draws import Draw
from mathneuro.data.module import TextDataModule
from mathneuro.data.reading import Text
from mathneuro.data.sets import DrawnSet
from mathneuro.module import CausalLanguageModel

BEGIN, END, UNKNOWN, PAD = 0, 1, 2, 3
SPECIAL = {"<s>": BEGIN, "</s>": END, "<unk>": UNKNOWN, "<pad>": PAD}
WORDS = {word: number for number, word in enumerate(["a", "b", "c", "d", "e", "user"], start=4)}
A, B, C = WORDS["a"], WORDS["b"], WORDS["c"]

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %} {{ message.role }} {{ message.content }}"
    "{% endfor %}"
)
"""Writes its own token for the beginning."""


def make_tokenizer(
    template: str = "<s> $A </s>", pad: str | None = "<pad>", side: str = "right"
) -> PreTrainedTokenizerFast:
    """Build a word-level tokenizer.

    Args:
        template: Where it adds special tokens of its own accord.
        pad: Its token for padding. None: it has none.
        side: Its padding side.
    """
    base = Tokenizer(models.WordLevel({**SPECIAL, **WORDS}, unk_token="<unk>"))
    base.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    used = [("<s>", BEGIN), ("</s>", END)]
    base.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    return PreTrainedTokenizerFast(
        tokenizer_object=base,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token=pad,
        padding_side=side,
    )


def only(drawn: DrawnSet) -> Draw:
    """Return the one draw from a set."""
    (draw,) = drawn.draws.values()
    return draw


def make_text(text: str, row: int = 0) -> Text:
    """Make a text as a set with one column has it."""
    return Text(row, text, (("user", text),))


def make_texts(*texts: str) -> tuple[Text, ...]:
    """Make texts in consecutive rows."""
    return tuple(make_text(text, row) for row, text in enumerate(texts))


def write_csv(path: Path, texts: Iterable[str], column: str = "qa") -> str:
    """Write texts as the only column of a CSV file and return its path."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column])
        writer.writerows([text] for text in texts)
    return str(path)


def words(number: int) -> list[str]:
    """Make so many different texts, each of another number of words."""
    return [" ".join("abcde"[(index + i) % 5] for i in range(index + 1)) for index in range(number)]


def save_model_folder(
    folder: Path, tokenizer: PreTrainedTokenizerFast, vocabulary: int = len(SPECIAL) + len(WORDS)
) -> Path:
    """Save config and tokenizer of a model, but no weights: data must be told of without them."""
    LlamaConfig(vocab_size=vocabulary, hidden_size=8, num_attention_heads=1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def set_up(data: TextDataModule, folder: Path, stages: Sequence[str] = ("predict",)) -> None:
    """Set data up as a Trainer does before it loads the model's weights."""
    trainer = Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    trainer.strategy.connect(CausalLanguageModel(str(folder)))
    data.trainer = trainer
    for stage in stages:
        data.setup(stage)


def make_data(
    math: str | TextSet,
    other: str | TextSet | None = None,
    **fields: Any,
) -> TextDataModule:
    """Make data of a math set and, if there is another set, the calibration set ``other``."""
    calibration = {} if other is None else {"other": as_set(other)}
    settings = {"num_samples": 40, "held_out": 5, "batch_size": 4} | fields
    return TextDataModule(as_set(math), calibration, **settings)


def as_set(given: str | TextSet) -> TextSet:
    """Return a set; a text is the path of one."""
    return TextSet(given) if isinstance(given, str) else given


def batches(loader: DataLoader[Batch]) -> list[dict[str, Any]]:
    """Return the batches of a loader with plain values in place of tensors."""
    return [
        {name: value if name == "names" else value.tolist() for name, value in batch.items()}
        for batch in loader
    ]


def texts_of(data: TextDataModule, name: str = "math") -> tuple[set[str], set[str]]:
    """Return the texts for identification, and those held out."""
    drawn = data.drawn[name]
    return {text.text for text in drawn.texts}, {text.text for text in drawn.held_out}
