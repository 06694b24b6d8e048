"""Two real processes on the CPU, started as a user starts them, against one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import meeting
from tests.commands import run
from tests.processes import ROOT, check_same, command, forked, torchrun
from tests.several import run as several

TWO = ["--trainer.devices=2", "--trainer.strategy=ddp"]


@pytest.fixture
def everything(arguments: list[str], task_folder: Path) -> list[str]:
    """Arguments with a task of every kind, and numbers that no two processes share evenly."""
    with (task_folder / "tiny_generate.yaml").open("a") as task:
        task.write("num_fewshot: 1\nfewshot_split: test\n")
    return [
        *arguments,
        "--lm_eval.tasks=[tiny_generate, tiny_choose, tiny_rolling]",
        "--lm_eval.limit=7",
        "--lm_eval.batch_size=2",
        "--data.batch_size=2",
    ]


def test_two_processes_do_what_one_does(
    everything: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks, scores, answers and files; told once."""
    one, two = tmp_path / "one", tmp_path / "two"
    run(monkeypatch, "operate", [*everything, f"--folder={one}"])
    ended = command("operate", [*everything, *TWO, f"--folder={two}"])
    assert ended.returncode == 0, ended.stderr
    check_same(one, two)
    for label in ("identify", "select", "prune", "tiny_rolling word_perplexity", str(two)):
        assert sum(line.startswith(label) for line in ended.stdout.splitlines()) == 1, label
    assert "Traceback" not in ended.stderr


def test_any_number_of_texts_and_every_command(
    everything: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One text for two processes, two, seven; one question; one setting a process, and none."""
    grid = [
        "--grid.methods=[mathneuro, wanda, lape]",
        "--grid.repeats=1",
        "--grid.proportions=[0.1, 0.2]",
        "--grid.factors=[0.0]",
        "--grid.samples=true",
    ]
    sweep = [each for each in everything if not each.startswith("--selection")]
    commands = [
        *(
            ["operate", *everything, f"--data.num_samples={texts}", f"--folder=operate{texts}"]
            for texts in (1, 2, 7)
        ),
        ["predict", *everything, "--importance.activations=true", "--folder=predict"],
        ["validate", *everything, "--lm_eval.limit=1", "--lm_eval.batch_size=auto",
         "--folder=validate",
         f"--edit={tmp_path / 'one' / 'operate7' / 'edit.safetensors'}"],
        ["sweep", *sweep, *grid, "--folder=sweep"],
        ["sweep", *sweep, *grid, "--grid.factors=[2.0]", "--grid.methods=[wanda]",
         "--grid.proportions=[0.1]", "--folder=sweep"],
        ["sweep", *sweep, *grid, "--folder=sweep"],
    ]  # fmt: skip

    def within(folder: Path) -> list[list[str]]:
        return [
            [each.replace("--folder=", f"--folder={folder}/") for each in one if "run" not in each]
            for one in commands
        ]

    for name, *arguments in within(tmp_path / "one"):
        run(monkeypatch, name, arguments)
    ended = forked(tmp_path, several, [[*each, *TWO] for each in within(tmp_path / "two")])
    assert ended.returncode == 0, ended.stderr
    for folder in sorted((tmp_path / "one").iterdir()):
        check_same(folder, tmp_path / "two" / folder.name)


@pytest.mark.parametrize(
    ("rank", "how", "reason"),
    [
        pytest.param(1, "mistake", "error: data: one process met a text", marks=pytest.mark.slow),
        pytest.param(0, "fault", "RuntimeError: a fault in one process", marks=pytest.mark.slow),
        (1, "fault", "RuntimeError: a fault in one process"),
        pytest.param(1, "kill", "error: trainer: ", marks=pytest.mark.slow),
        pytest.param(0, "kill", "error: trainer: ", marks=pytest.mark.slow),
        pytest.param(
            1,
            "terminate",
            "error: trainer: process 1 was told to end (SIGTERM)",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "null", "mistake", "error: data: one process met a text", marks=pytest.mark.slow
        ),
        pytest.param(
            "null", "fault", "RuntimeError: a fault in one process", marks=pytest.mark.slow
        ),
    ],
)
def test_a_failing_process_ends_all(
    arguments: list[str], rank: int | str, how: str, reason: str
) -> None:
    """Soon, with the reason told once, and without results."""
    callback = ["--trainer.callbacks+=tests.misfortunes.Fail", f"--trainer.callbacks.rank={rank}",
                f"--trainer.callbacks.how={how}"]  # fmt: skip
    ended = command("predict", [*arguments, *TWO, *callback])
    assert ended.returncode != 0
    told = [line for line in ended.stderr.splitlines() if reason in line]
    assert len(told) == 1, ended.stderr
    assert ("Traceback" in ended.stderr) == (how == "fault")
    assert ended.stderr.count("error: ") <= 1


@pytest.mark.parametrize(("first", "with_signal", "later"), [
    pytest.param(True, signal.SIGKILL, 0, marks=pytest.mark.slow),
    pytest.param(True, signal.SIGTERM, 1, marks=pytest.mark.slow),
    (False, signal.SIGKILL, 1),
])  # fmt: skip
def test_processes_end_with_one_another_while_they_start(
    arguments: list[str], tmp_path: Path, first: bool, with_signal: signal.Signals, later: float
) -> None:
    """As soon as there are two, and where they wait for one another within a library."""
    with (tmp_path / "told").open("w") as told:
        started = subprocess.Popen(
            [sys.executable, str(ROOT / "main.py"), "predict", *arguments, *TWO],
            stdout=told, stderr=told, cwd=ROOT, start_new_session=True,
        )  # fmt: skip
        while not (others := children(started.pid)):
            time.sleep(0.005)
            assert started.poll() is None
        time.sleep(later)
        os.kill(started.pid if first else others[0], with_signal)
        started.wait(timeout=60)
        for _ in range(300):
            if not Path(f"/proc/{others[0]}").exists():
                break
            time.sleep(0.1)
    assert not Path(f"/proc/{others[0]}").exists()
    assert started.returncode != 0
    output = (tmp_path / "told").read_text()
    assert output.count("error: trainer: ") == 1, output
    assert "Traceback" not in output


def children(process: int) -> list[int]:
    """Return the processes that one started."""
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in listed.read_text().split()] if listed.exists() else []


def test_a_mistake_that_all_make_is_told_once(arguments: list[str], tmp_path: Path) -> None:
    """As one that shows when the data is read."""
    ended = forked(tmp_path, several, [["predict", *arguments, *TWO, "--data.held_out=12"]])
    assert ended.returncode == 2
    assert ended.stderr.count("error: ") == 1, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_killed_sweep_goes_on_at_once(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a process that the first had started still measures a setting."""
    sweep = [
        *(each for each in arguments if not each.startswith(("--selection", "--folder"))),
        "--grid.methods=[wanda]", "--grid.repeats=1", "--grid.proportions=[0.1, 0.2, 0.3, 0.4]",
    ]  # fmt: skip
    run(monkeypatch, "sweep", [*sweep, f"--folder={tmp_path / 'one'}"])
    names = json.loads((tmp_path / "one" / "study.json").read_text())["settings"]
    kill = ["--trainer.callbacks+=tests.kill.Kill", f"--trainer.callbacks.at={names[1]}"]
    two = [*sweep, *TWO, f"--folder={tmp_path / 'two'}"]
    with (tmp_path / "told").open("w") as told:
        # An orphan would keep a pipe open, and this would wait for it.
        killed = subprocess.run(
            [sys.executable, str(ROOT / "main.py"), "sweep", *two, *kill],
            stdout=told, stderr=told, check=False, timeout=180, cwd=ROOT,
        )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "two" / "settings").glob("*.json"))) < len(names)
    ended = command("sweep", two)
    assert ended.returncode == 0, ended.stderr
    check_same(tmp_path / "one", tmp_path / "two")


