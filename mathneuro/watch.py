"""Whether the processes that this one belongs with are still there; it ends when they are not.

A process that waits for another within a library, as for its start, would not notice for long.
Nothing but the standard library is imported, so that this begins before all else.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from subprocess import Popen

LOOK_SECONDS = 0.25
"""How often is looked."""

GRACE_SECONDS = 1.5
"""How long a process has to notice by itself, or to be done."""

END_SECONDS = 3.0
"""How long it has to end once it is told to, before it is ended in the middle of what it does."""

STATUS = 2
"""Exit status of a process that ends because another one did."""

PARENT = "trainer: the process that started this one was killed, so that the run ends"

STARTED_BY = "MATHNEURO_STARTED_BY"
"""Where a process that is started finds who started it, which may be gone before it can look."""

_parent = int(os.environ.get(STARTED_BY, os.getppid()))
_over = threading.Event()
_threads: list[threading.Thread] = []
_reasons: list[str] = []


def _begin_as_fork() -> None:
    """Watch the process that forked this one, with no thread of its own."""
    global _parent
    _parent = os.getppid()
    _threads.clear()


os.register_at_fork(after_in_child=_begin_as_fork)


def is_orphan() -> bool:
    """Tell whether the process that started this one has gone."""
    return os.getppid() != _parent


def watch_parent() -> None:
    """End when the process that started this one has gone, if that makes it one of several."""
    # Set for the processes that Lightning or torchrun starts.
    if "LOCAL_RANK" in os.environ and not any(thread.is_alive() for thread in _threads):
        _start(lambda: PARENT if is_orphan() else None, [])


def watch_children(children: Sequence[Popen[bytes]]) -> None:
    """End when one of the processes that this one started failed.

    Args:
        children: The processes, in the order of their ranks, from 1.
    """

    def find() -> str | None:
        for rank, child in enumerate(children, start=1):
            if child.poll():
                return f"trainer: process {rank} of this run ended early ({_how(child.returncode)})"
        return None

    _start(find, children)


@contextmanager
def starting() -> Iterator[None]:
    """Let processes that are started in this block know who started them."""
    os.environ[STARTED_BY] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[STARTED_BY]


@contextmanager
def watching() -> Iterator[None]:
    """Watch in this block alone: after it a run is over, whatever else ends."""
    _over.clear()
    _reasons.clear()
    try:
        yield
    finally:
        _over.set()


def reason() -> str | None:
    """Return what went wrong, if this process was told to end because of it."""
    return _reasons[0] if _reasons else None


def _start(find: Callable[[], str | None], children: Sequence[Popen[bytes]]) -> None:
    thread = threading.Thread(target=_watch, args=(find, children), daemon=True)
    _threads.append(thread)
    thread.start()


def _watch(find: Callable[[], str | None], children: Sequence[Popen[bytes]]) -> None:
    while not _over.wait(LOOK_SECONDS):
        sentence = find()
        if sentence is None:
            continue
        if _over.wait(GRACE_SECONDS):
            return
        _reasons.append(sentence)
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            # The main thread restores what it changed, unless it waits within a library.
            os.kill(os.getpid(), signal.SIGTERM)
            if _over.wait(END_SECONDS):
                return
        for child in children:
            child.kill()
        if tells():
            sys.stderr.write(f"error: {sentence}\n")
            sys.stderr.flush()
        os._exit(STATUS)


def tells() -> bool:
    """Tell whether this process speaks for its machine: the first that is left on it."""
    # Set by Lightning and torchrun, and by SLURM.
    rank = os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", "0"))
    without_first = is_orphan() and "TORCHELASTIC_RUN_ID" not in os.environ
    return rank == ("1" if without_first else "0")


def _how(status: int) -> str:
    """Say how a process ended."""
    if status > 0:
        return f"status {status}; see what it said last"
    advice = "; see whether the machine ran out of memory" if status == -signal.SIGKILL else ""
    return f"{signal.Signals(-status).name}{advice}"
