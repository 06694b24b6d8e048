"""The commands, run in this process on a tiny model with real tasks."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mathneuro.edit import Edit
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.methods import select
from tests.commands import run


def fits(command: str, argument: str) -> bool:
    """Tell whether a command takes an argument of ``operate``."""
    without = {
        "operate": (),
        "validate": ("--selection", "--intervention"),
        "predict": ("--selection", "--intervention", "--lm_eval"),
        "sweep": ("--selection", "--intervention"),
    }[command]
    return not argument.startswith(without)


def results(folder: Path) -> dict[str, Any]:
    """Read what a run measured."""
    read: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return read


def test_operate_does_the_main_job(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It leaves everything that is needed to read and to repeat it, and tells it in a few lines."""
    run(monkeypatch, "operate", arguments)
    folder = tmp_path / "run"
    found = results(folder)
    assert set(found["scores"]) == {"before", "after"}
    for scores in found["scores"].values():
        assert set(scores["perplexity"]) == {"math", "language"}
        assert scores["tasks"]["tiny_choose"]["acc"]["count"] == 12
    assert found["scores"]["before"]["perplexity"] != found["scores"]["after"]["perplexity"]
    data = found["identification"]["data"]["math"]
    assert len(data["rows"]) == data["texts"] == 20
    assert data["sha256"]
    assert found["finished"]
    assert not set(data["rows"]) & set(found["held_out"]["math"]["rows"])
    assert found["versions"]["torch"] == torch.__version__

    edit = Edit.load(folder / "edit.safetensors")
    importance = Importance.load(folder / "importance.safetensors")
    assert (
        edit.model["weight_hash"]
        == importance.model["weight_hash"]
        == found["model"]["weight_hash"]
    )
    assert edit.selection.count == found["selection"]["parameters"] > 0
    for state in ("before", "after"):
        lines = (folder / "samples" / state / "tiny_generate.jsonl").read_text().splitlines()
        assert len([json.loads(line) for line in lines]) == 12

    output = capsys.readouterr().out
    for expected in (
        "14 linear weights", "math 20 texts", "mathneuro, proportion 0.1", "factor 0",
        "tiny_generate exact_match", "perplexity language", "n = 12", "tensorboard --logdir",
    ):  # fmt: skip
        assert expected in output
    assert len(output.splitlines()) <= 12


