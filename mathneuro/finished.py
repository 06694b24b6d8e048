"""One finished setting of a sweep, read and checked."""

from dataclasses import dataclass
from pathlib import Path

from mathneuro.fields import Fields, read_fields
from mathneuro.grid import Setting
from mathneuro.scores import Score, Scores, finite

FORMAT = "mathneuro-setting-2"


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
        matters: Hash of all that its scores depend on.
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
    matters: str
    scores: Scores
    outcomes: dict[str, list[float]]
    losses: dict[str, Losses]
    device: str
    host: str

    @property
    def is_unedited(self) -> bool:
        """Whether the model is the one that was found, by definition or since nothing changed."""
        return self.setting is None or self.parameters == 0 or self.setting.factor == 1


def read_result(path: Path) -> Result:
    """Read one finished setting.

    Raises:
        InputError: If the file is damaged or foreign, or of another setting than its name says.
    """
    fields = read_fields(path, FORMAT)
    fields.expect("name", path.stem)
    return as_result(fields)


def as_result(fields: Fields) -> Result:
    """Take one finished setting out of the fields of its file."""
    fields.expect("format", FORMAT)
    selected = not fields.is_null("selection")
    outcomes, losses = _outcomes(fields.part("outcomes"))
    run = fields.part("run")
    return Result(
        name=fields.text("name"),
        setting=None if fields.is_null("setting") else _setting(fields.part("setting")),
        parameters=fields.part("selection").whole("parameters") if selected else 0,
        selection=fields.part("selection").text("sha256") if selected else "",
        matters=fields.text("matters"),
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
    prompts = fields.part("prompts")
    return Scores(
        perplexity={name: _score(each) for name, each in fields.part("perplexity").parts()},
        tasks={
            task: {metric: _score(each) for metric, each in metrics.parts()}
            for task, metrics in fields.part("tasks").parts()
        },
        notes=fields.texts("notes"),
        prompts={task: prompts.text(task) for task in prompts.content},
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
