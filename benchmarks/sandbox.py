"""Running programs in the sandbox against starting Python and doing nothing."""

import os
import subprocess
import sys
from pathlib import Path

from jsonargparse import auto_cli

from benchmarks.measuring import Figure, alternate, publish, seconds
from mathneuro.programs.examples import EXAMPLES
from mathneuro.sandbox import Limits, run_programs


def main(programs: int = 16, rounds: int = 5, output: Path | None = None) -> None:
    """Measure and print.

    Args:
        programs: How many are run at a time.
        rounds: How often that is timed.
        output: A JSON file to write the figures to.
    """
    texts = [EXAMPLES[number % len(EXAMPLES)].program for number in range(programs)]
    bare = [sys.executable, "-I", "-S", "-c", "pass"]

    def start() -> None:
        for _ in texts:
            subprocess.run(bare, check=True)

    bare_start = alternate(
        lambda: seconds(lambda: run_programs(texts, Limits(), 1)), lambda: seconds(start), rounds
    )
    workers = len(os.sched_getaffinity(0))
    gain = alternate(
        lambda: seconds(lambda: run_programs(texts, Limits(), 1)),
        lambda: seconds(lambda: run_programs(texts, Limits())),
        rounds,
    )
    figures = [
        Figure("a program in the sandbox / a start of Python", "", bare_start.value,
               details={"a second": programs / bare_start.first,
                        "starts a second": programs / bare_start.second},
               spread=bare_start.spread),
        Figure(f"programs one by one / {workers} at once", "", gain.value,
               details={"one by one, s": gain.first, "at once, s": gain.second},
               spread=gain.spread),
    ]  # fmt: skip
    publish(figures, output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
