"""The masks of the published method on two tiny models, which ours must equal exactly."""

import csv
import json
import random
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from safetensors import safe_open

from callbacks import AccumulateImportance
from mathneuro.data import TextSet
from mathneuro.data.module import TextDataModule
from mathneuro.importance import Importance
from mathneuro.methods import select
from mathneuro.module import CausalLanguageModel
from mathneuro.selection import Selection
from tests.conftest import GOLDEN

PROPORTIONS = (0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15)


def shuffled(source: Path, target: Path, seed: int) -> Path:
    """Copy a CSV file with its rows in another order."""
    with source.open(newline="") as opened:
        header, *rows = list(csv.reader(opened))
    random.Random(seed).shuffle(rows)
    with target.open("w", newline="") as opened:
        csv.writer(opened).writerows([header, *rows])
    return target


def measure(
    name: str, folder: Path, batch_size: int, side: str, pad: str | None, seed: int | None
) -> tuple[Importance, CausalLanguageModel]:
    """Measure importance with a real Trainer over every row of the two files."""
    files = {each: GOLDEN / f"{each}.csv" for each in ("math", "calibration")}
    if seed is not None:
        files = {each: shuffled(file, folder / file.name, seed) for each, file in files.items()}
    module = CausalLanguageModel(str(GOLDEN / name))
    module.tokenizer.padding_side = side
    module.tokenizer.pad_token = pad
    data = TextDataModule(
        TextSet(str(files["math"])),
        {"calibration": TextSet(str(files["calibration"]))},
        num_samples=None,
        held_out=0,
        batch_size=batch_size,
    )
    trainer = Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[AccumulateImportance()],
    )
    trainer.predict(module, datamodule=data, return_predictions=False)
    assert module.importance is not None
    return module.importance, module


@pytest.mark.parametrize("name", ["llama-tied", "phi"])
@pytest.mark.parametrize(
    ("batch_size", "side", "pad", "seed"),
    [(1, "right", "<pad>", None), (5, "left", "<eos>", 1), (24, "right", None, 2)],
)
def test_masks_equal_the_golden_ones(
    name: str, batch_size: int, side: str, pad: str | None, seed: int | None, tmp_path: Path
) -> None:
    """Whatever the batch size, the order of the texts, the tokenizer's padding side and token."""
    importance, module = measure(name, tmp_path, batch_size, side, pad, seed)
    with safe_open(GOLDEN / name / "expected_masks.safetensors", framework="pt") as expected:
        keys = set(expected.keys())
        for method in ("mathneuro", "wanda"):
            for proportion in PROPORTIONS:
                selection: Selection = select(
                    module.coverage.weights, importance, method, proportion
                )
                for weight in selection.shapes:
                    key = f"{method}/{proportion}/{weight}"
                    assert torch.equal(selection.mask(weight), expected.get_tensor(key).bool()), key
                    keys.remove(key)
    assert not keys


def test_golden_models_are_what_they_are_taken_for() -> None:
    """One head is tied and one is not, so that both cases are covered."""
    tied = {
        name: json.loads((GOLDEN / name / "config.json").read_text())["tie_word_embeddings"]
        for name in ("llama-tied", "phi")
    }
    assert tied == {"llama-tied": True, "phi": False}
