"""What a run measured of an edit, read from its ``results.json``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.scores import Score, Scores
from mathneuro.stated import shown
from mathneuro.statistics import Comparison

FILE = "results.json"


@dataclass(frozen=True)
class Measured:
    """Scores of an edit.

    Attributes:
        scores: By state of the model: ``before``, ``after`` or both.
        changes: How each score changed, by label.
        versions: Versions of the libraries that measured it.
    """

    scores: dict[str, Scores]
    changes: dict[str, Comparison]
    versions: dict[str, str]


def find_measured(edit: Edit, edit_file: Path, results: Path | None) -> Measured | str:
    """Find the scores of an edit.

    Args:
        edit: The edit.
        edit_file: Its file; a run writes both into one folder.
        results: A results file. None: the one beside the edit.

    Returns:
        The scores; or why there are none, if no results file was named.

    Raises:
        InputError: If a named file is missing, damaged, or of another edit.
    """
    path = results or edit_file.with_name(FILE)
    if results is None and not path.is_file():
        return f"there is no {FILE} beside the edit"
    try:
        return _read(path, edit)
    except InputError as error:
        if results is not None:
            raise
        return str(error)


def _read(path: Path, edit: Edit) -> Measured:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        told = {
            "weights": record["model"]["weight_hash"],
            "selection": record["selection"]["sha256"],
            "factor": record["factor"],
            "factors": record["factors"],
        }
        measured = Measured(
            {state: _scores(each) for state, each in record["scores"].items()},
            {label: Comparison(**each) for label, each in record.get("changes", {}).items()},
            dict(record["versions"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"results: {path} cannot be read as the record of a run with an edit "
            f"({type(error).__name__}: {shown(str(error))}); give the {FILE} that `operate` or "
            "`validate` wrote"
        ) from error
    expected = {
        "weights": edit.model.get("weight_hash"),
        "selection": edit.selection.sha256(),
        "factor": edit.factor,
        "factors": edit.factors,
    }
    for name, value in expected.items():
        if told[name] != value:
            raise InputError(
                f"results: {path} was measured with {name} {shown(told[name])}, but the edit has "
                f"{shown(value)}; give the results of this edit, or measure it with `validate`"
            )
    return measured


def _scores(record: Mapping[str, Any]) -> Scores:
    return Scores(
        perplexity={name: Score(**each) for name, each in record["perplexity"].items()},
        tasks={
            task: {metric: Score(**each) for metric, each in metrics.items()}
            for task, metrics in record["tasks"].items()
        },
        notes=[str(note) for note in record["notes"]],
    )
