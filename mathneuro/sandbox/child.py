"""The process of one program: gives everything up, runs it, and tells what `solution()` returned.

Run as a script, with the standard library alone. The program comes through standard input; what it
is worth goes through the pipe whose number is the first argument, as JSON.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

# Afterwards no file can be opened, so that all that programs may import has to be here already.
for _name in (
    "_strptime", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime",
    "decimal", "enum", "fractions", "functools", "heapq", "itertools", "math", "numbers",
    "operator", "re", "statistics", "string", "typing",
):  # fmt: skip
    __import__(_name)

PROTECTED, UNPROTECTED = "+", "-"
"""First character of what is told: a program was run, or could not be run safely."""

LONGEST = 1000
"""Characters of a value or an error's name that are told."""


def main() -> None:
    """Run the program of standard input."""
    pipe, seconds, memory, parent = (int(each) for each in sys.argv[1:5])
    source = sys.stdin.buffer.read()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)
    write, dumps, leave = os.write, json.dumps, os._exit
    random.seed(0)
    time.localtime()
    sys.path.insert(0, str(Path(__file__).parent))
    from protect import protect  # type: ignore[import-not-found]

    sys.path.clear()
    try:
        protect(seconds, memory, parent)
    except OSError as error:
        write(pipe, f"{UNPROTECTED}{error}".encode())
        leave(0)
    # What is first in the pipe comes from here; only what follows can be a program's.
    write(pipe, PROTECTED.encode())
    told = {"status": "ran", **_run(source)}
    write(pipe, dumps(told).encode())
    leave(0)


def _run(source: bytes) -> dict[str, str]:
    """Run a program and call its ``solution()``; nothing that it raises gets out."""
    scope: dict[str, object] = {"__name__": "program"}
    try:
        exec(compile(source, "program", "exec"), scope)
        solution = scope.get("solution")
        if not callable(solution):
            return {"status": "no solution"}
        value = solution()
        if value is None:
            return {"status": "no value"}
        return {"value": str(value)[:LONGEST], "type": type(value).__name__[:LONGEST]}
    except MemoryError:
        return {"status": "memory"}
    except BaseException as error:
        return {"status": "failed", "error": type(error).__name__[:LONGEST]}


if __name__ == "__main__":
    main()
