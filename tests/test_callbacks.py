"""The callbacks under a real Trainer: the model is left as it was found, whatever happens."""

import json
import math
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from callbacks import AccumulateImportance, Intervene, LMEval, RecordSweep, SelectParameters
from mathneuro.data import TextSet
from mathneuro.data.module import TextDataModule
from mathneuro.errors import InputError
from mathneuro.grid import Grid
from mathneuro.loading import weight_hash
from mathneuro.module import CausalLanguageModel
from mathneuro.trainer import MathNeuroTrainer


class Stop(Callback):
    """Breaks off while an edit is on the model, or in the first predict batch."""

    def __init__(self, where: str) -> None:
        self.where = where

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Break off while the edit is on the model."""
        assert isinstance(pl_module, CausalLanguageModel)
        if self.where == "validation" and pl_module.intervening:
            assert weight_hash(pl_module.model) != pl_module.identity["weight_hash"]
            raise RuntimeError("stop")

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, *_: object, **__: object
    ) -> None:
        """Break off in the middle of a setting of a sweep."""
        assert isinstance(pl_module, CausalLanguageModel)
        if self.where == "setting" and pl_module.in_flight and pl_module.in_flight.setting:
            assert weight_hash(pl_module.model) != pl_module.identity["weight_hash"]
            raise RuntimeError("stop")

    def on_predict_batch_start(self, *_: object, **__: object) -> None:
        """Break off while hooks are on the model."""
        if self.where == "predict":
            raise RuntimeError("stop")


SHORT = [tuple(range(8)), (7, 6, 5, 4, 3)]
LONG = [tuple((tuple(range(8)) * 5)[:37]), tuple((tuple(range(8)) * 5)[:37][::-1][:23])]
TRIAL = SHORT * 2 + LONG * 2
"""The texts of the trial passes: together, then each alone."""


def parts(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path, *extra: Callback
) -> tuple[MathNeuroTrainer, CausalLanguageModel, TextDataModule]:
    """Put a run together by hand, as a user of the Python interface would."""
    module = CausalLanguageModel(str(model_folder))
    data = TextDataModule(
        TextSet(str(text_files["math"])),
        {"language": TextSet(str(text_files["language"]))},
        num_samples=6,
        held_out=3,
        batch_size=2,
    )
    trainer = MathNeuroTrainer(
        accelerator="cpu",
        default_root_dir=tmp_path,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        callbacks=[AccumulateImportance(), SelectParameters(proportion=0.2), Intervene(), *extra],
    )
    return trainer, module, data


def left_as_found(module: CausalLanguageModel) -> bool:
    """Compare weights and look for hooks."""
    hooks = any(each._forward_pre_hooks or each._forward_hooks for each in module.model.modules())
    return not hooks and weight_hash(module.model) == module.identity["weight_hash"]


def test_operate_leaves_the_model_as_it_was(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """Weights, hooks, evaluation mode."""
    trainer, module, data = parts(model_folder, text_files, tmp_path, LMEval())
    trainer.operate(module, data)
    assert module.edit is not None
    assert module.edit.selection.count > 0
    assert left_as_found(module)
    assert not module.model.training
    assert not module.intervening


@pytest.mark.parametrize("where", ["validation", "predict"])
def test_an_exception_leaves_the_model_as_it_was(
    where: str, model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """In the middle of an evaluation of the edit, or of identification."""
    trainer, module, data = parts(model_folder, text_files, tmp_path, Stop(where))
    with pytest.raises(RuntimeError, match="stop"):
        trainer.operate(module, data)
    assert left_as_found(module)
    assert not module.intervening


def test_an_exception_in_a_sweep_leaves_the_model_as_it_was(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """In the middle of a setting."""
    trainer, module, data = parts(model_folder, text_files, tmp_path)
    trainer.callbacks[:0] = [Stop("setting"), RecordSweep()]  # type: ignore[attr-defined]
    trainer.grid = Grid(repeats=1, proportions=[0.2])
    with pytest.raises(RuntimeError, match="stop"):
        trainer.sweep(module, data)
    assert left_as_found(module)
    assert [path.stem for path in (tmp_path / "settings").iterdir()] == ["before"]


def test_every_distinct_text_goes_through_the_model_once(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """A text that was drawn twice is one forward pass and counts twice."""
    trainer, module, data = parts(model_folder, text_files, tmp_path)
    seen: list[tuple[int, ...]] = []
    module.configure_model()
    decoder = module.model.get_decoder()
    decoder.register_forward_pre_hook(
        lambda _module, _args, keywords: seen.extend(
            tuple(ids[mask == 1].tolist())
            for ids, mask in zip(keywords["input_ids"], keywords["attention_mask"], strict=True)
        ),
        with_kwargs=True,
    )
    trainer.predict(module, data)
    assert module.importance is not None
    assert seen[: len(TRIAL)] == TRIAL
    del seen[: len(TRIAL)]
    distinct = [each["distinct_texts"] for each in module.importance.data.values()]
    assert (
        len(seen) == len(set(seen)) == sum(distinct) < sum(module.importance.texts.values()) == 12
    )


def test_a_sweep_forwards_every_distinct_text_once(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """Whatever the number of repeats, samples, proportions, methods and calibration sets."""
    trainer, module, data = parts(model_folder, text_files, tmp_path, LMEval())
    assert trainer.callbacks is not None  # type: ignore[attr-defined]
    trainer.callbacks.insert(0, RecordSweep())  # type: ignore[attr-defined]
    trainer.grid = Grid(repeats=3, proportions=[0.1, 0.2], factors=[0.0, 2.0], num_samples=[2, 6])
    seen: list[tuple[int, ...]] = []
    module.configure_model()
    decoder = module.model.get_decoder()
    handle = decoder.register_forward_pre_hook(
        lambda _module, _args, keywords: seen.extend(
            tuple(ids[mask == 1].tolist())
            for ids, mask in zip(keywords["input_ids"], keywords["attention_mask"], strict=True)
        ),
        with_kwargs=True,
    )
    trainer.sweep(module, data)
    handle.remove()
    distinct = {
        name: [tuple(text.tokens) for text in texts.identification]
        for name, texts in data.tokenized.items()
    }
    held_out = [tuple(text.tokens) for texts in data.tokenized.values() for text in texts.held_out]
    settings = json.loads((tmp_path / "study.json").read_text())["settings"]
    evaluated = (len(seen) - len(TRIAL) - sum(map(len, distinct.values()))) / len(held_out)
    once = sorted(text for texts in distinct.values() for text in texts)
    assert sorted(seen[len(TRIAL) :][: len(once)]) == once
    assert all(len(set(texts)) == len(texts) for texts in distinct.values())
    assert evaluated == len(settings) == 1 + 3 * 2 * 2 * 2 * 3
    assert module.identification is not None
    assert module.identification.texts_forwarded == len(once)
    drawn = sum(len(draw.rows) for each in data.drawn.values() for draw in each.draws.values())
    assert drawn == 2 * 3 * (2 + 6) > len(once)
    assert left_as_found(module)
    assert module.study is not None
    assert not module.study.pending()


def test_other_modules_are_refused(tmp_path: Path) -> None:
    """A callback says what it works with."""
    with pytest.raises(TypeError, match="Expected a CausalLanguageModel and a TextDataModule"):
        Intervene().on_validation_start(Trainer(logger=False), LightningModule())


def test_limits_that_leave_out_texts_are_refused(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """One batch is no data set."""
    trainer, module, data = parts(model_folder, text_files, tmp_path)
    trainer.limit_predict_batches = 1
    with pytest.raises(InputError, match="limit_predict_batches"):
        trainer.predict(module, data)


def test_perplexity_is_that_of_the_model(
    model_folder: Path, text_files: dict[str, Path], tmp_path: Path
) -> None:
    """Against transformers' own loss, one text at a time."""
    trainer, module, data = parts(model_folder, text_files, tmp_path)
    trainer.validate(module, data)
    for perplexity, texts in zip(module.perplexities, data.tokenized.values(), strict=True):
        found = perplexity.compute()
        losses, tokens = 0.0, 0
        for text in texts.held_out:
            ids = torch.tensor([text.tokens])
            count = ids.shape[1] - 1
            with torch.no_grad():
                losses += float(module.model(input_ids=ids, labels=ids).loss) * count
            tokens += count
        assert float(found["perplexity"]) == pytest.approx(math.exp(losses / tokens), rel=1e-5)
        assert len(found["losses"]) == 3
