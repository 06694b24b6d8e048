"""What a sweep left in its folder, read and checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mathneuro.errors import InputError
from mathneuro.fields import read_fields
from mathneuro.finished import Result, read_result
from mathneuro.grid import BEFORE, Setting
from mathneuro.study import FORMAT, fingerprint


@dataclass(frozen=True)
class Study:
    """A sweep as far as it went.

    Attributes:
        folder: Where it is.
        planned: Names of all settings in their order, those of earlier grids last.
        results: The finished ones by name, in that order.
        model: Where the model came from.
        total: Parameters of the whole model.
        grid: The values that the settings combine.
        repeats: How many draws of texts were planned.
        math: Which scores stand for math, as the plan has it. None: not said.
        others: Which stand for the rest. None: not said.
        matters: Everything else that the scores depend on.
    """

    folder: Path
    planned: list[str]
    results: dict[str, Result]
    model: str
    total: int
    grid: dict[str, Any]
    repeats: int
    math: list[str] | None
    others: list[str] | None
    matters: dict[str, Any]

    @property
    def before(self) -> Result | None:
        """The model as it was found, if it is measured yet."""
        return self.results.get(BEFORE)

    @property
    def edited(self) -> list[Result]:
        """All finished settings but the model as it was found."""
        return [result for result in self.results.values() if result.setting is not None]


def read_study(folder: Path) -> Study:
    """Read what a sweep left, whether it is finished or not.

    Raises:
        InputError: If a file is missing, damaged or foreign, or nothing is finished yet.
    """
    fields = read_fields(folder / "study.json", FORMAT)
    grid, matters = fields.part("grid"), fields.part("matters")
    files = {path.stem: path for path in sorted((folder / "settings").glob("*.json"))}
    # A name that is planned twice, or by nobody but an earlier grid, is one setting all the same.
    planned = list(dict.fromkeys([*fields.texts("settings"), *files]))
    results = {name: read_result(files[name]) for name in planned if name in files}
    for result in results.values():
        if result.matters != fingerprint(matters.content):
            raise InputError(
                f"folder: {files[result.name]} was made with another model, other data or other "
                "settings than study.json states; delete the file that does not belong here"
            )
    if not results:
        raise InputError(
            f"folder: no setting of {folder} is finished, but a report needs at least one; let "
            "`sweep` finish some"
        )
    return Study(
        folder=folder,
        planned=planned,
        results=results,
        model=matters.part("model").text("source"),
        total=fields.part("coverage").whole("total"),
        grid=_merged(grid.content, [each.setting for each in results.values() if each.setting]),
        repeats=grid.whole("repeats"),
        math=None if grid.is_null("math") else grid.texts("math"),
        others=None if grid.is_null("others") else grid.texts("others"),
        matters=matters.content,
    )


def _merged(grid: dict[str, Any], settings: Iterable[Setting]) -> dict[str, Any]:
    """Return the values that the settings combine: those of the grid, and of earlier ones."""
    merged = dict(grid)
    fields = {
        "methods": "method",
        "calibration": "calibration",
        "proportions": "proportion",
        "factors": "factor",
        "num_samples": "num_samples",
    }
    for setting in settings:
        record = setting.record()
        for name, field in fields.items():
            if record[field] != [] and record[field] not in merged[name]:
                merged[name] = [*merged[name], record[field]]
        merged["repeats"] = max(merged["repeats"], setting.repeat)
    merged["proportions"] = sorted(merged["proportions"])
    return merged
