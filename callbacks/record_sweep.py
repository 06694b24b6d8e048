"""When files of a sweep are written: importance after identification, each setting at its end."""

import platform
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from typing_extensions import override

from callbacks.run import Run, running
from callbacks.setting import SettingCallback
from mathneuro.data.draws import DrawKey
from mathneuro.errors import InputError
from mathneuro.fields import Fields
from mathneuro.finished import FORMAT, as_result, read_result
from mathneuro.importance import Identification, Importance, holds_activations
from mathneuro.results import library_versions, selection_record
from mathneuro.scores import Scores
from mathneuro.study import InFlight, Study


class RecordSweep(SettingCallback):
    """Keeps a sweep on disk, so that it can go on where it was, and refuses to mix results."""

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse a folder whose results were made otherwise, before the model loads."""
        run = running(trainer, pl_module)
        study = run.module.study
        if study is not None:
            study.expect("data", run.data.content())
            versions = library_versions()
            versions.pop("python")
            study.expect("versions", versions)
            study.expect("trainer", {"precision": str(trainer.precision)})

    @override
    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse another model, and write down what is planned."""
        running(trainer, pl_module).module.begin_study()

    @override
    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the importance of every draw, unless another shard was first."""
        run = running(trainer, pl_module)
        if run.module.study is None:
            return
        if run.is_first:
            self._write(run, run.module.study)
        run.module.ranks.meet()
        self._load(run, run.module.study)

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse another model; fetch the importance that was measured before."""
        run = running(trainer, pl_module)
        run.module.begin_study()
        if run.module.study is not None and not run.module.importances:
            self._load(run, run.module.study)

    @override
    def on_setting_start(self, run: Run, study: Study, position: int) -> None:
        """End if another process has: settings need nothing of one another, and would go on."""
        run.module.ranks.check()

    @override
    def on_setting_end(self, run: Run, study: Study, flight: InFlight) -> None:
        """Write the result of a setting, whole."""
        from mathneuro.report import write_setting_board

        record = _measured(run, flight) if flight.known is None else _known(flight, flight.known)
        record |= {"name": flight.name, "run": _circumstances(run, flight)}
        study.keep(record, run.writes)
        if run.writes:
            write_setting_board(study.folder, record)
        if run.module.ranks.in_lockstep:
            # What one process finds in the folder all must find.
            run.module.ranks.meet()
        run.module.scores.pop(flight.name, None)
        flight.scores = as_result(Fields(study.path(flight.name), record)).scores
        study.check_scores(flight.scores.rows(), tasks_only=False)
        _log(run, study, flight.name, flight.scores)

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Wait for the settings of the other processes, and log them too."""
        run = running(trainer, pl_module)
        study, positions = run.module.study, run.data.positions or ()
        if study is None:
            return
        run.module.ranks.meet()
        mine = run.module.ranks.part(positions)
        for position in positions:
            if position not in mine and run.is_first and run.has_logger:
                name = study.names[position]
                _log(run, study, name, read_result(study.path(name)).scores)

    def _write(self, run: Run, study: Study) -> None:
        """Write the importance of every draw that is not there yet."""
        for draw, importance in run.module.importances.items():
            path = study.importance_path(draw)
            if not path.exists():
                importance.save(path)
            elif importance.activations and not holds_activations(path):
                # Norms stay those that earlier settings were selected by.
                before = self._read(run, study, draw)
                before.activations, before.tokens = importance.activations, importance.tokens
                before.save(path)

    def _load(self, run: Run, study: Study) -> None:
        """Read the importance of every draw."""
        run.module.importances = {}
        for draw in study.draws:
            if study.importance_path(draw).exists():
                run.module.importances[draw] = self._read(run, study, draw)
        if run.module.identification is None:
            run.module.identification = Identification(0, 0, 0.0, study.folder / "importance")

    def _read(self, run: Run, study: Study, draw: DrawKey) -> Importance:
        """Read the importance of a draw, and make sure that it is of this model and data."""
        return study.read_importance(
            draw,
            run.module.identity["weight_hash"],
            run.module.coverage.weights,
            lambda loaded: _check_texts(loaded, run.data.fingerprints(draw)),
        )


def _log(run: Run, study: Study, name: str, scores: Scores) -> None:
    """Give the scores of a setting to the loggers, if there are any."""
    values = {label: score.value for label, score in scores.rows().items()}
    for logger in run.module.loggers:
        logger.log_metrics(values, step=study.names.index(name))


def _check_texts(loaded: Importance, drawn: dict[str, dict[str, Any]]) -> None:
    """Refuse importance that was measured on other texts than are drawn now."""
    for name, each in drawn.items():
        for key in ("sha256", "tokens_sha256", "texts"):
            before = loaded.data.get(name, {}).get(key)
            if before != each[key]:
                raise InputError(f"{key} of {name}: got {before}, but it is {each[key]} now")


def _known(flight: InFlight, known: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a setting that changes the model in the same way."""
    scores = {key: value for key, value in known["scores"].items() if key != "evaluation"}
    return {
        **known,
        "scores": scores,
        "setting": flight.setting.record() if flight.setting else None,
        "selection": _selection(flight),
    }


def _measured(run: Run, flight: InFlight) -> dict[str, Any]:
    scores = run.module.scores.setdefault(flight.name, Scores())
    names = [name for name, texts in run.data.tokenized.items() if texts.held_out]
    run.module.keep_perplexity(scores, names)
    values = asdict(scores)
    outcomes = values.pop("outcomes")
    if flight.setting is not None:
        # lm-eval's record of how it evaluates is the same for all settings.
        values.pop("evaluation")
    return {
        "format": FORMAT,
        "name": flight.name,
        "setting": flight.setting.record() if flight.setting else None,
        "selection": _selection(flight),
        "scores": values,
        "outcomes": outcomes,
    }


def _selection(flight: InFlight) -> dict[str, Any] | None:
    if flight.selection is None:
        return None
    return {**selection_record(flight.selection), "sha256": flight.selection.sha256()}


def _circumstances(run: Run, flight: InFlight) -> dict[str, Any]:
    return {
        "seconds": time.perf_counter() - flight.start,
        "device": run.module.devices,
        "host": platform.node(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
