"""Time and memory of selection, against `torch.topk` for every proportion and set of texts.

First the memory: how far the process's peak rises, as the operating system counts it, while all
proportions are selected in one large matrix; positions that come back are counted in. Then the
time, on a random Llama with importance in memory: all proportions of one weight after the other,
cutoffs included, alternately with `torch.topk`; and one setting of a sweep whose cutoffs are known,
alternately with a bare pass over the weights. Positions are compared with those of a stable sort.
Prints medians, and the medians of the ratios of neighbouring rounds.
"""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch
from jsonargparse import auto_cli
from rich.console import Console
from torch import Tensor, nn

from benchmarks.parts import random_llama
from mathneuro.cutoffs import Cutoffs
from mathneuro.grid import PROPORTIONS
from mathneuro.importance import Importance, scores
from mathneuro.layers import find_linear_weights
from mathneuro.methods import Candidates, select
from mathneuro.methods.mathneuro import mathneuro
from mathneuro.selection import number_selected
from mathneuro.terminal import quieten
from mathneuro.weights import Weight

SETS = ("math", "language")


def random_importance(weights: Mapping[str, Weight]) -> Importance:
    """Draw importance; what matters for one set mostly matters for the other."""
    vectors: dict[str, dict[str, Tensor]] = {name: {} for name in SETS}
    for weight, each in weights.items():
        common = torch.randn(each.in_features, dtype=torch.float64)
        for name in SETS:
            own = torch.randn(each.in_features, dtype=torch.float64)
            vectors[name][weight] = (common + own / 3).exp()
    return Importance(vectors, dict.fromkeys(SETS, 1))


def select_all(weights: Mapping[str, Weight], importance: Importance) -> None:
    """Find what is selected at all proportions, weight by weight, cutoffs included."""
    for name, weight in weights.items():
        math, language = (importance.sets[each][name] for each in SETS)
        cutoffs = Cutoffs(PROPORTIONS)
        for proportion in PROPORTIONS:
            candidates = Candidates(
                name, weight.matrix, math, (language,), proportion, seed=0, cutoffs=cutoffs
            )
            mathneuro(candidates)


def topk_all(weights: Mapping[str, Weight], importance: Importance) -> None:
    """Find the same with `torch.topk`; scores are computed once for all proportions."""
    for name, weight in weights.items():
        flat = [scores(weight.matrix, importance.sets[each][name]).flatten() for each in SETS]
        for proportion in PROPORTIONS:
            count = number_selected(weight.numel, proportion)
            math, language = (torch.zeros(weight.numel, dtype=torch.bool) for _ in SETS)
            for mask, each in zip((math, language), flat, strict=True):
                mask[each.topk(count).indices] = True
            (math & ~language).nonzero()


def bare_pass(weights: Mapping[str, Weight]) -> None:
    """Compute the magnitude of every weight."""
    for weight in weights.values():
        weight.matrix.abs()


def check(weights: Mapping[str, Weight], importance: Importance, cutoffs: Cutoffs) -> None:
    """Compare all positions with those of a stable sort.

    Raises:
        RuntimeError: If they differ.
    """
    found = {
        proportion: select(weights, importance, proportion=proportion, cutoffs=cutoffs)
        for proportion in PROPORTIONS
    }
    for name, weight in weights.items():
        math, language = (
            scores(weight.matrix, importance.sets[each][name])
            .flatten()
            .sort(descending=True, stable=True)
            .indices
            for each in SETS
        )
        for proportion, selection in found.items():
            count = number_selected(weight.numel, proportion)
            mask = torch.zeros(weight.numel, dtype=torch.bool)
            mask[math[:count]] = True
            mask[language[:count]] = False
            if not torch.equal(selection.positions[name], mask.nonzero().flatten()):
                raise RuntimeError(f"The positions in {name} at {proportion} are wrong.")


def compare(
    rounds: int, first: Callable[[], object], second: Callable[[], object]
) -> tuple[float, float, float]:
    """Time two kinds of work alternately.

    Returns:
        The median seconds of each, and the median ratio of the first to the second.
    """
    pairs = [(seconds(first), seconds(second)) for _ in range(rounds)]
    medians = (statistics.median(times) for times in zip(*pairs, strict=True))
    return *medians, statistics.median(one / other for one, other in pairs)


def seconds(work: Callable[[], object]) -> float:
    """Time some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak() -> int:
    """Return the largest resident memory that the process had so far, in bytes."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def memory_of_one(side: int) -> float:
    """Measure how many bytes a parameter it takes to select in one square matrix of random weights.

    The positions that come back are counted in.
    """
    matrix = find_linear_weights(nn.Sequential(nn.Linear(side, side, bias=False))).weights
    importance = random_importance(matrix)
    before = peak()
    select_all(matrix, importance)
    return (peak() - before) / side**2


def main(parameters: int = 135_000_000, side: int = 8192, rounds: int = 5, seed: int = 0) -> None:
    """Measure and print.

    Args:
        parameters: Size of the random Llama.
        side: Rows and columns of the matrix whose selection's memory is measured.
        rounds: How often each is timed.
        seed: Seed of weights and importance.
    """
    quieten()
    console = Console(highlight=False, soft_wrap=True)
    torch.manual_seed(seed)
    taken = memory_of_one(side)
    console.print(f"memory, {side**2 / 1e6:.0f} M weights: {taken:.1f} bytes a weight")
    weights = find_linear_weights(random_llama(parameters)).weights
    importance = random_importance(weights)
    cutoffs = Cutoffs(PROPORTIONS)
    check(weights, importance, cutoffs)
    total = sum(weight.numel for weight in weights.values()) / 1e6
    what = f"{total:.1f} M weights, {torch.get_num_threads()} threads"
    slow, fast, ratio = compare(
        rounds, lambda: topk_all(weights, importance), lambda: select_all(weights, importance)
    )
    console.print(
        f"{len(PROPORTIONS)} proportions, {what}: topk {slow:.2f} s, selection {fast:.2f} s, "
        f"{ratio:.1f} times as fast"
    )
    for proportion in PROPORTIONS:
        one = partial(select, weights, importance, proportion=proportion, cutoffs=cutoffs)
        fast, slow, ratio = compare(rounds, one, lambda: bare_pass(weights))
        console.print(
            f"one setting at {proportion}, {what}: bare pass {slow:.3f} s, selection {fast:.3f} s, "
            f"{ratio:.2f} times as long"
        )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
