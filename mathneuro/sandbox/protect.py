"""What a process gives up before it runs a stranger's program; the kernel holds it to that.

Only the standard library: the process runs without any other. Afterwards it can compute, take
memory up to a limit, tell the time, and use the few pipes that are open. All other calls of the
system fail: opening files of any kind, sockets, new processes and threads, signals, tracing.
"""

import ctypes
import os
import platform
import resource
import signal
import struct

NAMES = (
    "brk", "clock_getres", "clock_gettime", "clock_nanosleep", "close", "exit", "exit_group",
    "fstat", "futex", "getpid", "getrandom", "getrusage", "gettid", "gettimeofday", "lseek",
    "madvise", "mmap", "mprotect", "mremap", "munmap", "nanosleep", "read", "restart_syscall",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_yield", "sigaltstack", "times",
    "write",
)  # fmt: skip
"""The calls that are left."""

MACHINES = {
    "x86_64": (
        0xC000003E,
        (12, 229, 228, 230, 3, 60, 231, 5, 202, 39, 318, 98, 186, 96, 8, 28, 9, 10, 25, 11, 35,
         0, 219, 13, 14, 15, 24, 131, 100, 1),
    ),
    "aarch64": (
        0xC00000B7,
        (214, 114, 113, 115, 57, 93, 94, 80, 98, 172, 278, 165, 178, 169, 62, 233, 222, 226, 216,
         215, 101, 63, 128, 134, 135, 139, 124, 132, 153, 64),
    ),
}  # fmt: skip
"""By kind of machine: how the kernel calls it, and the numbers of the calls in `NAMES`."""

SET_DEATH_SIGNAL, SET_DUMPABLE, SET_FILTER, SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38
FILTER_MODE = 2

LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06
"""Instructions of a filter: load a word, compare it, end."""

NUMBER, MACHINE = 0, 4
"""Where the words of a call lie."""

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050001
"""How a filter ends: the last is the error EPERM."""


def protect(seconds: int, memory: int, parent: int) -> None:
    """Give up everything but computing, for good.

    Args:
        seconds: Time on a processor after which the kernel ends the process.
        memory: Bytes of address space.
        parent: Number of the process that started this one; it ends when that does.

    Raises:
        OSError: If the kernel grants one of the protections not.
    """
    kernel = ctypes.CDLL(None, use_errno=True)
    _set(kernel, SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        raise OSError("the process that started this one is gone")
    _set(kernel, SET_DUMPABLE, 0)
    limits = {
        resource.RLIMIT_AS: (memory, memory),
        # First a signal that tells what it is, then the one that cannot be ignored.
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (0, 0),
    }
    for kind, most in limits.items():
        resource.setrlimit(kind, most)
    _set(kernel, SET_NO_NEW_PRIVILEGES, 1)
    machine, numbers = _machine()
    code = _filter(machine, numbers)
    text = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    )
    _set(kernel, SET_FILTER, FILTER_MODE, ctypes.addressof(program))


def is_known_machine() -> bool:
    """Tell whether the numbers of the kernel's calls are known here."""
    return platform.system() == "Linux" and platform.machine() in MACHINES


def _machine() -> tuple[int, tuple[int, ...]]:
    if not is_known_machine():
        raise OSError(f"programs can be run on Linux alone, on {' or '.join(MACHINES)}")
    return MACHINES[platform.machine()]


def _filter(machine: int, numbers: tuple[int, ...]) -> bytes:
    """Write the program by which the kernel decides about each call."""
    count = len(numbers)
    steps = [(LOAD, 0, 0, MACHINE), (EQUALS, 1, 0, machine), (RETURN, 0, 0, KILL),
             (LOAD, 0, 0, NUMBER)]  # fmt: skip
    # A call that is left jumps over the rest of the comparisons and over the refusal.
    steps += [(EQUALS, count - place, 0, number) for place, number in enumerate(numbers)]
    steps += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _set(kernel: ctypes.CDLL, what: int, *values: int) -> None:
    filled = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if kernel.prctl(what, *filled) != 0:
        raise OSError(ctypes.get_errno(), f"the kernel refuses a protection (prctl {what})")
