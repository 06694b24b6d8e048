"""Commands in processes of their own, and comparing what they leave."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mathneuro.edit import Edit
from mathneuro.importance import Importance
from tests.alike import check_vectors

ROOT = Path(__file__).parent.parent

CIRCUMSTANCES = ("seconds", "start", "end", "device", "host", "finished")
"""What two runs of the same thing may differ in."""


@dataclass(frozen=True)
class Ended:
    """How processes ended: the worst status, and what all of them printed."""

    returncode: int
    stdout: str
    stderr: str


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


def torchrun(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module in two processes that torchrun starts."""
    started = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*started, "-m", module, *words],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=ROOT,
    )


def forked(folder: Path, work: Callable[..., object], *arguments: object) -> Ended:
    """Run some work in two forked processes that find what torchrun tells its own.

    They have imported all that this process has, which takes longer than most of what they do. Use
    `command` or `torchrun` where the start of processes is the subject.

    Args:
        folder: Where to keep what they print.
        work: What each does.
        arguments: What it is given.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_work, args=(rank, port, folder, work, arguments))
        for rank in range(2)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join(timeout=180)
        each.kill()
        each.join()
    printed = [
        "".join((folder / f"{name}{rank}.txt").read_text() for rank in range(2))
        for name in ("output", "errors")
    ]
    return Ended(max(abs(each.exitcode or 0) for each in processes), *printed)


def _work(
    rank: int,
    port: int,
    folder: Path,
    work: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    sys.stdout, sys.stderr = (
        (folder / f"{name}{rank}.txt").open("w", buffering=1) for name in ("output", "errors")
    )
    for number, file in ((1, sys.stdout), (2, sys.stderr)):
        os.dup2(file.fileno(), number)
    # Threads that the parent's products ran on are not there.
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0", "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "forked",
    }  # fmt: skip
    work(*arguments)


def measured(value: Any) -> Any:  # noqa: ANN401
    """Return a record without the circumstances in which it was made."""
    if isinstance(value, dict):
        return {key: measured(each) for key, each in value.items() if key not in CIRCUMSTANCES}
    return [measured(each) for each in value] if isinstance(value, list) else value


def check_same(one: Path, two: Path) -> None:
    """Check that two folders hold the same files with the same results, bit for bit."""
    names = [
        sorted(
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and "tfevents" not in path.name
        )
        for folder in (one, two)
    ]
    assert names[0] == names[1]
    # One folder for TensorBoard's pages, or one a setting, and not one a process.
    boards = [
        {path.parent.relative_to(folder) for path in folder.rglob("*tfevents*")}
        for folder in (one, two)
    ]
    assert boards[0] == boards[1]
    for name in names[0]:
        first, second = one / name, two / name
        if name.endswith(".json"):
            assert measured(json.loads(first.read_text())) == measured(
                json.loads(second.read_text())
            ), name
        elif name.endswith((".jsonl", ".csv")):
            assert first.read_text() == second.read_text(), name
        elif "importance" in name:
            check_same_importance(Importance.load(first), Importance.load(second))
        elif name.startswith("edit"):
            assert Edit.load(first).selection.sha256() == Edit.load(second).selection.sha256()


def check_same_importance(one: Importance, two: Importance) -> None:
    """Check that importance is the same, bit for bit."""
    assert one.texts == two.texts
    assert one.data == two.data
    assert one.tokens == two.tokens
    check_vectors(one.sets, two.sets)
    check_vectors(one.activations, two.activations)
