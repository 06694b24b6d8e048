"""Programs that mean harm: each ends in time, is not solved, and leaves nothing behind."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mathneuro.errors import InputError
from mathneuro.sandbox import Limits, Outcome, check_sandbox, run_programs
from mathneuro.sandbox import run as sandbox_run

LIMITS = Limits(seconds=2, memory=2**29)


def solution(body: str) -> str:
    """Make a program of the lines of its function."""
    return "import os, sys\ndef solution():\n" + textwrap.indent(textwrap.dedent(body), "    ")


def outcome(program: str) -> Outcome:
    """Run one program."""
    (found,) = run_programs([program], LIMITS)
    return found


def children() -> set[int]:
    """Return the processes that this one has started and that are still there."""
    return {
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and _parent(path) == os.getpid()
    }


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _parent(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process, no open file, and none that a program made; and secrets to look for."""
    monkeypatch.setenv("SECRET_TOKEN", "swordfish")
    monkeypatch.setattr(sandbox_run, "PATIENCE", 2)
    before, files = children(), _open_files()
    temporary = set(Path("/tmp").iterdir())
    yield
    assert children() <= before
    assert _open_files() <= files
    assert not [name for name in set(Path("/tmp").iterdir()) - temporary if "harm" in name.name]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("6 * 7", "42"),
        ("1 / 3", "0.3333333333333333"),
        ("__import__('fractions').Fraction(1, 3)", "1/3"),
        ("__import__('decimal').Decimal('1.10')", "1.10"),
        ("__import__('math').comb(5, 2)", "10"),
        ("__import__('statistics').mean([1, 2])", "1.5"),
        ("__import__('datetime').date(2024, 3, 1).toordinal()", "738946"),
        ("__import__('datetime').datetime.strptime('2024', '%Y').year", "2024"),
        ("True", "True"),
        ("float('nan')", "nan"),
        ("'12 apples'", "12 apples"),
    ],
)
def test_values_come_back_as_text(value: str, text: str) -> None:
    """Of what the standard library's mathematics gives."""
    found = outcome(solution(f"return {value}"))
    assert (found.status, found.value) == ("ran", text)


def test_runs_repeat() -> None:
    """Random numbers and the order of sets are the same in every run."""
    program = "import random\ndef solution():\n    return str([random.random(), *set('abcdefgh')])"
    assert len({each.value for each in run_programs([program] * 5, LIMITS)}) == 1


