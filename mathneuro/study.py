"""A sweep on disk: what is planned, what is there, and what must not change in between."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mathneuro.data.draws import DrawKey
from mathneuro.errors import InputError
from mathneuro.fields import read_fields
from mathneuro.files import to_json, write_json
from mathneuro.finished import FORMAT as SETTING_FORMAT
from mathneuro.finished import read_result
from mathneuro.grid import BEFORE, Grid, Setting
from mathneuro.importance import Importance, holds_activations
from mathneuro.methods import NEED_ACTIVATIONS
from mathneuro.scores import Scores
from mathneuro.selection import Selection
from mathneuro.shard import Shard
from mathneuro.weights import Weight

FORMAT = "mathneuro-sweep-1"

WHEREABOUTS = frozenset(f"model.{key}" for key in ("source", "revision", "gguf_file", "tokenizer"))
"""Where a model lies does not matter for results: its weights and the tokens are compared."""

LONGEST_VALUE = 40
"""Characters of a value that a sentence shows."""


@dataclass
class InFlight:
    """The setting that is evaluated right now.

    Attributes:
        name: Its name.
        setting: The setting. None: the model without any edit.
        selection: What it selects. None: the model without any edit.
        known: The record of a setting with the same selection and factor, if there is one.
        scores: What was measured, once it is there.
        start: When it began, on `time.perf_counter`'s clock.
    """

    name: str
    setting: Setting | None
    selection: Selection | None = None
    known: dict[str, Any] | None = None
    scores: Scores | None = None
    start: float = field(default_factory=time.perf_counter)


class Study:
    """The settings of a sweep and the folder that holds their results.

    Args:
        folder: The folder; several processes may share it.
        grid: What is tried.
        names: Names of all sets of texts, the math set included.
        num_samples: How many texts are drawn if the grid does not say.
        shard: Which part of the settings this process runs.

    Raises:
        InputError: If the grid makes no sense for these sets.
    """

    def __init__(
        self, folder: Path, grid: Grid, names: list[str], num_samples: int | None, shard: Shard
    ) -> None:
        self.folder = folder
        self.grid = grid
        self.shard = shard
        self.settings: dict[str, Setting | None] = {BEFORE: None}
        self.settings |= {each.name: each for each in grid.settings(names, num_samples)}
        self.names = list(self.settings)
        self.draws = grid.draws(num_samples)
        self.matters: dict[str, Any] = {}
        self._known: dict[tuple[str, float], str] | None = None

    def path(self, name: str) -> Path:
        """Return where the result of a setting is kept."""
        return self.folder / "settings" / f"{name}.json"

    def importance_path(self, draw: DrawKey) -> Path:
        """Return where the importance of a draw is kept."""
        return self.folder / "importance" / f"{draw.name}.safetensors"

    @property
    def needs_activations(self) -> bool:
        """Whether a method of the grid needs the activations of neurons."""
        return not NEED_ACTIVATIONS.isdisjoint(self.grid.methods)

    def pending(self) -> list[int]:
        """Return the positions of this shard's settings whose result is not there yet."""
        mine = set(self.shard.part(self.names))
        return [
            position
            for position, name in enumerate(self.names)
            if name in mine and not self.path(name).exists()
        ]

    def missing(self) -> int:
        """Return how many settings have no result yet, of all shards."""
        return sum(not self.path(name).exists() for name in self.names)

    def needs_identification(self) -> bool:
        """Tell whether a pending setting needs importance that is not in the folder."""
        edits = [self.settings[self.names[position]] for position in self.pending()]
        return any(not self._has_importance(setting) for setting in edits if setting is not None)

    def _has_importance(self, setting: Setting) -> bool:
        """Tell whether the folder holds all that a setting selects by."""
        path = self.importance_path(setting.draw)
        if not path.exists():
            return False
        return setting.method not in NEED_ACTIVATIONS or holds_activations(path)

    def read_importance(
        self,
        draw: DrawKey,
        weight_hash: str,
        weights: Mapping[str, Weight],
        check: Callable[[Importance], None] = lambda _importance: None,
    ) -> Importance:
        """Read the importance of a draw, and make sure that it is of this model.

        Args:
            draw: The draw.
            weight_hash: Hash of the model's weights.
            weights: The weights that take part, by name.
            check: Raises an InputError if something else is wrong with it.

        Raises:
            InputError: If it is damaged, or of another model.
        """
        path = self.importance_path(draw)
        try:
            loaded = Importance.load(path)
            loaded.check_model(weight_hash, path)
            loaded.check_weights(weights, path)
            check(loaded)
        except InputError as error:
            raise InputError(
                f"folder: {path} cannot be used; delete it to have it measured again ({error})"
            ) from error
        return loaded

    def expect(self, section: str, values: Mapping[str, Any]) -> None:
        """Note what changes results, and refuse to go on where results were made otherwise.

        Args:
            section: What the values belong to, such as ``data``.
            values: The values, nested or not.

        Raises:
            InputError: If the folder holds a sweep with another value, or no sweep.
        """
        self.matters[section] = json.loads(to_json(values))
        if (self.folder / "results.json").exists():
            raise InputError(
                f"folder: {self.folder} holds the results of a single run, not of a sweep; give "
                "another folder"
            )
        record = read_record(self.folder / "study.json", FORMAT)
        if record is None:
            return
        before = _flat({section: record["matters"].get(section, {})})
        now = _flat({section: self.matters[section]})
        for key in sorted(before.keys() | now.keys()):
            if key not in WHEREABOUTS and before.get(key) != now.get(key):
                raise InputError(
                    f"folder: {self.folder} holds a sweep with {key} {_shown(before.get(key))}, "
                    f"but it is {_shown(now.get(key))} now, so results would not belong together; "
                    "set it back to go on, or give another folder"
                )

    def expect_some(self, section: str, values: Mapping[str, Any]) -> None:
        """Refuse to go on where some values are not those of the sweep; others are not looked at.

        Args:
            section: What the values belong to, such as ``data``.
            values: The values that are compared.

        Raises:
            InputError: If the folder holds a sweep with another value.
        """
        record = read_record(self.folder / "study.json", FORMAT)
        before = {} if record is None else record["matters"].get(section, {})
        self.expect(section, {**before, **values})

    def check_scores(self, labels: Iterable[str], tasks_only: bool) -> None:
        """Refuse scores for tables and figures that are not measured.

        Args:
            labels: The labels of all scores; or of the tasks alone, as long as their metrics are
                not known.
            tasks_only: Whether it is the tasks alone.

        Raises:
            InputError: If `Grid.math` or `Grid.others` names another one, or nothing is measured.
        """
        known = list(labels)
        if not known:
            raise InputError(
                "lm_eval.tasks: got none, and data.held_out is 0, so that nothing would be "
                "measured; name tasks, or hold texts out for perplexity"
            )
        for option, entries in {"math": self.grid.math, "others": self.grid.others}.items():
            for entry in entries or ():
                of_task = any(label.startswith(f"{entry} ") for label in known)
                later = tasks_only and any(entry.startswith(f"{label} ") for label in known)
                if entry not in known and not of_task and not later:
                    raise InputError(
                        f"grid.{option}: got {entry!r}, but no score has that name; choose from "
                        f"{', '.join(known)}"
                    )

    def begin(self, coverage: dict[str, Any]) -> None:
        """Refuse results that do not belong here, then write down what is planned.

        Args:
            coverage: Which parameters take part.

        Raises:
            InputError: If the result of a setting is damaged, or was made otherwise.
        """
        mine = fingerprint(self.matters)
        for path in sorted((self.folder / "settings").glob("*.json")):
            if read_result(path).matters != mine:
                raise InputError(
                    f"folder: {path} was made with another model, other data or other settings; "
                    "give another folder, or delete that file to have it measured again"
                )
        edits = [setting for setting in self.settings.values() if setting is not None]
        grid = {
            "methods": self.grid.methods,
            "calibration": _distinct(list(each.calibration) for each in edits if each.calibration),
            "repeats": self.grid.repeats,
            "proportions": self.grid.proportions,
            "factors": self.grid.factors,
            "num_samples": _distinct(draw.num_samples for draw in self.draws),
            "math": self.grid.math,
            "others": self.grid.others,
        }
        write_json(
            self.folder / "study.json",
            {
                "format": FORMAT,
                "settings": self.names,
                "grid": grid,
                "coverage": coverage,
                "matters": self.matters,
            },
        )

    def check_begun(self) -> None:
        """Refuse a folder that the processes of a run do not share.

        Raises:
            InputError: If what the first of them wrote down is not there.
        """
        if not (self.folder / "study.json").exists():
            raise InputError(
                f"folder: {self.folder} is not the same on all machines, but the processes of a "
                "sweep need one that they share; give a folder on a shared file system"
            )

    def find(self, selection: Selection, factor: float) -> dict[str, Any] | None:
        """Return the result of a setting that changes the model in the same way, if it is there.

        Args:
            selection: What is selected. Nothing, or a factor of 1, is the model as it was found.
            factor: What the selection is multiplied by.
        """
        if selection.count == 0 or factor == 1:
            return read_record(self.path(BEFORE), SETTING_FORMAT)
        if self._known is None:
            self._known = {}
            for name in self.names:
                record = read_record(self.path(name), SETTING_FORMAT)
                if record is not None:
                    self._remember(record)
        same = self._known.get((selection.sha256(), factor))
        return None if same is None else read_record(self.path(same), SETTING_FORMAT)

    def keep(self, record: dict[str, Any], write: bool) -> None:
        """Keep the result of a setting, with a hash of all that it depends on.

        Args:
            record: The result.
            write: Whether it is written, in one step; another process of this run may do that.
        """
        record["matters"] = fingerprint(self.matters)
        if write:
            write_json(self.path(record["name"]), record)
        if self._known is not None:
            self._remember(record)

    def _remember(self, record: dict[str, Any]) -> None:
        if record["setting"] is not None and self._known is not None:
            key = (record["selection"]["sha256"], record["setting"]["factor"])
            self._known.setdefault(key, record["name"])


def read_record(path: Path, kind: str) -> dict[str, Any] | None:
    """Read a JSON file of a sweep; None if there is none.

    Raises:
        InputError: If it is damaged or of another kind.
    """
    return read_fields(path, kind).content if path.exists() else None


def fingerprint(matters: Mapping[str, Any]) -> str:
    """Hash all that scores depend on, wherever the files lie."""
    values = {key: value for key, value in _flat(matters).items() if key not in WHEREABOUTS}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _distinct(values: Iterable[Any]) -> list[Any]:
    distinct: list[Any] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    return distinct


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by their path, such as ``data.sets.math.sha256``."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{prefix}{key}"
        result |= _flat(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return result


def _shown(value: Any) -> str:  # noqa: ANN401
    text = json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
