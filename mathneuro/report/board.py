"""TensorBoard's pages of a sweep.

Runs of single settings and runs of the whole sweep have folders of their own: TensorBoard shows
none of its runs at first if there are more than 40, so that figures and curves are found at once
only where they are not among hundreds of settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mathneuro.estimates import mean_over_repeats
from mathneuro.fields import Fields
from mathneuro.finished import Result, as_result
from mathneuro.folders import replace_folder
from mathneuro.report import wording
from mathneuro.report.cells import Cell, are_perplexities
from mathneuro.report.drawn import Drawn, write_summary_page
from mathneuro.report.reading import Study
from mathneuro.report.roles import all_labels
from mathneuro.scores import finite

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"
SETTINGS = "settings"
OVERVIEW = "overview"
SUMMARY = "summary"

FINEST = 9
"""Digits after the point that a proportion's step can tell."""


def write_board(study: Study, found: Sequence[Cell], drawn: Sequence[Drawn], summary: str) -> Path:
    """Write all pages anew, as a whole.

    Args:
        study: The sweep.
        found: Its cells.
        drawn: Its figures.
        summary: Its summary in Markdown, without figures.

    Returns:
        The folder to give to TensorBoard.
    """

    def write(folder: Path) -> None:
        unit = _unit([cell.proportion for cell in found])
        text = f"{_how_to_read(unit)}\n\n{summary}"
        write_summary_page(folder / OVERVIEW / SUMMARY, SUMMARY, text, drawn)
        _write_curves(folder / OVERVIEW, found, all_labels(study), unit)
        for result in study.results.values():
            _write_setting(folder / SETTINGS / result.name, result)

    target = study.folder / FOLDER
    replace_folder(target, write, beside=study.folder)
    return target


def write_setting_board(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the page of one setting that has just finished, while the sweep runs.

    Args:
        folder: The folder of the sweep.
        record: The content of the setting's file.

    Raises:
        InputError: If the record is not that of a setting, or the folder cannot be written.
    """
    result = as_result(Fields(folder / SETTINGS, dict(record)))
    target = folder / FOLDER / SETTINGS / result.name
    replace_folder(target, lambda unfinished: _write_setting(unfinished, result), beside=folder)


def _write_setting(folder: Path, result: Result) -> None:
    """Write hyperparameters and scores of one setting.

    TensorBoard works out the columns of its table from all settings, provided that none states
    columns of its own; so only the values are written here, not the description of the columns.
    """
    from torch.utils.tensorboard.summary import hparams

    metrics = {
        f"result/{label}": score.value
        for label, score in result.scores.rows().items()
        if finite(score.value) is not None
    }
    _columns, start, end = hparams(_hyperparameters(result), metrics)
    with _writer(folder) as writer:
        writer._get_file_writer().add_summary(start)
        writer._get_file_writer().add_summary(end)
        for tag, value in metrics.items():
            writer.add_scalar(tag, value, 0)


def _hyperparameters(result: Result) -> dict[str, str | float]:
    """Return the hyperparameters; none that do not apply."""
    if result.setting is None:
        return {"method": "none", "selected_parameters": 0}
    setting = result.setting
    return {
        "method": setting.method,
        "calibration": "+".join(setting.calibration) or "none",
        "num_samples": "all" if setting.num_samples is None else setting.num_samples,
        "repeat": setting.repeat,
        "proportion": setting.proportion,
        "factor": setting.factor,
        "selected_parameters": result.parameters,
    }


def _write_curves(folder: Path, found: Sequence[Cell], labels: Sequence[str], unit: int) -> None:
    """Write scores by proportion, one run a method, calibration sets, number of texts, factor."""
    runs: dict[str, list[Cell]] = {}
    for cell in found:
        sets = "+".join(cell.series.calibration)
        parts = (cell.series.method, sets, wording.short_samples(cell.num_samples),
                 f"x{cell.factor:g}")  # fmt: skip
        runs.setdefault(" ".join(part for part in parts if part), []).append(cell)
    for name, cells in runs.items():
        with _writer(folder / name) as writer:
            for label in labels:
                for cell in cells:
                    values = cell.values([label])
                    mean = mean_over_repeats(values, geometric=are_perplexities([label])).value
                    if finite(mean) is not None:
                        step = round(cell.proportion * unit)
                        writer.add_scalar(f"by_proportion/{label}", mean, step)


def _how_to_read(unit: int) -> str:
    """Explain what TensorBoard's pages show."""
    return (
        f"On the pages Scalars and Time Series, `by_proportion` is the mean over repeats; one step "
        f"is a proportion of 1/{unit:,}, so that step {round(0.05 * unit):,} is the proportion "
        "0.05. Set smoothing to 0 there. The figures are on the page Images. TensorBoard on the "
        f"folder `{FOLDER}/{SETTINGS}` lists every setting with its scores on the page HParams. On "
        f"the folder `{FOLDER}` it shows both; filter the runs by `{OVERVIEW}` there."
    )


def _unit(proportions: Sequence[float]) -> int:
    """Return how many steps a proportion of 1 has: 10,000, or as many more as tell all apart.

    Example:
        >>> _unit([0.0001, 0.15]), _unit([0.00025])
        (10000, 100000)
    """
    unit = 10_000
    while unit < 10**FINEST and any(
        abs(each * unit - round(each * unit)) > 1e-6 for each in proportions
    ):
        unit *= 10
    return unit


@contextmanager
def _writer(folder: Path) -> Iterator["SummaryWriter"]:
    """Open a run and close it."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        yield writer
