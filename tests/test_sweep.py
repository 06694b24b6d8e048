"""The command sweep: whole, killed, in shards, and against single runs."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mathneuro import tops
from mathneuro.cutoffs import Cutoff, find_cutoffs
from mathneuro.edit import Edit
from tests.commands import run

ROOT = Path(__file__).parent.parent

GRID = [
    "--grid.repeats=2",
    "--grid.proportions=[0.1]",
    "--grid.factors=[0.0, 1.5]",
    "--grid.num_samples=[6]",
    "--data.batch_size=1",
]


@pytest.fixture
def sweep(arguments: list[str]) -> list[str]:
    """Arguments of a sweep on the tiny model, without a folder."""
    kept = ("--folder", "--selection", "--data.batch_size", "--data.num_samples")
    return [each for each in arguments if not each.startswith(kept)] + GRID


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return every setting's result, without the circumstances in which it was measured."""
    found = {}
    for path in (folder / "settings").iterdir():
        found[path.name] = json.loads(path.read_text())
        found[path.name].pop("run")
    return found


def written(folder: Path) -> dict[Path, float]:
    """Return every file of results and when it was written."""
    paths = [*folder.glob("settings/*"), *folder.glob("importance/*")]
    return {path: path.stat().st_mtime_ns for path in paths}


def test_every_cutoff_is_found_once(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all proportions together, by whichever setting needs it first."""
    calls = []

    def noted(weight: Tensor, vector: Tensor, counts: set[int]) -> dict[int, Cutoff]:
        calls.append((weight.data_ptr(), vector.numpy().tobytes()))
        assert {int(weight.numel() * each) for each in (0.1, 0.3)} == counts
        return find_cutoffs(weight, vector, counts)

    monkeypatch.setattr(tops, "find_cutoffs", noted)
    more = ["--grid.proportions=[0.1, 0.3]", "--grid.methods=[random, wanda, mathneuro]"]
    run(monkeypatch, "sweep", [*sweep, *more, f"--folder={tmp_path / 'sweep'}"])
    weights = {weight for weight, _ in calls}
    # Two sets of texts and two draws of each.
    assert len(calls) == len(set(calls)) == 4 * len(weights) > 0


def test_a_killed_sweep_goes_on_and_ends_as_an_undisturbed_one(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL leaves no time to tidy up."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(monkeypatch, "sweep", [*sweep, f"--folder={whole}"])
    at = "wanda_n6_r2_p0.1_x1.5"
    command = [sys.executable, "main.py", "sweep", *sweep, f"--folder={killed}"]
    command += ["--trainer.callbacks+=tests.kill.Kill", f"--trainer.callbacks.at={at}"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    before = written(killed)
    assert 0 < len(before) < len(written(whole))
    assert not (killed / "settings" / f"{at}.json").exists()
    run(monkeypatch, "sweep", [*sweep, f"--folder={killed}"])
    assert {path: time for path, time in written(killed).items() if path in before} == before
    assert records(killed) == records(whole)
    results = "report/results.csv"
    assert (killed / results).read_text() == (whole / results).read_text()
    names = [sorted(path.relative_to(each) for path in written(each)) for each in (killed, whole)]
    assert names[0] == names[1]


def test_a_sweep_that_is_told_to_end_does_so_at_once(
    sweep: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever is in flight, and does not pretend to be done; the signal means what it did."""
    before = signal.getsignal(signal.SIGTERM)
    at = "wanda_n6_r1_p0.1_x0"
    kill = ["--trainer.callbacks+=tests.kill.Kill", f"--trainer.callbacks.at={at}",
            "--trainer.callbacks.gently=true"]  # fmt: skip
    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, "sweep", [*sweep, f"--folder={tmp_path / 'sweep'}", *kill])
    assert exit_.value.code == 128 + signal.SIGTERM
    assert "interrupted" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before
    settings = {path.stem for path in (tmp_path / "sweep" / "settings").iterdir()}
    assert at not in settings
    assert 0 < len(settings) < 13
    assert not (tmp_path / "sweep" / "report").exists()


