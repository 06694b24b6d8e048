"""Two real processes on the CPU, started as a user starts them."""

import subprocess
import sys
from pathlib import Path

import torch

from mathneuro.importance import Importance

ROOT = Path(__file__).parent.parent
TWO = ["--trainer.devices=2", "--trainer.strategy=ddp"]


def command(name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in processes of its own, under a time limit."""
    return subprocess.run(
        [sys.executable, str(ROOT / "main.py"), name, *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=ROOT,
    )


def test_two_processes_find_what_one_finds(arguments: list[str], tmp_path: Path) -> None:
    """But for the rounding of float64 sums, counts exactly; each file is written once."""
    counted = [*arguments, "--importance.activations=true"]
    for name, extra in (("one", []), ("two", TWO)):
        ended = command("predict", [*counted, *extra, f"--folder={tmp_path / name}"])
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.count("identify") == 1
        assert not list((tmp_path / name).rglob("*.unfinished"))
    one, two = (
        Importance.load(tmp_path / name / "importance.safetensors") for name in ("one", "two")
    )
    assert one.texts == two.texts == {"math": 20, "language": 20}
    for name, vectors in one.sets.items():
        for weight, vector in vectors.items():
            torch.testing.assert_close(vector, two.sets[name][weight], rtol=1e-14, atol=0)
    assert one.tokens == two.tokens
    for name, vectors in one.activations.items():
        for weight, vector in vectors.items():
            assert torch.equal(vector, two.activations[name][weight])


def test_evaluation_refuses_two_processes(arguments: list[str]) -> None:
    """In a sentence that says what to do."""
    ended = command("operate", [*arguments, *TWO])
    assert ended.returncode == 2
    assert "trainer.devices: got 2 processes, but `operate` evaluates in one" in ended.stderr
    assert "Traceback" not in ended.stderr
