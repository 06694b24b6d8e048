"""What a sweep left in its folder, read and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mathneuro.errors import InputError
from mathneuro.fields import Fields, read_fields
from mathneuro.grid import BEFORE, Setting
from mathneuro.scores import Score, Scores, finite
from mathneuro.study import FORMAT, SETTING_FORMAT


@dataclass(frozen=True)
class Losses:
    """What a perplexity is made of.

    Attributes:
        losses: Summed loss of each text in nats.
        tokens: Predicted tokens of each text.
    """

    losses: list[float]
    tokens: list[float]


@dataclass(frozen=True)
class Result:
    """One setting that is finished.

    Attributes:
        name: Its name in the study.
        setting: What was done. None: nothing, the model is as it was found.
        parameters: How many parameters were selected.
        selection: Hash of the selected positions; empty if there are none.
        scores: Everything that was measured.
        outcomes: By label of a score, one outcome a question; not every score has them.
        losses: By label of a perplexity.
        device: Where it was measured.
        host: On which machine.
    """

    name: str
    setting: Setting | None
    parameters: int
    selection: str
    scores: Scores
    outcomes: dict[str, list[float]]
    losses: dict[str, Losses]
    device: str
    host: str

    @property
    def is_unedited(self) -> bool:
        """Whether the model is the one that was found, by definition or since nothing changed."""
        return self.setting is None or self.parameters == 0 or self.setting.factor == 1


@dataclass(frozen=True)
class Study:
    """A sweep as far as it went.

    Attributes:
        folder: Where it is.
        planned: Names of all settings in their order.
        results: The finished ones by name, in that order.
        unplanned: Names of setting files that the plan does not hold; they are left out.
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
    unplanned: list[str]
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
    grid, planned = fields.part("grid"), fields.texts("settings")
    files = {path.stem: path for path in sorted((folder / "settings").glob("*.json"))}
    results = {name: read_result(files[name]) for name in planned if name in files}
    if not results:
        raise InputError(
            f"folder: no setting of {folder} is finished, but a report needs at least one; let "
            "`sweep` finish some"
        )
    return Study(
        folder=folder,
        planned=planned,
        results=results,
        unplanned=[name for name in files if name not in results],
        model=fields.part("matters").part("model").text("source"),
        total=fields.part("coverage").whole("total"),
        grid=grid.content,
        repeats=grid.whole("repeats"),
        math=None if grid.is_null("math") else grid.texts("math"),
        others=None if grid.is_null("others") else grid.texts("others"),
        matters=fields.part("matters").content,
    )


def read_result(path: Path) -> Result:
    """Read one finished setting.

    Raises:
        InputError: If the file is damaged or foreign, or of another setting than its name says.
    """
    fields = read_fields(path, SETTING_FORMAT)
    fields.expect("name", path.stem)
    return as_result(fields)


def as_result(fields: Fields) -> Result:
    """Take one finished setting out of the fields of its file."""
    fields.expect("format", SETTING_FORMAT)
    selected = not fields.is_null("selection")
    outcomes, losses = _outcomes(fields.part("outcomes"))
    run = fields.part("run")
    return Result(
        name=fields.text("name"),
        setting=None if fields.is_null("setting") else _setting(fields.part("setting")),
        parameters=fields.part("selection").whole("parameters") if selected else 0,
        selection=fields.part("selection").text("sha256") if selected else "",
        scores=_scores(fields.part("scores")),
        outcomes=outcomes,
        losses=losses,
        device=run.text("device"),
        host=run.text("host"),
    )


def _setting(fields: Fields) -> Setting:
    return Setting(
        method=fields.text("method"),
        calibration=tuple(fields.texts("calibration")),
        num_samples=None if fields.is_null("num_samples") else fields.whole("num_samples"),
        repeat=fields.whole("repeat"),
        proportion=fields.number("proportion"),
        factor=fields.number("factor"),
    )


def _scores(fields: Fields) -> Scores:
    return Scores(
        perplexity={name: _score(each) for name, each in fields.part("perplexity").parts()},
        tasks={
            task: {metric: _score(each) for metric, each in metrics.parts()}
            for task, metrics in fields.part("tasks").parts()
        },
        notes=fields.texts("notes"),
    )


def _score(fields: Fields) -> Score:
    error = finite(fields.number("standard_error"))
    return Score(fields.number("value"), error, fields.whole("count"))


def _outcomes(fields: Fields) -> tuple[dict[str, list[float]], dict[str, Losses]]:
    outcomes, losses = {}, {}
    for label, each in fields.parts():
        if "losses" in each.content:
            losses[label] = Losses(each.numbers("losses"), each.numbers("tokens"))
        else:
            outcomes[label] = each.numbers("values")
    return outcomes, losses
