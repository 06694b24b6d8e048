"""How the benchmarks measure: alternately, medians of ratios, and figures with goals."""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from mathneuro.files import write_json


@dataclass(frozen=True)
class Figure:
    """A figure that says the same on any machine: a ratio of two things measured in one run.

    Attributes:
        what: What it is.
        model: What it was measured on.
        value: The ratio.
        at_most: The goal, if it should be small.
        at_least: The goal, if it should be large.
        details: The medians that it comes from, and all that one needs to read it.
        spread: The smallest and the largest ratio of all rounds. None: there was one.
    """

    what: str
    model: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    details: dict[str, Any] | None = None
    spread: tuple[float, float] | None = None

    @property
    def goal(self) -> str:
        """The goal in words."""
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return "" if self.at_least is None else f"at least {self.at_least:g}"

    @property
    def met(self) -> str:
        """Whether the goal is met; empty if there is none."""
        if not self.goal:
            return ""
        small = self.at_most is None or self.value <= self.at_most
        large = self.at_least is None or self.value >= self.at_least
        return "yes" if small and large else "no"


def now() -> float:
    """Return the time in seconds once all that was asked of a GPU is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(work: Callable[[], object]) -> float:
    """Time some work, in seconds."""
    start = now()
    work()
    return now() - start


@dataclass(frozen=True)
class Ratio:
    """Two things measured alternately.

    Attributes:
        first: Median of the one.
        second: Median of the other.
        value: Median ratio of the first to the second in a round.
        spread: The smallest and the largest ratio of all rounds.
    """

    first: float
    second: float
    value: float
    spread: tuple[float, float]


def alternate(first: Callable[[], float], second: Callable[[], float], rounds: int) -> Ratio:
    """Measure two things alternately, each first in every other round.

    A machine that gets slower or faster meanwhile does the same to both; what is left of that in a
    round points the other way in the next.

    Args:
        first: Does and measures the one.
        second: Does and measures the other.
        rounds: How often.
    """
    pairs = []
    for round_ in range(rounds):
        if round_ % 2:
            other = second()
            pairs.append((first(), other))
        else:
            pairs.append((first(), second()))
    ratios = [one / other for one, other in pairs]
    one, other = (statistics.median(each) for each in zip(*pairs, strict=True))
    return Ratio(one, other, statistics.median(ratios), (min(ratios), max(ratios)))


def peak_bytes(work: Callable[[], object]) -> int:
    """Return by how much the memory that tensors take rises at most while something is done.

    As torch's own allocators count it: on the GPU, or on the CPU.
    """
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        work()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    events = [event for event in events if event["name"] == "[memory]"]
    totals, level = [0], 0
    for event in sorted(events, key=lambda event: event["ts"]):
        level += event["args"]["Bytes"]
        totals.append(level)
    return max(totals)


def publish(figures: Sequence[Figure], output: Path | None = None) -> None:
    """Print figures as a table.

    Args:
        figures: The figures.
        output: A JSON file to write them to, too.
    """
    table = Table("figure", "model", "value", "spread", "goal", "met", "details")
    for each in figures:
        details = ", ".join(f"{key} {_short(value)}" for key, value in (each.details or {}).items())
        spread = "" if each.spread is None else " to ".join(map(_short, each.spread))
        value = _short(each.value)
        table.add_row(each.what, each.model, value, spread, each.goal, each.met, details)
    # In a file or a pipe a table of the usual 80 columns could not be read.
    width = None if sys.stdout.isatty() else 160
    Console(highlight=False, width=width).print(table)
    if output is not None:
        write_json(output, [asdict(each) | {"met": each.met} for each in figures])


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
