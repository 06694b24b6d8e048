"""Running programs in processes of their own, several at once, each within limits."""

import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from mathneuro.addresses import without_addresses
from mathneuro.errors import InputError

CHILD = Path(__file__).with_name("child.py")

UNPROTECTED = b"-"
"""What a process tells first if nothing was run; a program's own words come after another sign."""

LONGEST_ANSWER = 16_384
"""Bytes that are read of what a process tells."""

LONGEST_TEXT = 1000
"""Characters that are kept of each thing that it tells."""

LONGEST_PROGRAM = 1_000_000
"""Characters of a program that is run at all."""

PATIENCE = 5
"""How many times as long as on a processor a program may take on the clock."""

LOOK_SECONDS = 0.1
"""How often it is looked whether all is over."""

STATUSES = ("ran", "failed", "no solution", "no value", "memory", "timeout", "ended", "too long")

# No modules but the standard library's, no files of compiled code, nothing from the environment.
FLAGS = ("-s", "-S", "-P", "-B", "-X", "utf8")

ENVIRONMENT = {"PYTHONHASHSEED": "0"}
"""Sets and dictionaries in the same order in every run."""


@dataclass(frozen=True)
class Limits:
    """What a program may use.

    Attributes:
        seconds: Time on a processor, the start of Python included. On the clock it may take five
            times as long, so that what else a machine does decides little.
        memory: Address space in bytes.
    """

    seconds: float = 5.0
    memory: int = 2**30

    def __post_init__(self) -> None:
        """Refuse limits that make no sense."""
        if not 0 < self.seconds <= 3600:
            raise InputError(
                f"programs.seconds: got {self.seconds}, but it must be above 0 and at most 3600"
            )
        if self.memory < 2**26:
            raise InputError(
                f"programs.memory: got {self.memory}, but Python alone needs 64 MiB; raise it"
            )


@dataclass(frozen=True)
class Outcome:
    """What came of a program.

    Attributes:
        status: ``ran``, ``failed`` (an exception), ``no solution`` (no such function), ``no value``
            (it returned None), ``memory``, ``timeout``, ``ended`` (it ended its process) or ``too
            long`` (it was not run).
        value: What ``solution()`` returned, as text; empty unless it ran.
        type: The name of its type.
        error: The name of the exception, or the number of the signal.
    """

    status: str
    value: str = ""
    type: str = ""
    error: str = ""


def run_programs(
    programs: Sequence[str], limits: Limits, workers: int | None = None
) -> list[Outcome]:
    """Run programs, several at once.

    Args:
        programs: Python programs that define ``solution()``.
        limits: What each may use.
        workers: How many run at once. None: one a processor that this process may use.

    Returns:
        What came of each, in their order.

    Raises:
        InputError: If the kernel grants no protection; nothing was run then.
    """
    over = Event()
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        try:
            return list(pool.map(partial(run_program, limits=limits, over=over), programs))
        except BaseException:
            over.set()
            pool.shutdown(cancel_futures=True)
            raise


def check_sandbox() -> None:
    """Refuse a machine on which programs cannot be run safely.

    Raises:
        InputError: If so.
    """
    if sys.platform != "linux":
        raise InputError(
            "lm_eval.programs: programs of a model are run on Linux alone, where the kernel can "
            f"take a process's rights away, but this is {sys.platform}; use Linux, or leave them "
            "out"
        )
    attempts = "open('/proc/self/status')", "__import__('socket').socket()", "os.fork()"
    program = "import os\ndef solution():\n    done = 0\n" + "".join(
        f"    try:\n        {attempt}\n        done += 1\n    except (OSError, ImportError):\n"
        "        done += 100\n"
        for attempt in attempts
    )
    found = run_program(f"{program}    return done\n", Limits())
    if (found.status, found.value) != ("ran", "300"):
        raise InputError(
            f"lm_eval.programs: the sandbox does not hold here ({found}), so that no program of a "
            "model is run; use another machine, or leave them out"
        )


def run_program(program: str, limits: Limits, over: Event | None = None) -> Outcome:
    """Run one program, which is stopped once all is over; see `run_programs`."""
    if len(program) > LONGEST_PROGRAM:
        return Outcome("too long")
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as source:
        source.write(program.encode("utf-8", "replace"))
        source.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, *FLAGS, str(CHILD), str(writing), str(math.ceil(limits.seconds)),
                 str(limits.memory), str(os.getpid())],
                stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(writing,), env=ENVIRONMENT, cwd="/", start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(writing)
        try:
            deadline = time.monotonic() + PATIENCE * limits.seconds
            told, late = _read(reading, deadline, over or Event())
        finally:
            os.close(reading)
            # It cannot have started others. Signals of any kind but this one it may ignore.
            # Popen's own way would reap it first, and its time with it.
            os.kill(process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    late |= usage.ru_utime + usage.ru_stime >= limits.seconds
    return _outcome(told, late, process.returncode)


def _read(pipe: int, deadline: float, over: Event) -> tuple[bytes, bool]:
    """Read what a process tells until it ends, says too much or is late; say whether it is late."""
    told = b""
    while len(told) <= LONGEST_ANSWER:
        if over.is_set() or time.monotonic() >= deadline:
            return told, True
        if not select.select([pipe], [], [], LOOK_SECONDS)[0]:
            continue
        part = os.read(pipe, LONGEST_ANSWER)
        if not part:
            return told, False
        told += part
    return told, False


def _outcome(told: bytes, late: bool, status: int) -> Outcome:
    """Understand what a process told; nothing of it is believed but that it is text."""
    kind, told = told[:1], told[1:]
    if kind == UNPROTECTED:
        raise InputError(
            f"lm_eval.programs: the kernel does not protect this machine from programs of a model "
            f"({_text(told.decode(errors='replace'))}), so that none is run; use another machine, "
            "or leave them out"
        )
    if late or status == -signal.SIGXCPU:
        return Outcome("timeout")
    try:
        record: Any = json.loads(told.decode())
    except (ValueError, RecursionError):
        return Outcome("ended", error=str(status))
    fields = ("status", "value", "type", "error")
    if not isinstance(record, dict) or not all(
        isinstance(record.get(field, ""), str) for field in fields
    ):
        return Outcome("ended", error=str(status))
    if record.get("status") not in STATUSES:
        return Outcome("ended", error=str(status))
    return Outcome(**{field: _text(record.get(field, "")) for field in fields})


def _text(told: str) -> str:
    """Return what a file can hold of a text, and what is the same in every run."""
    kept = told[:LONGEST_TEXT].encode("utf-8", "backslashreplace").decode()
    return str(without_addresses(kept))
