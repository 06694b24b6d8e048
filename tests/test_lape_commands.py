"""The method lape in commands: runs, files and sweeps."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from mathneuro.edit import Edit
from mathneuro.importance import Importance
from tests.commands import refused, run
from tests.families import FAMILIES
from tests.test_sweep import GRID, records, written

LAPE = "--selection.method=lape"


@pytest.fixture
def untested(arguments: list[str]) -> list[str]:
    """Arguments of a run without tasks."""
    return [*arguments, "--lm_eval.tasks=[]"]


@pytest.fixture
def sweep(arguments: list[str]) -> list[str]:
    """Arguments of a sweep on the tiny model, without a folder."""
    kept = ("--folder", "--selection", "--data.batch_size", "--data.num_samples")
    rest = [each for each in arguments if not each.startswith(kept)]
    return [*rest, *GRID, "--grid.repeats=1", "--grid.factors=[0.0]", "--lm_eval.tasks=[]"]


def save(name: str, folder: Path, tokenizer: PreTrainedTokenizerFast) -> str:
    """Save the model of a family, and return the option that loads it."""
    FAMILIES[name].build().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return f"--model.source={folder}"


def results(folder: Path) -> dict[str, Any]:
    """Read the record of a run."""
    read: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return read


def test_a_run_selects_neurons_and_its_file_serves_another(
    untested: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From one identification pass; the same neurons from the file; the edit can be validated."""
    run(monkeypatch, "operate", [*untested, LAPE])
    output = " ".join(capsys.readouterr().out.split())
    found = results(tmp_path / "run")
    selection = found["selection"]
    assert found["neurons"]["neurons"] == found["neurons"]["total"] == 48
    assert f"{selection['neurons']} of 48 neurons" in output
    assert "48 of 48 MLP neurons take part" in output
    assert selection["parameters"] == 16 * selection["neurons"] > 0
    assert found["identification"]["forward_passes"] > 0
    file = tmp_path / "run" / "importance.safetensors"
    again = [*untested, LAPE, f"--importance.file={file}", f"--folder={tmp_path / 'again'}"]
    run(monkeypatch, "operate", again)
    edits = [Edit.load(tmp_path / each / "edit.safetensors") for each in ("run", "again")]
    assert edits[0].selection.sha256() == edits[1].selection.sha256()
    edit = f"--edit={tmp_path / 'run' / 'edit.safetensors'}"
    run(monkeypatch, "validate", [*untested, f"--folder={tmp_path / 'third'}", edit])


def test_activations_are_counted_when_they_are_needed(
    untested: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Or asked for; a file without them serves other methods and is refused for lape."""
    for name, extra in (("without", []), ("with", ["--importance.activations=true"])):
        run(monkeypatch, "predict", [*untested, *extra, f"--folder={tmp_path / name}"])
    files = {name: tmp_path / name / "importance.safetensors" for name in ("without", "with")}
    without, counted = (Importance.load(file) for file in files.values())
    assert (without.activations, without.tokens) == ({}, {})
    assert counted.activations.keys() == counted.tokens.keys() == {"math", "language"}
    assert "neurons" not in results(tmp_path / "without")
    for name, vectors in without.sets.items():
        for weight, vector in vectors.items():
            assert torch.equal(vector, counted.sets[name][weight])
    run(monkeypatch, "operate", [*untested, LAPE, f"--importance.file={files['with']}"])
    old = [*untested, f"--importance.file={files['without']}", f"--folder={tmp_path / 'old'}"]
    sentence = refused(monkeypatch, capsys, "operate", [*old, LAPE])
    assert "holds no activations of the neurons before model.layers.0.mlp.down_proj" in sentence
    assert "measure again" in sentence
    run(monkeypatch, "operate", old)
    sentence = refused(monkeypatch, capsys, "operate", [*old, "--importance.activations=true"])
    assert "importance.activations: got true, but with importance.file" in sentence


def test_a_model_without_neurons_is_refused(
    untested: list[str],
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before any evaluation, in one sentence."""
    source = save("GPT-OSS", tmp_path / "model", tokenizer)
    sentence = refused(monkeypatch, capsys, "operate", [*untested, source, LAPE])
    assert "model: no neuron of an MLP can be found in GptOssForCausalLM" in sentence
    assert not (tmp_path / "run" / "results.json").exists()


@pytest.mark.parametrize(
    ("name", "extra", "line"),
    [
        ("Llama 4", [], "80 % of the MLP neurons are left out: model.layers.0.feed_forward.exp"),
        (
            "Mixtral",
            ["--model.exclude=['*.1.mlp.experts.down_proj.*']"],
            "50 % of the MLP neurons are left out: model.layers.1.mlp.experts, its output",
        ),
    ],
)
def test_neurons_that_are_left_out_are_told(
    name: str,
    extra: list[str],
    line: str,
    untested: list[str],
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On the terminal and in the results."""
    source = save(name, tmp_path / "model", tokenizer)
    run(monkeypatch, "operate", [*untested, source, LAPE, *extra])
    assert line in " ".join(capsys.readouterr().out.split())
    found = results(tmp_path / "run")["neurons"]
    left_out = sum(each["neurons"] for each in found["left_out"])
    assert found["neurons"] + left_out == found["total"]
    assert 0 < found["share"] < 1


def test_a_sweep_takes_lape_and_goes_on(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each setting is what a single run gives; a lost one is measured again, alone."""
    folder = tmp_path / "sweep"
    small = [*sweep, f"--folder={folder}"]
    run(monkeypatch, "sweep", [*small, "--grid.methods=[mathneuro, lape]"])
    name = "lape_language_n6_r1_p0.1_x0"
    whole = records(folder)
    assert whole[f"{name}.json"]["selection"]["of_neurons"] == 48
    study = json.loads((folder / "study.json").read_text())
    assert study["coverage"]["neurons"]["total"] == 48
    assert name in (folder / "report" / "results.csv").read_text()
    (folder / "settings" / f"{name}.json").unlink()
    before = written(folder)
    run(monkeypatch, "sweep", [*small, "--grid.methods=[mathneuro, lape]"])
    assert records(folder) == whole
    after = written(folder)
    assert {path: after[path] for path in before} == before


def test_a_sweep_that_grows_by_lape_counts_activations(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The norms that it selected by before stay bit for bit; one from the start is equal."""
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    run(monkeypatch, "sweep", [*sweep, "--grid.methods=[mathneuro, lape]", f"--folder={whole}"])
    run(monkeypatch, "sweep", [*sweep, "--grid.methods=[mathneuro]", f"--folder={grown}"])
    path = grown / "importance" / "n6_r1.safetensors"
    before, settings = Importance.load(path), written(grown)
    assert not before.activations
    run(monkeypatch, "sweep", [*sweep, "--grid.methods=[lape]", f"--folder={grown}"])
    after = Importance.load(path)
    assert after.activations
    for name, vectors in before.sets.items():
        for weight, vector in vectors.items():
            assert torch.equal(vector, after.sets[name][weight])
    now = written(grown)
    assert all(now[each] == settings[each] for each in settings if each != path)
    assert records(grown) == records(whole)
