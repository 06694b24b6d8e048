"""Time and memory of selection, against `torch.topk` for every proportion and set of texts.

First the memory: how far the process's peak rises, as the operating system counts it, while all
proportions are selected in one large matrix; positions that come back are counted in. Then the
time, on a random Llama with importance in memory: all proportions of one weight after the other,
cutoffs included, alternately with `torch.topk`; and one setting of a sweep whose cutoffs are known,
alternately with a bare pass over the weights. Positions are compared with those of a stable sort.
"""

import resource
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from jsonargparse import auto_cli
from torch import Tensor, nn

from benchmarks.measuring import Figure, alternate, publish, seconds
from benchmarks.parts import load, name_of
from mathneuro.grid import PROPORTIONS
from mathneuro.importance import Importance, scores
from mathneuro.layers import find_linear_weights
from mathneuro.methods import Candidates, select
from mathneuro.methods.mathneuro import mathneuro
from mathneuro.selection import number_selected
from mathneuro.terminal import quieten
from mathneuro.tops import Tops
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
        tops = Tops(PROPORTIONS, together=True)
        for proportion in PROPORTIONS:
            candidates = Candidates(
                name, weight.matrix, math, (language,), proportion, seed=0, tops=tops
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


def check(weights: Mapping[str, Weight], importance: Importance, tops: Tops) -> None:
    """Compare all positions with those of a stable sort.

    Raises:
        RuntimeError: If they differ.
    """
    found = {
        proportion: select(weights, importance, proportion=proportion, tops=tops)
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


def main(
    parameters: int | None = None,
    side: int = 8192,
    rounds: int = 5,
    seed: int = 0,
    output: Path | None = None,
) -> None:
    """Measure and print.

    Args:
        parameters: Size of a random Llama to measure. null: the shipped model.
        side: Rows and columns of the matrix whose selection's memory is measured.
        rounds: How often each is timed.
        seed: Seed of weights and importance.
        output: A JSON file to write the figures to.
    """
    quieten()
    torch.manual_seed(seed)
    bytes_each = memory_of_one(side)
    module = load(parameters)
    weights = module.candidates.weights
    importance = random_importance(weights)
    tops = Tops(PROPORTIONS)
    check(weights, importance, tops)
    name, count = name_of(module), len(PROPORTIONS)
    ratio = alternate(
        lambda: seconds(partial(topk_all, weights, importance)),
        lambda: seconds(partial(select_all, weights, importance)),
        rounds,
    )
    figures = [
        Figure(f"4. masks at {count} proportions: topk / selection", name, ratio.value, None, 10,
               {"topk, s": ratio.first, "selection, s": ratio.second}, ratio.spread),
        Figure("4. memory of a selection, bytes a weight of the largest matrix", name, bytes_each,
               16, details={"weights of the matrix": side**2}),
    ]  # fmt: skip
    for proportion in (min(PROPORTIONS), max(PROPORTIONS)):
        one = partial(select, weights, importance, proportion=proportion, tops=tops)
        ratio = alternate(
            partial(seconds, one), lambda: seconds(partial(bare_pass, weights)), rounds
        )
        figures.append(
            Figure(f"a setting of a sweep at {proportion} / |weights|", name, ratio.value,
                   details={"selection, s": ratio.first, "|weights|, s": ratio.second},
                   spread=ratio.spread)
        )  # fmt: skip
    publish(figures, output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
