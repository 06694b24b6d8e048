"""What the benchmarks measure: the shipped model with its texts and tasks, or a random model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import Callback

from callbacks import LMEval
from mathneuro.data import TextSet
from mathneuro.data.module import TextDataModule
from mathneuro.module import CausalLanguageModel
from mathneuro.trainer import MathNeuroTrainer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ASSETS = Path(__file__).parent.parent / "assets"
MODEL = ASSETS / "tiny-math"
MATH = TextSet(str(ASSETS / "data" / "arithmetic_train.jsonl"))
LANGUAGE = TextSet(str(ASSETS / "data" / "language_train.jsonl"))
OTHER = TextSet(str(ASSETS / "data" / "language_test.jsonl"))


def random_llama(parameters: int) -> "PreTrainedModel":
    """Build a Llama of about so many parameters with random weights, shaped like SmolLM2-135M."""
    from transformers import LlamaConfig, LlamaForCausalLM

    hidden = max(64, round((parameters / 400) ** 0.5 / 64) * 64)
    config = LlamaConfig(
        vocab_size=49152 if parameters > 5e7 else 512,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3,
        num_hidden_layers=30 if parameters > 5e7 else 4,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(1, hidden // 192),
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    model.requires_grad_(False)
    model.train(False)
    return model


def load(parameters: int | None) -> CausalLanguageModel:
    """Load the shipped model, or a random Llama of about so many parameters in its place."""
    module = CausalLanguageModel(str(MODEL))
    if parameters is not None:
        torch.manual_seed(0)
        module.model = random_llama(parameters)
    module.configure_model()
    return module.to("cuda" if torch.cuda.is_available() else "cpu")


def name_of(module: CausalLanguageModel) -> str:
    """Name a model and how it runs."""
    kind = "cuda" if torch.cuda.is_available() else f"{torch.get_num_threads()} threads"
    return f"{module.candidates.total / 1e6:.1f} M, {kind}"


def texts(num_samples: int, batch_size: int) -> TextDataModule:
    """Return so many different math and language texts."""
    return TextDataModule(
        MATH,
        {"language": LANGUAGE},
        num_samples=num_samples,
        replacement=False,
        batch_size=batch_size,
        held_out=0,
    )


def shipped_tasks(limit: int | None, batch_size: int) -> LMEval:
    """Return an evaluation of both tasks that come with the shipped model."""
    return LMEval(
        ["tiny_arithmetic", "tiny_language"],
        [ASSETS / "tasks"],
        limit=limit,
        batch_size=batch_size,
    )


def silent_trainer(callbacks: list[Callback], **settings: Any) -> MathNeuroTrainer:
    """Return a Trainer that neither prints nor logs."""
    return MathNeuroTrainer(
        callbacks=callbacks,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        use_distributed_sampler=False,
        inference_mode=False,
        **settings,
    )
