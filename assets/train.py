"""Train the shipped model: `python assets/train.py`.

It prints the exact-match accuracy on held-out texts at every check, and writes the model there.
"""

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import lightning
import texts
import tokenizer
import torch
from examples import Batch, Encoder
from jsonargparse import auto_cli
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TRAINING_SEED = 0
VALIDATION_SEED = 1


class Texts(IterableDataset[dict[str, Batch]]):
    """Batches of texts of both skills.

    Args:
        encoder: makes batches of texts.
        seed: of the texts.
        testing: whether to draw held-out texts.
        batch_size: how many texts of each skill a batch holds.
        most_questions: how many questions at most are asked about one language text.
        batches: how many batches there are.
    """

    def __init__(
        self,
        encoder: Encoder,
        seed: int,
        testing: bool,
        batch_size: int,
        most_questions: int,
        batches: int,
    ) -> None:
        """Keep what describes the texts."""
        self.encoder = encoder
        self.seed = seed
        self.testing = testing
        self.batch_size = batch_size
        self.most_questions = most_questions
        self.batches = batches

    def __iter__(self) -> Iterator[dict[str, Batch]]:
        """Yield one batch of each skill at a time."""
        sources = {
            "arithmetic": texts.arithmetic(self.seed, self.testing),
            "language": texts.language(self.seed, self.testing, self.most_questions),
        }
        for _ in range(self.batches):
            yield {
                skill: self.encoder.batch(list(islice(source, self.batch_size)))
                for skill, source in sources.items()
            }


class TinyModel(lightning.LightningModule):
    """A small Llama that learns to answer, with attention hints that fade away.

    Args:
        config: the architecture.
        steps: how many optimiser steps the learning rate schedule spans.
        learning_rate: the highest learning rate.
        hint_weight: how much the hints count at first; they fade to nothing at half of the steps.
    """

    def __init__(
        self, config: LlamaConfig, steps: int, learning_rate: float, hint_weight: float
    ) -> None:
        """Draw the first weights."""
        super().__init__()
        self.model = LlamaForCausalLM(config)
        self.model.set_attn_implementation("eager")  # The one that returns the attention.
        self.steps = steps
        self.learning_rate = learning_rate
        self.hint_weight = hint_weight

    def training_step(self, batch: dict[str, Batch]) -> Tensor:
        """Return the sum of both skills' losses."""
        hint_weight = self.hint_weight * max(0.0, 1 - 2 * self.global_step / self.steps)
        loss = torch.stack([self.loss(part, hint_weight) for part in batch.values()]).sum()
        self.log("loss", loss)
        return loss

    def loss(self, batch: Batch, hint_weight: float) -> Tensor:
        """Return the weighted cross entropy, plus what the attention misses of the hints."""
        output = self.model(input_ids=batch.ids, use_cache=False, output_attentions=hint_weight > 0)
        losses = cross_entropy(
            output.logits[:, :-1].flatten(0, 1).float(),
            batch.ids[:, 1:].flatten(),
            reduction="none",
        )
        weights = batch.weights[:, 1:].flatten()
        loss = (losses * weights).sum() / weights.sum()
        if hint_weight > 0:
            example, layer, head, query, key = batch.hints
            attention = torch.stack(output.attentions)[layer, example, head, query, key]
            loss = loss - hint_weight * (attention.float() + 1e-4).log().mean()
        return loss

    def validation_step(self, batch: dict[str, Batch]) -> None:
        """Log the share of answers that greedy decoding gets right to the last token."""
        for skill, (ids, weights, _) in batch.items():
            guesses = self.model(input_ids=ids, use_cache=False).logits[:, :-1].argmax(-1)
            right = (guesses == ids[:, 1:]) | (weights[:, 1:] < 1)
            self.log(f"{skill} accuracy", right.all(dim=1).float().mean(), batch_size=len(ids))

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Return AdamW with a warm-up and a cosine decay; norms do not decay."""
        parameters = list(self.model.parameters())
        optimizer = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
                {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
            ],
            lr=self.learning_rate,
            betas=(0.9, 0.98),
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.learning_rate_factor)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def learning_rate_factor(self, step: int) -> float:
        """Return the share of the highest learning rate at a step."""
        return min(1.0, (step + 1) / 200) * (0.51 + 0.49 * math.cos(math.pi * step / self.steps))


class Save(lightning.Callback):
    """Writes the model as a folder for transformers at every check.

    Args:
        folder: where to.
        model: the model to write.
        tokenizer: the tokenizer to write beside it.
    """

    def __init__(
        self, folder: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast
    ) -> None:
        """Keep what is to be written."""
        self.folder = folder
        self.model = model
        self.tokenizer = tokenizer

    def on_validation_epoch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Print the accuracies and save the model."""
        metrics = (f"{name} {float(value):.3f}" for name, value in trainer.callback_metrics.items())
        print(f"step {trainer.global_step}:", ", ".join(metrics), flush=True)
        self.model.save_pretrained(self.folder)
        self.tokenizer.save_pretrained(self.folder)


def architecture(words: PreTrainedTokenizerFast) -> LlamaConfig:
    """Return the architecture: 4 blocks, 128 wide, input and output embedding tied."""
    return LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        pad_token_id=words.pad_token_id,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
    )


def train(
    output: Path = Path(__file__).parent / "tiny-math",
    steps: int = 4000,
    check_every: int = 200,
    batch_size: int = 32,
    most_questions: int = 4,
    learning_rate: float = 2e-3,
    hint_weight: float = 0.3,
    threads: int = 1,
    seed: int = 0,
) -> None:
    """Train the model and write it.

    Args:
        output: folder for the model and its tokenizer.
        steps: how many optimiser steps.
        check_every: how many steps lie between two checks on held-out texts.
        batch_size: how many texts of each skill a step sees.
        most_questions: how many questions at most are asked about one language text.
        learning_rate: the highest learning rate.
        hint_weight: how much attention hints count at first.
        threads: how many processor threads to use.
        seed: of the first weights.
    """
    torch.set_num_threads(threads)
    lightning.seed_everything(seed, verbose=False)
    words = tokenizer.build()
    encoder = Encoder(words)
    model = TinyModel(architecture(words), steps, learning_rate, hint_weight)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=steps,
        val_check_interval=check_every,
        precision="bf16-mixed",
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
        callbacks=[Save(output, model.model, words)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    training = Texts(encoder, TRAINING_SEED, False, batch_size, most_questions, steps)
    validation = Texts(encoder, VALIDATION_SEED, True, 300, 1, 1)
    trainer.fit(
        model, DataLoader(training, batch_size=None), DataLoader(validation, batch_size=None)
    )


if __name__ == "__main__":
    auto_cli(train, as_positional=False)
