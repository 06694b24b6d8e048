"""What takes part and what is left alone, as commands tell and keep it."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from mathneuro.edit import Edit
from mathneuro.importance import Importance
from tests.commands import refused, run
from tests.families import FAMILIES

NO_QUERIES = "--model.exclude=['*.q_proj.weight']"


@pytest.fixture
def untested(arguments: list[str]) -> list[str]:
    """Arguments of a run without tasks."""
    return [*arguments, "--lm_eval.tasks=[]"]


def coverage(folder: Path) -> dict[str, Any]:
    """Read what a run says of its coverage."""
    read: dict[str, Any] = json.loads((folder / "results.json").read_text())["coverage"]
    return read


def test_patterns_choose_what_takes_part(
    untested: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is excluded is measured by nothing, edited by nothing, printed and kept."""
    include = "--model.include=['model.layers.1.*']"
    run(monkeypatch, "operate", [*untested, include, NO_QUERIES])
    found = coverage(tmp_path / "run")
    assert len(found["weights"]) == 6
    assert found["left_alone"]["excluded by *.q_proj.weight"] == 2 * 16 * 16
    assert sum(found["left_alone"].values()) + found["parameters"] == found["total"]
    edit = Edit.load(tmp_path / "run" / "edit.safetensors")
    importance = Importance.load(tmp_path / "run" / "importance.safetensors")
    assert set(edit.selection.positions) == set(found["weights"])
    assert set(importance.sets["math"]) == set(found["weights"])
    output = " ".join(capsys.readouterr().out.split())
    assert "6 linear weights" in output
    assert "excluded by *.q_proj.weight 12 %" in output


def test_a_pattern_that_matches_nothing_is_refused(
    untested: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence with close names."""
    sentence = refused(monkeypatch, capsys, "operate", [*untested, "--model.exclude=['*.queries']"])
    assert "model.exclude: got '*.queries', but no weight" in sentence
    assert "close to it are model.layers." in sentence


def test_an_edit_of_what_is_left_alone_is_refused(
    untested: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It would change what was asked to stay; an edit of other weights is fine."""
    run(monkeypatch, "operate", untested)
    edit = f"--edit={tmp_path / 'run' / 'edit.safetensors'}"
    again = [*untested, f"--folder={tmp_path / 'again'}", NO_QUERIES]
    sentence = refused(monkeypatch, capsys, "validate", [*again, edit])
    assert "q_proj.weight, which is to be left alone here (excluded by" in sentence
    run(monkeypatch, "operate", [*again, "--record.overwrite=true"])
    edit = f"--edit={tmp_path / 'again' / 'edit.safetensors'}"
    run(monkeypatch, "validate", [*untested, f"--folder={tmp_path / 'third'}", edit])


def test_importance_of_more_weights_serves_fewer(
    untested: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It does not depend on which others take part; that of fewer weights does not serve more."""
    for name, extra in (("all", []), ("fewer", [NO_QUERIES])):
        run(monkeypatch, "predict", [*untested, *extra, f"--folder={tmp_path / name}"])
    files = {name: tmp_path / name / "importance.safetensors" for name in ("all", "fewer")}
    for name, file in files.items():
        folder = f"--folder={tmp_path / 'from' / name}"
        run(monkeypatch, "operate", [*untested, NO_QUERIES, f"--importance.file={file}", folder])
    edits = [Edit.load(tmp_path / "from" / name / "edit.safetensors") for name in files]
    assert edits[0].selection.sha256() == edits[1].selection.sha256()
    sentence = refused(
        monkeypatch, capsys, "operate", [*untested, f"--importance.file={files['fewer']}"]
    )
    assert "holds no importance of model.layers.0.self_attn.q_proj.weight" in sentence


@pytest.mark.parametrize("name", ["Mixtral", "GPT-2", "Mamba", "Gemma 3, multimodal"])
def test_a_whole_run_of_another_kind_of_model(
    name: str,
    arguments: list[str],
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tasks, identification, edit and evaluation; what is left alone is printed and kept."""
    folder = tmp_path / "model"
    FAMILIES[name].build().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    run(monkeypatch, "operate", [*arguments, f"--model.source={folder}"])
    found, output = coverage(tmp_path / "run"), " ".join(capsys.readouterr().out.split())
    assert found["left_alone"].keys() >= FAMILIES[name].left_alone.keys()
    for reason in found["left_alone"]:
        assert reason in output
    assert Edit.load(tmp_path / "run" / "edit.safetensors").selection.count > 0
