"""Tiny real models, built offline, and the files that go with them."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

GOLDEN = Path(__file__).parent / "fixtures" / "golden"

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sees",
    "likes",
    "red",
    "blue",
    "1",
    "2",
    "3",
    "4",
    "5",
    "+",
    "-",
    "=",
    "?",
    ".",
    "Question:",
    "Answer:",
]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Build the same models in every test, whatever ran before."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _interruptions_are_heard() -> Iterator[None]:
    """Also where tests are a job in the background, for which shells ignore interruptions."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """A word-level tokenizer without special tokens of its own accord."""
    vocabulary = {word: index for index, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    base = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    base.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=base, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def make_llama(tied: bool, **changes: Any) -> PreTrainedModel:
    """Build a Llama of two blocks with random weights."""
    settings: dict[str, Any] = {
        "vocab_size": len(WORDS) + 3,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 64,
        "tie_word_embeddings": tied,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 1,
        "initializer_range": 0.3,
    }
    model = LlamaForCausalLM(LlamaConfig(**settings | changes))
    model.train(False)
    return model


@pytest.fixture
def tied_llama() -> PreTrainedModel:
    """A Llama whose head is its embedding."""
    return make_llama(tied=True)


@pytest.fixture
def untied_llama() -> PreTrainedModel:
    """A Llama with a head of its own."""
    return make_llama(tied=False)


@pytest.fixture
def phi() -> PreTrainedModel:
    """A Phi: biases, parallel attention and MLP, a head of its own."""
    model = PhiForCausalLM(
        PhiConfig(
            vocab_size=len(WORDS) + 3,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=64,
            initializer_range=0.3,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=1,
        )
    )
    model.train(False)
    return model


@pytest.fixture
def opt() -> PreTrainedModel:
    """An OPT: its MLPs get texts and tokens in one dimension."""
    model = OPTForCausalLM(
        OPTConfig(
            vocab_size=len(WORDS) + 3,
            hidden_size=16,
            word_embed_proj_dim=16,
            ffn_dim=24,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=64,
            init_std=0.3,
            pad_token_id=1,
        )
    )
    model.train(False)
    return model


@pytest.fixture
def model_folder(
    tmp_path: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> Path:
    """A Hugging Face folder with a tiny Llama and its tokenizer."""
    folder = tmp_path / "tiny-llama"
    tied_llama.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def text_files(tmp_path: Path) -> dict[str, Path]:
    """A math set and a calibration set of twelve texts each, of several lengths."""
    math = [
        f"Question: {a} + {b} = ? Answer: {a}" + " ." * a for a in (1, 2, 3) for b in range(1, 5)
    ]
    words = [f"the {c} {n} sees a {m}" for c in ("red", "blue") for n in ("cat", "dog", "a")
             for m in ("cat", "dog ?")]  # fmt: skip
    files = {}
    for name, texts in (("math", math), ("language", words)):
        files[name] = tmp_path / f"{name}.csv"
        files[name].write_text("qa\n" + "".join(f"{text}\n" for text in texts))
    return files


TASK = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
{extra}
metadata:
  version: 1.0
"""

GENERATE = """\
generation_kwargs:
  until: ["."]
  max_gen_toks: 3
  do_sample: false
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""

CHOOSE = """\
doc_to_choice: ["cat", "dog"]
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""


ROLLING = """\
task: tiny_rolling
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{{{question}}}}"
metric_list:
  - metric: word_perplexity
metadata:
  version: 1.0
"""


@pytest.fixture
def task_folder(tmp_path: Path) -> Path:
    """Three lm-eval tasks on local files: one generates, one chooses, one scores whole texts."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    data = folder / "questions.jsonl"
    rows = [
        f'{{"question": "the {colour} cat sees {end}", "answer": "{answer}"}}\n'
        for colour in ("red", "blue")
        for end in ("a", "the", "the red")
        for answer in ("cat", "dog")
    ]
    data.write_text("".join(rows))
    tasks = {
        "tiny_generate": ("generate_until", GENERATE),
        "tiny_choose": ("multiple_choice", CHOOSE),
    }
    for name, (kind, extra) in tasks.items():
        text = TASK.format(name=name, data=data, kind=kind, extra=extra)
        (folder / f"{name}.yaml").write_text(text)
    (folder / "tiny_rolling.yaml").write_text(ROLLING.format(data=data))
    return folder


@pytest.fixture
def arguments(
    model_folder: Path, text_files: dict[str, Path], task_folder: Path, tmp_path: Path
) -> list[str]:
    """Arguments of a whole run on the tiny model, tasks included, without the command."""
    return [
        f"--model.source={model_folder}",
        f"--data.math.path={text_files['math']}",
        f"--data.calibration={{language: {{path: {text_files['language']}}}}}",
        "--data.num_samples=20",
        "--data.held_out=3",
        "--data.batch_size=4",
        "--selection.proportion=0.1",
        f"--lm_eval.task_folders=[{task_folder}]",
        "--lm_eval.tasks=[tiny_generate, tiny_choose]",
        "--lm_eval.batch_size=4",
        f"--folder={tmp_path / 'run'}",
        "--trainer.accelerator=cpu",
    ]