REFUSED = {
    "read a file of the system": "return open('/etc/passwd').read()",
    "read a secret file": "return open(os.path.expanduser('~/.ssh/id_rsa')).read()",
    "read this file": f"return open({__file__!r}).read()",
    "write a file": "open('/tmp/harm', 'w').write('x')",
    "write a file here": "open('harm', 'w').write('x')",
    "make a folder": "os.mkdir('/tmp/harm')",
    "make a link": "os.symlink('/etc/passwd', '/tmp/harm')",
    "remove a file": f"os.remove({__file__!r})",
    "change rights": f"os.chmod({__file__!r}, 0)",
    "list files": "return os.listdir('/')",
    "open a file by number": "return os.open('/etc/passwd', os.O_RDONLY)",
    "write memory through a file": "open('/proc/self/mem', 'r+b')",
    "read the environment of the parent": "return open(f'/proc/{os.getppid()}/environ').read()",
    "start a process": "os.system('touch /tmp/harm')\nos.posix_spawn('/bin/sh', ['sh'], {})",
    "become another program": "os.execv('/bin/sh', ['sh', '-c', 'touch /tmp/harm'])",
    "fork": "return os.fork()",
    "start a thread": "import _thread\n_thread.start_new_thread(print, ())\nraise OSError",
    "kill the parent": "os.kill(os.getppid(), 9)",
    "kill everything": "os.kill(-1, 9)",
    "kill the group": "os.killpg(0, 9)",
    "raise its limits": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "change its user": "os.setuid(0)",
    "leave its session": "os.setsid()",
    "make a pipe": "return os.pipe()",
    "trace the parent": "import ctypes\nlibrary = ctypes.CDLL(None)\n"
    "if library.ptrace(16, os.getppid(), 0, 0) != 0:\n    raise OSError",
    "write the parent's memory": "import ctypes\nlibrary = ctypes.CDLL(None)\n"
    "if library.process_vm_writev(os.getppid(), 0, 0, 0, 0, 0) < 0:\n    raise OSError",
    "take the protection back": "import ctypes\nlibrary = ctypes.CDLL(None)\n"
    "if library.prctl(22, 0, 0, 0, 0) != 0:\n    raise OSError",
    "call the kernel itself": "import ctypes\nlibrary = ctypes.CDLL(None)\n"
    "if library.syscall(257, -100, b'/etc/passwd', 0) < 0:\n    raise OSError",
    "make other namespaces": "import ctypes\nlibrary = ctypes.CDLL(None)\n"
    "if library.unshare(0x10000000) != 0:\n    raise OSError",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_what_a_program_may_not_do_fails(body: str) -> None:
    """As an error in the program; what it was to touch is as it was."""
    found = outcome(solution(body))
    assert found.status in ("failed", "ended"), found
    assert not Path("/tmp/harm").exists()
    assert Path(__file__).stat().st_size > 0


def test_nothing_comes_over_the_network() -> None:
    """Neither to this machine nor to others, by no kind of socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        programs = [
            f"import socket\ndef solution():\n    socket.create_connection(('127.0.0.1', {port}))",
            solution("import _socket\n_socket.socket(1, 1)"),
            "import urllib.request\ndef solution():\n    urllib.request.urlopen('http://a.b')",
        ]
        found = run_programs(programs, LIMITS)
        assert {each.status for each in found} == {"failed"}
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()


def test_secrets_of_the_environment_are_not_there() -> None:
    """It is empty but for what makes runs repeat."""
    assert "swordfish" not in outcome(solution("return dict(os.environ)")).value
    assert outcome(solution("return dict(os.environ)")).status == "ran"


ENDLESS = {
    "loop": "while True: pass",
    "sleep": "import time\ntime.sleep(1000)",
    "wait deaf to signals": "import signal, time\nfor n in range(1, 65):\n"
    "    try:\n        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n"
    "        pass\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
    "while True:\n    time.sleep(1)",
    "print without end": "while True:\n    print('x' * 10000)\n    os.write(1, b'y' * 10000)",
    "fork bomb": "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "catch everything": "while True:\n    try:\n        while True: pass\n"
    "    except BaseException:\n        pass",
    "regular expression": "import re\nreturn re.match('(a+)+$', 'a' * 40 + 'b')",
    "huge power": "return len(str(9 ** 9 ** 9))",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS.keys())
def test_what_does_not_end_is_ended(body: str) -> None:
    """In time."""
    start = time.monotonic()
    found = outcome(solution(body))
    assert found.status in ("timeout", "memory"), found
    assert time.monotonic() - start < 2 * LIMITS.seconds + 2


@pytest.mark.parametrize("body", ["x = [0] * 10**10", "x = bytearray(10 * 2**30)", "x = 'x'\n"
                                  "while True: x += x"])  # fmt: skip
def test_memory_is_limited(body: str) -> None:
    """It is an error of the program, and no trouble of the machine."""
    assert outcome(solution(body)).status == "memory"


ENDINGS = {
    "os._exit": ("os._exit(0)", "ended"),
    "sys.exit": ("sys.exit(0)", "failed"),
    "exit in a handler": ("import atexit\natexit.register(print)\nraise SystemExit", "failed"),
    "a signal to itself": ("os.abort()", "ended"),
    "bad memory": ("import ctypes\nctypes.string_at(0)", "ended"),
    "recursion": ("return solution()", "failed"),
    "recursion without a limit": ("sys.setrecursionlimit(10**8)\nreturn eval('-' * 10**6)", None),
    "its own exception": ("raise type('A' * 5000, (BaseException,), {})", "failed"),
    "an integer that is too long": ("return 10**5000", "failed"),
}


@pytest.mark.parametrize(("body", "status"), ENDINGS.values(), ids=ENDINGS.keys())
def test_other_ends(body: str, status: str | None) -> None:
    """None is taken for an answer."""
    found = outcome(solution(body))
    assert found.status == status or (status is None and found.status != "ran")
    assert found.value == ""
    assert len(found.error) <= 1000


HOSTILE_VALUES = {
    "text that raises": "class A:\n    def __str__(self): raise KeyboardInterrupt\nreturn A()",
    "text without end": "class A:\n    def __str__(self):\n        while True: pass\nreturn A()",
    "text that ends it": "class A:\n    def __str__(self): os._exit(3)\nreturn A()",
    "no text": "class A:\n    def __str__(self): return 5\nreturn A()",
}


@pytest.mark.parametrize("body", HOSTILE_VALUES.values(), ids=HOSTILE_VALUES.keys())
def test_values_with_tricks(body: str) -> None:
    """Their text is made in the sandbox."""
    assert outcome(solution(body)).status in ("failed", "ended", "timeout")


def test_a_program_without_a_value_did_not_give_one() -> None:
    """As one that prints its answer."""
    assert outcome(solution("print(5)")) == Outcome("no value")


def test_text_that_no_file_can_hold_is_written_otherwise() -> None:
    """Any model can write it, and what came of all questions has to be kept."""
    assert outcome(solution("return '\\ud800'")).value.encode() == rb"\ud800"


def test_no_address_in_memory_is_told() -> None:
    """It differs from run to run."""
    assert outcome(solution("yield 1")).value == "<generator object solution>"


def test_time_on_a_processor_counts() -> None:
    """Waiting is no work, while a program that works is stopped before its patience ends."""
    assert outcome(solution("import time\ntime.sleep(2.5)\nreturn 1")).status == "ran"
    start = time.monotonic()
    found = run_programs([solution("while True: pass")] * 6, Limits(0.5), workers=6)
    assert {each.status for each in found} == {"timeout"}
    assert time.monotonic() - start < 6 * 2 * 0.5 + 3


def test_long_values_are_cut() -> None:
    """What is read has an end."""
    assert len(outcome(solution("return 'x' * 10**7")).value) == 1000


@pytest.mark.parametrize(
    "told",
    [
        "b'x' * 10**6",
        "b'[' * 10**5",
        "b'null'",
        'b\'{"status": "solved", "value": "5"}\'',
        "b'{}'",
        "b'-'",
        'b\'{"status": "unprotected", "error": "x"}\'',
        "b'{\"status\": 5}'",
        "b'\\xff\\xfe'",
        "b''",
    ],
)
def test_nonsense_in_the_answer_is_no_answer(told: str) -> None:
    """A program that finds the pipe can write what it likes there."""
    body = f"""
    for number in range(3, 200):
        try:
            data = {told}
            while data:
                data = data[os.write(number, data):]
            os.close(number)
        except OSError:
            pass
    os._exit(0)
    """
    assert outcome(solution(body)).status == "ended"


def test_replaced_builtins_harm_nobody() -> None:
    """But the program itself."""
    program = """
        import builtins, json, os
        builtins.str = builtins.type = builtins.print = builtins.dict = None
        json.dumps = os.write = os._exit = lambda *_: 1 / 0
        def solution():
            return 42
    """
    assert outcome(textwrap.dedent(program)).status in ("failed", "ended")
    assert outcome(solution("return 42")).value == "42"


@pytest.mark.parametrize(
    "program",
    ["", "x = 5", "def solution(:", "\0", "def solution():\n  return 1\n\ud800", "solution = 5",
     "import sympy\ndef solution(): return 1", "def solution(x): return x", "(" * 10_000],
)  # fmt: skip
def test_programs_that_are_none(program: str) -> None:
    """Each is told."""
    assert outcome(program).status in ("failed", "no solution")
    assert outcome("x" * 1_000_001).status == "too long"


def test_many_run_at_once_and_keep_their_order() -> None:
    """Some of them bad."""
    programs = [
        solution("while True: pass") if number % 10 == 3 else solution(f"return {number}")
        for number in range(30)
    ]
    found = run_programs(programs, Limits(seconds=1.5), workers=4)
    for number, each in enumerate(found):
        assert each.status == ("timeout" if number % 10 == 3 else "ran")
        assert each.value == ("" if number % 10 == 3 else str(number))


def test_a_program_ends_with_who_started_it(tmp_path: Path) -> None:
    """Even if that is killed."""
    code = (
        "from mathneuro.sandbox import Limits, run_programs\n"
        "run_programs(['import time\\ndef solution(): time.sleep(600)'], Limits(600))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while not (started := _children_of(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert started
        time.sleep(0.5)
    finally:
        process.kill()
        process.wait()
    while any(Path(f"/proc/{each}").exists() for each in started):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _children_of(process: int) -> list[int]:
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and _parent(path) == process
    ]


def test_an_interruption_ends_programs() -> None:
    """Ctrl-C, too, leaves none, at once."""
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_programs([solution("import time\ntime.sleep(1000)")] * 200, Limits(30))
    assert time.monotonic() - start < 5


def test_the_sandbox_is_tried_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What does not hold is not used."""
    check_sandbox()
    text = sandbox_run.CHILD.read_text()
    protection = "protect(seconds, memory, parent)"
    assert text.count(protection) == 1
    (tmp_path / "child.py").write_text(text.replace(protection, "pass"))
    shutil.copy(sandbox_run.CHILD.with_name("protect.py"), tmp_path)
    monkeypatch.setattr(sandbox_run, "CHILD", tmp_path / "child.py")
    with pytest.raises(InputError, match="the sandbox does not hold here"):
        check_sandbox()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(InputError, match="run on Linux alone"):
        check_sandbox()


def test_limits_that_make_no_sense() -> None:
    """One sentence each."""
    with pytest.raises(InputError, match=r"programs\.seconds: got 0"):
        Limits(seconds=0)
    with pytest.raises(InputError, match=r"programs\.memory: got 1000"):
        Limits(memory=1000)