def test_two_shards_together_are_one_run(
    sweep: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever ran what."""
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    run(monkeypatch, "sweep", [*sweep, f"--folder={whole}"])
    run(monkeypatch, "sweep", [*sweep, f"--folder={shared}", "--shard=2/2"])
    half = len(records(shared))
    assert abs(2 * half - len(records(whole))) <= 1
    assert "left to other shards" in capsys.readouterr().out
    assert not (shared / "report").exists()
    run(monkeypatch, "sweep", [*sweep, f"--folder={shared}", "--shard=1/2"])
    assert records(shared) == records(whole)
    assert (shared / "report" / "results.csv").read_bytes() == (
        whole / "report" / "results.csv"
    ).read_bytes()


def test_a_setting_gives_what_a_single_run_gives(
    sweep: list[str], arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same parameters, scores and texts."""
    folder = tmp_path / "sweep"
    numbers = "--grid.num_samples=[6, 20]"
    run(monkeypatch, "sweep", [*sweep, f"--folder={folder}", numbers])
    for method, repeat, number, factor in (
        ("mathneuro", 1, 20, 0.0),
        ("wanda", 2, 6, 1.5),
        ("random", 2, 20, 0.0),
    ):
        sets = "" if method == "wanda" else "_language"
        name = f"{method}{sets}_n{number}_r{repeat}_p0.1_x{factor:g}"
        single = tmp_path / name
        same = [
            f"--selection.method={method}",
            f"--data.repeat={repeat}",
            f"--data.num_samples={number}",
            f"--intervention.factor={factor}",
            "--data.batch_size=1",
            f"--folder={single}",
        ]
        run(monkeypatch, "operate", [*arguments, *same])
        found = json.loads((single / "results.json").read_text())
        record = records(folder)[f"{name}.json"]
        edit = Edit.load(single / "edit.safetensors")
        assert record["selection"]["sha256"] == edit.selection.sha256()
        assert record["selection"]["by_weight"] == found["selection"]["by_weight"]
        for kind in ("tasks", "perplexity", "notes"):
            assert record["scores"][kind] == found["scores"]["after"][kind]
            assert records(folder)["before.json"]["scores"][kind] == found["scores"]["before"][kind]


def test_what_changes_nothing_is_not_evaluated_again(
    sweep: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of 20 x 24 parameters 0.001 are none; and a factor of 1 leaves all as it is."""
    folder = tmp_path / "sweep"
    grid = ["--grid.factors=[0.0, 1.0]", "--grid.proportions=[0.001, 0.1]"]
    run(monkeypatch, "sweep", [*sweep, f"--folder={folder}", *grid])
    lines = capsys.readouterr().out.splitlines()
    same = {line.split()[1] for line in lines if "(as before)" in line}
    found = records(folder)
    nothing = {
        name
        for name, each in found.items()
        if each["setting"]
        and (each["selection"]["parameters"] == 0 or each["setting"]["factor"] == 1)
    }
    assert {f"{name}.json" for name in same} == nothing
    assert len(nothing) >= len(found) / 2
    for name in nothing:
        assert found[name]["outcomes"] == found["before.json"]["outcomes"]


def test_a_finished_sweep_measures_nothing(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It only makes the report again."""
    arguments = [*sweep, f"--folder={tmp_path / 'sweep'}", "--grid.methods=[wanda]"]
    run(monkeypatch, "sweep", arguments)
    before = written(tmp_path / "sweep")
    (tmp_path / "sweep" / "report" / "results.csv").unlink()

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("Something was measured.")

    monkeypatch.setattr("callbacks.lm_eval.evaluate", fail)
    for step in ("predict_step", "validation_step"):
        monkeypatch.setattr(f"mathneuro.module.CausalLanguageModel.{step}", fail)
    run(monkeypatch, "sweep", arguments)
    assert written(tmp_path / "sweep") == before
    assert (tmp_path / "sweep" / "report" / "results.csv").exists()


def test_options_of_single_runs_are_told_to_be_unused(
    sweep: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rather than ignored without a word."""
    small = ["--grid.methods=[wanda]", "--grid.repeats=1", "--grid.factors=[0.0]"]
    unused = ["--selection.method=random", "--selection.proportion=0.3", "--intervention.factor=2"]
    run(monkeypatch, "sweep", [*sweep, *small, *unused, f"--folder={tmp_path / 'sweep'}"])
    told = " ".join(capsys.readouterr().out.split())
    assert "selection: method, proportion not used" in told
    assert "intervention: factor not used" in told


def test_a_grid_can_grow(sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there stays, and the report covers both."""
    folder = tmp_path / "sweep"
    small = [*sweep, f"--folder={folder}", "--grid.repeats=1", "--grid.num_samples=[6]"]
    run(monkeypatch, "sweep", [*small, "--grid.methods=[wanda]"])
    before = written(folder)
    run(monkeypatch, "sweep", [*small, "--grid.methods=[mathneuro]", "--grid.proportions=[0.2]"])
    after = written(folder)
    assert {path: after[path] for path in before} == before
    summary = (folder / "report" / "summary.md").read_text()
    assert "settings: all 5 are finished" in summary
    assert "methods: mathneuro, wanda" in summary
    table = (folder / "report" / "results.csv").read_text()
    assert "wanda_n6_r1_p0.1_x0" in table
    assert "mathneuro_language_n6_r1_p0.2_x0" in table


def test_answers_are_kept_on_request(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Setting by setting; the outcomes are kept in any case."""
    folder = tmp_path / "sweep"
    small = ["--grid.methods=[wanda]", "--grid.repeats=1", "--grid.proportions=[0.1]"]
    run(monkeypatch, "sweep", [*sweep, *small, f"--folder={folder}", "--grid.samples=true"])
    found = records(folder)
    for name in found:
        path = folder / "samples" / name.removesuffix(".json") / "tiny_choose.jsonl"
        values = [json.loads(line)["acc"] for line in path.read_text().splitlines()]
        assert values == found[name]["outcomes"]["tiny_choose acc"]["values"]
        score = found[name]["scores"]["tasks"]["tiny_choose"]["acc"]
        assert score["value"] == pytest.approx(sum(values) / len(values))


def test_a_dry_run_needs_no_model(
    sweep: list[str],
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And leaves nothing behind."""
    for path in model_folder.iterdir():
        if path.name != "config.json":
            path.unlink()
    folder = tmp_path / "sweep"
    extra = [f"--folder={folder}", "--dry_run=true", "--grid.num_samples=[6, 20]"]
    run(monkeypatch, "sweep", [*sweep, *extra])
    told = " ".join(capsys.readouterr().out.split())
    # 3 methods, 2 numbers, 2 repeats, 2 factors, and the model as it is.
    assert "25 settings" in told
    assert "25 to do in shard 1/1" in told
    assert "104 texts drawn" in told
    assert not folder.exists()


def test_gradients_are_never_needed(
    sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by identification nor by any evaluation."""
    seen: list[bool] = []
    forward = torch.nn.Linear.forward

    def watched(linear: torch.nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
        output = forward(linear, inputs)
        seen.append(output.requires_grad or torch.is_grad_enabled())
        return output

    monkeypatch.setattr("torch.nn.Linear.forward", watched)
    small = ["--grid.methods=[wanda]", "--grid.repeats=1", "--grid.num_samples=[6]"]
    run(monkeypatch, "sweep", [*sweep, *small, f"--folder={tmp_path / 'sweep'}"])
    assert seen
    assert not any(seen)
