"""All benchmarks, each in a process of its own, as one table and one JSON file.

python -m benchmarks
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import torch
from jsonargparse import auto_cli

from benchmarks.measuring import Figure, publish

ROOT = Path(__file__).parent.parent

RANDOM = ["--parameters", "135000000"]

TWO_PROCESSES = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]

BENCHMARKS: list[list[str]] = [
    ["identification"],
    ["identification", *RANDOM, "--num_samples", "60", "--naive_samples", "10"],
    ["grid"],
    ["grid", *RANDOM, "--num_samples", "12", "--repeats", "1"],
    ["selection", *RANDOM],
    ["edits"],
    ["edits", *RANDOM],
    ["export", *RANDOM],
    ["sandbox"],
    ["startup"],
    ["sweep"],
    ["sweep", *RANDOM, "--num_samples=30", "--limit=30", "--proportions=[0.01, 0.05]"],
    ["processes"],
    ["growth"],
]
"""The benchmarks, each with its options."""


Name = Literal[
    "identification",
    "grid",
    "selection",
    "edits",
    "export",
    "sandbox",
    "startup",
    "sweep",
    "processes",
    "growth",
]


def main(output: Path = Path("benchmarks.json"), only: list[Name] | None = None) -> None:
    """Run them and print all figures.

    Args:
        output: The JSON file to write the figures to.
        only: Names of those to run. null: all.
    """
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        for name, *options in BENCHMARKS:
            if only is not None and name not in only:
                continue
            module = ["-m", f"benchmarks.{name}", *options, "--output", str(path)]
            launcher = TWO_PROCESSES if name == "processes" else []
            subprocess.run([sys.executable, *launcher, *module], check=True, cwd=ROOT)
            for record in json.loads(path.read_text()):
                record.pop("met")
                figures.append(Figure(**record))
    publish(figures, output)
    sys.stdout.write(f"torch {torch.__version__}; also in {output}\n")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
