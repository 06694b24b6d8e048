"""Applying and restoring an edit against one copy of the weights."""

from pathlib import Path

import torch
from jsonargparse import auto_cli

from benchmarks.measuring import Figure, alternate, publish, seconds
from benchmarks.parts import load, name_of
from mathneuro.edit import Edit
from mathneuro.selection import Selection, number_selected
from mathneuro.terminal import quieten


def main(
    parameters: int | None = None,
    proportion: float = 0.05,
    rounds: int = 9,
    output: Path | None = None,
) -> None:
    """Measure and print.

    Args:
        parameters: Size of a random Llama to measure. null: the shipped model.
        proportion: Share of each weight's parameters that is edited, anywhere in it.
        rounds: How often each is timed.
        output: A JSON file to write the figure to.
    """
    quieten()
    module = load(parameters)
    weights = module.candidates.weights
    torch.manual_seed(0)
    positions = {
        name: torch.randperm(each.numel)[: number_selected(each.numel, proportion)].sort().values
        for name, each in weights.items()
    }
    edit = Edit(
        Selection(positions, {name: each.stored_shape for name, each in weights.items()}), 1.1
    )

    def apply_and_undo() -> None:
        edit.undo(module.model, edit.apply(module.model))

    def copy() -> None:
        _ = [each.stored.clone() for each in weights.values()]

    apply_and_undo()
    ratio = alternate(lambda: seconds(apply_and_undo), lambda: seconds(copy), rounds)
    figure = Figure(
        f"6. apply and restore {proportion:.0%} / a copy of the weights", name_of(module),
        ratio.value, 1, details={"apply and restore, s": ratio.first, "copy, s": ratio.second},
        spread=ratio.spread,
    )  # fmt: skip
    publish([figure], output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
