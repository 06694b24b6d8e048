"""Batches by tokens, a number of them or as many as fit, in whole commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

import mathneuro.module
from mathneuro.importance import Importance
from mathneuro.loading import ModelSource, load_model
from tests.commands import refused, run

ROOM = 80
"""Tokens that fit on the device of these tests: more than those of a trial pass."""


@pytest.fixture
def texts(arguments: list[str], text_files: dict[str, Path]) -> list[str]:
    """Arguments with texts of twenty tokens, five of which do not fit."""
    for animal, path in zip(("cat", "dog"), text_files.values(), strict=True):
        lines = (f"the red {animal} sees {number}" + " ." * 15 for number in range(12))
        path.write_text("qa\n" + "".join(f"{line}\n" for line in lines))
    return [*arguments, "--data.held_out=5", "--data.replacement=false", "--data.num_samples=7"]


def narrow(sizes: list[int]) -> Callable[[ModelSource], PreTrainedModel]:
    """Return a loader of models that run out of memory, and note the tokens of what fitted."""

    def check(_module: nn.Module, inputs: tuple[Tensor]) -> None:
        if inputs[0].numel() > ROOM:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0")
        sizes.append(inputs[0].numel())

    def load(source: ModelSource) -> PreTrainedModel:
        model = load_model(source)
        model.get_input_embeddings().register_forward_pre_hook(check)
        return model

    return load


def by_tokens(arguments: list[str], tokens: int | str, folder: Path) -> list[str]:
    """Ask for batches by tokens alone, and for no tasks, whose batches are lm-eval's."""
    dropped = ("--data.batch_size", "--lm_eval.tasks", "--folder")
    kept = [each for each in arguments if not each.startswith(dropped)]
    return [*kept, f"--data.batch_tokens={tokens}", f"--folder={folder}"]


def found(folder: Path) -> tuple[dict[str, Any], Importance]:
    """Return what a run found."""
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results, Importance.load(folder / "importance.safetensors")


def test_batches_by_tokens_find_the_same(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number of tokens is kept to, and recorded nowhere but in the config."""
    run(monkeypatch, "operate", texts)
    sizes: list[int] = []
    monkeypatch.setattr(mathneuro.module, "load_model", narrow(sizes))
    run(monkeypatch, "operate", by_tokens(texts, ROOM, tmp_path / "tokens"))
    assert 80 in sizes
    (one, importance), (other, same) = found(tmp_path / "run"), found(tmp_path / "tokens")
    assert "batch_tokens" not in other
    assert one["selection"]["by_weight"] == other["selection"]["by_weight"]
    for name, vectors in importance.sets.items():
        for weight, vector in vectors.items():
            assert torch.allclose(vector, same.sets[name][weight], rtol=1e-5)


def test_as_many_tokens_as_fit(
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Found by halves, told, recorded, and kept to."""
    sizes: list[int] = []
    monkeypatch.setattr(mathneuro.module, "load_model", narrow(sizes))
    run(monkeypatch, "operate", by_tokens(texts, "auto", tmp_path / "auto"))
    results, _ = found(tmp_path / "auto")
    assert results["batch_tokens"] == {"identification": 64, "perplexity": 64}
    told = capsys.readouterr().out
    for purpose in results["batch_tokens"]:
        assert told.count(f"{purpose}: batches of up to 64 tokens, as more did not fit") == 1
    assert max(sizes) == 74
    assert sorted(set(sizes))[-2:] == [60, 74]


def test_a_sweep_takes_as_many_tokens_as_fit(
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Found once for all settings."""
    sizes: list[int] = []
    monkeypatch.setattr(mathneuro.module, "load_model", narrow(sizes))
    sweep = [each for each in by_tokens(texts, "auto", tmp_path) if "selection" not in each]
    sweep += ["--grid.methods=[wanda]", "--grid.proportions=[0.1, 0.2]", "--grid.repeats=1"]
    run(monkeypatch, "sweep", [*sweep, "--dry_run=true"])
    assert "forward passes of up to as many tokens as fit" in capsys.readouterr().out
    run(monkeypatch, "sweep", sweep)
    assert capsys.readouterr().out.count("perplexity: batches of up to 64 tokens") == 1
    assert len(list((tmp_path / "settings").iterdir())) == 3


def test_what_does_not_fit_is_a_mistake(
    texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the user, who is told what to lower."""
    monkeypatch.setattr(mathneuro.module, "load_model", narrow([]))
    message = refused(monkeypatch, capsys, "predict", [*texts, "--data.batch_size=100"])
    assert "the device ran out of memory (CUDA out of memory); lower data.batch_size" in message


def test_a_batch_of_no_tokens_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As is anything that is no number."""
    for value in ("0", "-3", "many"):
        message = refused(
            monkeypatch, capsys, "predict", [*arguments, f"--data.batch_tokens={value}"]
        )
        assert "data.batch_tokens" in message
