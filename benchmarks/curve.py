"""The whole curve of the shipped model: proportion against both accuracies, for every method.

Writes ``assets/curve.csv`` and ``assets/curve.png``, and prints the table as Markdown.
"""

import csv
import io
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from rich.progress import track

from benchmarks.identification import DATA, MODEL, identify
from mathneuro.data import TextSet
from mathneuro.data.module import TextDataModule
from mathneuro.edit import Edit
from mathneuro.evaluation import EvaluationSettings, evaluate, load_tasks
from mathneuro.files import write_file, write_text
from mathneuro.live_model import LiveModel
from mathneuro.methods import select
from mathneuro.module import CausalLanguageModel
from mathneuro.scores import Score
from mathneuro.selection import Selection
from mathneuro.terminal import quieten

PROPORTIONS = (0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15)
COLOURS = {"mathneuro": "tab:blue", "wanda": "tab:red", "random": "tab:gray"}
TASKS = {"arithmetic": "tiny_arithmetic", "language": "tiny_language"}

Scored = dict[str, Score]


def measure(num_samples: int, seed: int) -> tuple[Scored, list[tuple[Selection, Scored]]]:
    """Evaluate the model as it is, and with every selection pruned."""
    module = CausalLanguageModel(str(MODEL))
    data = TextDataModule(
        TextSet(str(DATA / "arithmetic_train.jsonl")),
        {"language": TextSet(str(DATA / "language_train.jsonl"))},
        num_samples=num_samples,
        replacement=False,
        seed=seed,
        batch_size=16,
    )
    identify(module, data)
    settings = EvaluationSettings(
        tasks=tuple(TASKS.values()), task_folders=(DATA.parent / "tasks",), batch_size=64
    )
    tasks, live = load_tasks(settings), LiveModel(module.model, module.tokenizer, 64)

    def scored() -> Scored:
        found = evaluate(live, tasks, settings).scores
        return {name: found[task]["exact_match"] for name, task in TASKS.items()}

    if module.importance is None:
        raise RuntimeError("Nothing was identified.")
    before, points = scored(), []
    choices = [(method, proportion) for method in COLOURS for proportion in PROPORTIONS]
    for method, proportion in track(choices, "Evaluating"):
        linears = module.coverage.linears
        selection = select(linears, module.importance, method, proportion, seed=seed)
        with Edit(selection, 0.0).applied(module.model):
            points.append((selection, scored()))
    return before, points


def draw(before: Scored, points: list[tuple[Selection, Scored]], path: Path) -> None:
    """Draw one panel a skill, with 95 % intervals of each accuracy."""
    mpl.use("agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for panel, skill in zip(panels, TASKS, strict=True):
        panel.axhline(before[skill].value, color="black", linewidth=1, linestyle=":")
        for method, colour in COLOURS.items():
            mine = [each for each in points if each[0].origin["method"] == method]
            panel.errorbar(
                [selection.origin["proportion"] for selection, _ in mine],
                [scored[skill].value for _, scored in mine],
                yerr=[1.96 * (scored[skill].standard_error or 0) for _, scored in mine],
                color=colour, label=method, marker="o", markersize=4, capsize=2,
            )  # fmt: skip
        panel.set(title=skill, xscale="log", xlabel="proportion of each weight (log scale)")
        panel.set_ylim(-0.03, 1.05)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("exact match")
    panels[0].text(PROPORTIONS[0], before["arithmetic"].value + 0.03, "before", fontsize=8)
    panels[0].legend(frameon=False, loc="lower left")
    write_file(path, lambda unfinished: figure.savefig(unfinished, format="png", dpi=150))
    pyplot.close(figure)


def table(before: Scored, points: list[tuple[Selection, Scored]]) -> list[list[str]]:
    """Lay out one row a proportion and two columns a method."""
    rows = [["proportion", *(f"{method} {skill}" for method in COLOURS for skill in TASKS)]]
    rows.append(["none", *(f"{before[skill].value:.3f}" for _ in COLOURS for skill in TASKS)])
    for proportion in PROPORTIONS:
        same = [scored for each, scored in points if each.origin["proportion"] == proportion]
        values = [f"{scored[skill].value:.3f}" for scored in same for skill in TASKS]
        rows.append([str(proportion), *values])
    return rows


def main(num_samples: int = 300, seed: int = 0, folder: Path = DATA.parent) -> None:
    """Measure, draw and print.

    Args:
        num_samples: Texts of each set for identification.
        seed: Seed of the draw of texts and of the random method.
        folder: Where to write.
    """
    quieten()
    torch.manual_seed(seed)
    before, points = measure(num_samples, seed)
    rows = table(before, points)
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    write_text(folder / "curve.csv", text.getvalue())
    draw(before, points, folder / "curve.png")
    lines = [f"| {' | '.join(row)} |" for row in rows]
    print("\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