def test_texts_are_not_divided_twice(arguments: list[str], tmp_path: Path) -> None:
    """By Lightning too, which would leave some out; told once, and before any model loads."""
    words = ["validate", *arguments, *TWO, "--trainer.use_distributed_sampler=true"]
    ended = forked(tmp_path, several, [words])
    assert ended.returncode == 2
    assert ended.stderr.count("error: trainer.use_distributed_sampler: got true") == 1


def test_started_processes_have_to_be_used(arguments: list[str], tmp_path: Path) -> None:
    """Two that each believe to be alone would write the same files."""
    ended = forked(tmp_path, several, [["predict", *arguments, "--trainer.devices=1"]])
    assert ended.returncode != 0
    assert ended.stderr.count("error: trainer.devices: got 1") == 1, ended.stderr


def test_a_report_is_made_once(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts several processes for it."""
    sweep = [each for each in arguments if not each.startswith("--selection")]
    run(monkeypatch, "sweep", [*sweep, "--grid.methods=[wanda]", "--grid.repeats=1",
                               "--grid.proportions=[0.1]"])  # fmt: skip
    ended = torchrun("main", "report", f"--folder={tmp_path / 'run'}")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("summary.md") == 1


def test_processes_meet(tmp_path: Path) -> None:
    """Their order, what they refuse, and for how long they wait."""
    ended = forked(tmp_path, meeting.main)
    assert ended.returncode == 0, ended.stderr


def test_an_interruption_ends_all(arguments: list[str]) -> None:
    """As by Ctrl-C, which reaches every process of the terminal."""
    callback = ["--trainer.callbacks+=tests.misfortunes.Linger", "--trainer.callbacks.patience=60"]
    started = subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), "operate", *arguments, *TWO, *callback],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    assert started.stdout is not None
    # The model's line is the last before the first evaluation.
    for line in started.stdout:
        if "take part" in line:
            break
    else:
        pytest.fail(started.communicate()[1])
    time.sleep(2)
    begun = time.monotonic()
    os.killpg(started.pid, signal.SIGINT)
    # This waits until no process holds the other end.
    output, errors = started.communicate(timeout=60)
    assert time.monotonic() - begun < 20
    assert started.returncode == 1
    assert "interrupted" in output
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_long_evaluation_of_one_process_is_waited_for(arguments: list[str]) -> None:
    """Longer than ordinary collectives wait."""
    linger = ["--trainer.callbacks+=tests.misfortunes.Linger", "--data.held_out=1"]
    ended = command("validate", [*arguments, *TWO, *linger])
    assert ended.returncode == 0, ended.stderr
    assert "tiny_choose acc" in ended.stdout