def test_tensorboard_holds_scores_settings_and_a_summary(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one folder, without Lightning's hp_metric."""
    run(monkeypatch, "operate", arguments)
    steps: dict[str, list[int]] = {}
    tensors: list[str] = []
    plugins: set[str] = set()
    for file in (tmp_path / "run").glob("events.out.tfevents.*"):
        events = EventAccumulator(str(file))
        events.Reload()
        for tag in events.Tags()["scalars"]:
            steps.setdefault(tag, []).extend(event.step for event in events.Scalars(tag))
        tensors += events.Tags()["tensors"]
        plugins |= {tag for tag in events.summary_metadata if tag.startswith("_hparams_/")}
    assert sorted(steps["perplexity/math"]) == sorted(steps["tiny_choose/acc"]) == [0, 1]
    assert tensors == ["summary/text_summary"]
    assert "_hparams_/session_start_info" in plugins
    assert "hp_metric" not in steps


def test_texts_that_look_like_numbers_come_back_as_texts(
    arguments: list[str],
    text_files: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder, and the name of a calibration set."""
    monkeypatch.chdir(tmp_path)
    sets = "{'1e3': {path: " + str(text_files["language"]) + "}}"
    run(monkeypatch, "predict", [
        *(each for each in arguments if fits("predict", each)),
        f"--data.calibration={sets}", "--folder=1e5",
    ])  # fmt: skip
    config = tmp_path / "1e5" / "config.yaml"
    run(monkeypatch, "predict", [f"--config={config}", "--record.overwrite=true"])
    assert set(results(tmp_path / "1e5")["identification"]["data"]) == {"math", "1e3"}


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("operate", {"method": "mathneuro", "factor": 0.0, "proportion": 0.1}),
        ("validate", {"factor": 2.0}),
        ("predict", {}),
    ],
)
def test_hyperparameters_are_written_when_they_are_known(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    known: dict[str, object],
) -> None:
    """Lightning writes hparams.yaml at the beginning of a run, when it is empty."""
    if command == "validate":
        run(monkeypatch, "operate", [*arguments, "--intervention.factor=2"])
        edit = (tmp_path / "run" / "edit.safetensors").rename(tmp_path / "edit.safetensors")
        arguments = [*arguments, f"--edit={edit}", "--record.overwrite=true"]
    run(monkeypatch, command, [each for each in arguments if fits(command, each)])
    found = yaml.safe_load((tmp_path / "run" / "hparams.yaml").read_text())
    assert found["model"] == results(tmp_path / "run")["model"]["source"]
    assert {name: found[name] for name in known} == known


def test_every_evaluation_records_how_it_was_asked(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every option as it was used, in runs and in sweeps, and the batch sizes that were found."""
    run(monkeypatch, "operate", [*arguments, "--lm_eval.batch_size=auto", "--lm_eval.limit=3"])
    grid = ["--grid.methods=[wanda]", "--grid.proportions=[0.1]", "--grid.factors=[0.0]"]
    sweep = [each for each in arguments if fits("sweep", each)]
    folder = tmp_path / "sweep"
    run(monkeypatch, "sweep", [*sweep, *grid, "--grid.repeats=1", f"--folder={folder}"])
    found = results(tmp_path / "run")["scores"]
    one, two = (found[state]["settings"] for state in ("before", "after"))
    assert one == two
    assert one["limit"] == 3
    assert one["batch_size"] == "auto"
    assert set(one["batch_sizes"]) == {"generate_until", "loglikelihood"}
    assert all(0 < size <= 64 for size in one["batch_sizes"].values())
    settings = list((folder / "settings").glob("*.json"))
    assert settings
    for file in settings:
        asked = json.loads(file.read_text())["scores"]["settings"]
        assert set(asked) == set(one)
        assert asked["batch_sizes"] == {"generate_until": 4, "loglikelihood": 4}


def test_a_run_can_be_repeated_from_its_own_config(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The saved config runs as it is and gives the same numbers and the same edit."""
    run(monkeypatch, "operate", arguments)
    config = tmp_path / "run" / "config.yaml"
    assert yaml.safe_load(config.read_text())["data"]["num_samples"] == 20
    other = tmp_path / "again"
    run(monkeypatch, "operate", [f"--config={config}", f"--folder={other}"])
    first, again = results(tmp_path / "run"), results(other)
    assert first["scores"] == again["scores"]
    assert first["selection"] == again["selection"]


def test_saved_importance_needs_no_forward_pass(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With another method, proportion and factor; the masks are those of a run of its own."""
    run(monkeypatch, "predict", arguments)
    file = tmp_path / "run" / "importance.safetensors"
    changes = [
        "--selection.proportion=0.3",
        "--selection.method=wanda",
        "--intervention.factor=1.1",
    ]
    for name, extra in (("reused", [f"--importance.file={file}"]), ("anew", [])):
        run(monkeypatch, "operate", [*arguments, *changes, *extra, f"--folder={tmp_path / name}"])
    assert f"from {file}, no forward pass" in capsys.readouterr().out
    edits = [Edit.load(tmp_path / name / "edit.safetensors") for name in ("reused", "anew")]
    assert edits[0].factor == edits[1].factor == 1.1
    assert edits[0].selection.origin == edits[1].selection.origin
    for name, positions in edits[0].selection.positions.items():
        assert torch.equal(positions, edits[1].selection.positions[name])
    assert results(tmp_path / "reused")["scores"] == results(tmp_path / "anew")["scores"]
    assert (tmp_path / "reused" / "importance.safetensors").exists()


def test_validate_evaluates_a_saved_edit(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the edit it measures what operate measured after it, without it what was before."""
    run(monkeypatch, "operate", arguments)
    expected = results(tmp_path / "run")["scores"]
    edit = tmp_path / "run" / "edit.safetensors"
    for state, extra in (("after", [f"--edit={edit}"]), ("before", [])):
        folder = tmp_path / state
        run(monkeypatch, "validate", [*arguments, *extra, f"--folder={folder}"])
        found = results(folder)
        assert found["scores"] == {state: expected[state]}
        assert ("factor" in found) == (state == "after")
        assert found["held_out"]["math"]["rows"]


def test_a_saved_edit_with_other_factors(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Validated, it gives what operate gives with these factors."""
    run(monkeypatch, "operate", [*arguments, "--intervention.factor=-3"])
    factors = "{'*.layers.0.*': 0.25, '*.mlp.*': -2}"
    edit = tmp_path / "run" / "edit.safetensors"
    anew = ["--intervention.factor=0.5", f"--intervention.factors={factors}"]
    run(monkeypatch, "operate", [*arguments, *anew, f"--folder={tmp_path / 'anew'}"])
    assert "factor 0.5, others for 10 weights" in capsys.readouterr().out
    again = [f"--edit={edit}", "--factor=0.5", f"--factors={factors}"]
    run(monkeypatch, "validate", [*arguments, *again, f"--folder={tmp_path / 'again'}"])
    expected, found = results(tmp_path / "anew"), results(tmp_path / "again")
    assert found["scores"]["after"] == expected["scores"]["after"]
    assert found["factors"] == expected["factors"]
    assert found["scores"]["after"] != results(tmp_path / "run")["scores"]["after"]


def test_the_command_selects_what_the_functions_select(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_folder: Path
) -> None:
    """The command line adds nothing to the method."""
    from transformers import AutoModelForCausalLM

    run(monkeypatch, "operate", arguments)
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    importance = Importance.load(tmp_path / "run" / "importance.safetensors")
    expected = select(find_linear_weights(model).weights, importance, "mathneuro", 0.1)
    edit = Edit.load(tmp_path / "run" / "edit.safetensors")
    for name, positions in expected.positions.items():
        assert torch.equal(positions, edit.selection.positions[name])


def test_print_config_gives_a_config_that_runs(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As it is."""
    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, "predict", [*arguments, "--print_config"])
    assert exit_.value.code == 0
    config = tmp_path / "printed.yaml"
    config.write_text(capsys.readouterr().out)
    run(monkeypatch, "predict", [f"--config={config}"])
    assert (tmp_path / "run" / "importance.safetensors").exists()


def test_one_text_is_enough(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And nothing selected changes nothing."""
    changes = ["--data.num_samples=1", "--selection.proportion=1e-6", "--lm_eval.tasks=[]"]
    run(monkeypatch, "operate", [*arguments, *changes])
    found = results(tmp_path / "run")
    assert found["selection"]["parameters"] == 0
    assert found["scores"]["before"] == found["scores"]["after"]
    assert "nothing is selected" in capsys.readouterr().out


def test_bfloat16_models_run(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Norms are float32 and sums float64 whatever the weights are."""
    run(monkeypatch, "operate", [*arguments, "--model.dtype=bfloat16", "--lm_eval.tasks=[]"])
    assert results(tmp_path / "run")["model"]["dtype"] == "bfloat16"
    importance = Importance.load(tmp_path / "run" / "importance.safetensors")
    vectors = [vector for vectors in importance.sets.values() for vector in vectors.values()]
    assert {vector.dtype for vector in vectors} == {torch.float64}


def test_help_says_what_each_command_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a sentence each."""
    with pytest.raises(SystemExit):
        run(monkeypatch, "--help", [])
    output = " ".join(capsys.readouterr().out.split())
    for sentence in ("the main job", "Identify only", "Evaluate only"):
        assert sentence in output


def test_a_run_that_measures_nothing_says_so(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In place of an empty table."""
    nothing = ["--data.held_out=0", "--data.num_samples=null", "--lm_eval.tasks=null"]
    run(monkeypatch, "operate", [*arguments, *nothing])
    out = capsys.readouterr().out
    assert "nothing was measured: lm_eval names no tasks, and data.held_out is 0" in out
    assert "before  " not in out


def test_without_held_out_texts_tasks_are_still_evaluated(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row can be used for identification; there is no perplexity then."""
    run(monkeypatch, "operate", [*arguments, "--data.held_out=0", "--data.num_samples=null"])
    found = results(tmp_path / "run")
    assert found["identification"]["texts"] == {"math": 12, "language": 12}
    for scores in found["scores"].values():
        assert scores["perplexity"] == {}
        assert set(scores["tasks"]) == {"tiny_generate", "tiny_choose"}
