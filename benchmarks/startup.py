"""Start-up of the command line against importing Lightning, each in a process of its own."""

import subprocess
import sys
from functools import partial
from pathlib import Path

from jsonargparse import auto_cli

from benchmarks.measuring import Figure, alternate, publish, seconds

ROOT = Path(__file__).parent.parent


def start(*arguments: str) -> float:
    """Time a Python process, in seconds."""
    command = [sys.executable, *arguments]
    return seconds(
        partial(subprocess.run, command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    )


def main(rounds: int = 5, output: Path | None = None) -> None:
    """Measure and print.

    Args:
        rounds: How often each is timed.
        output: A JSON file to write the figure to.
    """
    start("main.py", "--help")
    ratio = alternate(
        lambda: start("main.py", "--help"), lambda: start("-c", "import lightning"), rounds
    )
    details = {"main.py --help, s": ratio.first, "import lightning, s": ratio.second}
    figure = Figure(
        "7. start-up / import lightning", "", ratio.value, 1.2, None, details, ratio.spread
    )
    publish([figure], output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
