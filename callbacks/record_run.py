"""When files and TensorBoard events are written: as soon as their content is known."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from typing_extensions import override

from callbacks.run import Run, running
from mathneuro.errors import InputError
from mathneuro.files import write_json
from mathneuro.module import CausalLanguageModel
from mathneuro.results import run_record
from mathneuro.scores import Scores
from mathneuro.table import markdown

STEPS = {"before": 0, "after": 1}
"""TensorBoard's step of each state of the model."""


class RecordRun(Callback):
    """Writes the importance, the edit, the results and TensorBoard's pages of a run.

    Args:
        overwrite: Whether the results of an earlier run in the same folder may be replaced.
    """

    def __init__(self, overwrite: bool = False) -> None:
        self.overwrite = overwrite
        self._checked = False

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse a folder with the results of a whole run; clear what another left there."""
        run = running(trainer, pl_module)
        if self._checked or run.command == "sweep" or not run.is_first:
            return
        self._checked = True
        if (run.folder / "study.json").exists():
            raise InputError(
                f"folder: {run.folder} holds the results of a sweep; give another folder"
            )
        results = run.folder / "results.json"
        if _is_finished(results) and not self.overwrite:
            raise InputError(
                f"folder: {run.folder} holds the results of an earlier run; give another folder, "
                "or set record.overwrite to true"
            )
        _clear(run)

    @override
    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the importance."""
        run = running(trainer, pl_module)
        if run.command == "sweep":
            return
        if run.command == "predict":
            self._write_results(run, finished=True)
            if run.is_first:
                for logger in _tensorboard(trainer):
                    logger.log_hyperparams(_hyperparameters(run))
        self._write_importance(run)

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the edit that this validation evaluates."""
        run = running(trainer, pl_module)
        if run.command != "operate" or not run.is_first:
            return
        if run.module.intervening and run.module.edit is not None:
            run.module.edit.save(run.folder / "edit.safetensors")
            if run.module.identification is not None and run.module.identification.file is not None:
                self._write_importance(run)

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the scores of this state of the model."""
        run = running(trainer, pl_module)
        if run.command == "sweep":
            return
        scores = run.module.scores.setdefault(run.module.column, Scores())
        names = [name for name, texts in run.data.tokenized.items() if texts.held_out]
        run.module.keep_perplexity(scores, names)
        step = STEPS[run.module.column]
        for label, score in scores.rows().items():
            tag, _, metric = label.rpartition(" ")
            for logger in trainer.loggers:
                logger.log_metrics({f"{tag}/{metric}": score.value}, step=step)
        self._write_results(run, finished=run.command == "validate" or run.module.intervening)

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the summary page and the hyperparameters, once all is measured."""
        run = running(trainer, pl_module)
        if run.command == "sweep" or (run.command == "operate" and not run.module.intervening):
            return
        if not run.is_first:
            return
        scores = run.module.scores[run.module.column].rows()
        results = {f"result/{label}": score.value for label, score in scores.items()}
        for logger in _tensorboard(trainer):
            logger.experiment.add_text("summary", markdown(run.module.scores))
            logger.log_hyperparams(_hyperparameters(run), results)

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave no empty TensorBoard page: Lightning begins one before anything is checked."""
        if isinstance(pl_module, CausalLanguageModel) and not pl_module.scores:
            own = f"events.out.tfevents.*.{os.getpid()}.*"
            for path in Path(trainer.default_root_dir).glob(own):
                path.unlink()

    def _write_importance(self, run: Run) -> None:
        if run.is_first and run.module.importance is not None:
            run.module.importance.save(run.folder / "importance.safetensors")

    def _write_results(self, run: Run, finished: bool) -> None:
        if run.is_first:
            record = run_record(run.module, run.data, str(run.command), finished)
            write_json(run.folder / "results.json", record)


def _clear(run: Run) -> None:
    """Remove what another run left, so that nothing of it stands beside the results of this one.

    An edit that is evaluated here may be that of the folder, and an importance file may be read.
    """
    names = ["results.json", "hparams.yaml", "events.out.tfevents.*", "samples/*/*.jsonl"]
    if run.command != "validate" or run.module.edit is None:
        names.append("edit.safetensors")
    if run.command == "validate" and run.module.edit is None:
        names.append("importance.safetensors")
    for path in (path for name in names for path in run.folder.glob(name)):
        path.unlink(missing_ok=True)
    for folder in (*run.folder.glob("samples/*/"), *run.folder.glob("samples/")):
        if not any(folder.iterdir()):
            folder.rmdir()


def _tensorboard(trainer: Trainer) -> Iterator[TensorBoardLogger]:
    """Yield the loggers of TensorBoard, ready for hyperparameters.

    Lightning writes their file once, when nothing is known yet.
    """
    for logger in trainer.loggers:
        if isinstance(logger, TensorBoardLogger):
            (Path(logger.log_dir) / logger.NAME_HPARAMS_FILE).unlink(missing_ok=True)
            yield logger


def _is_finished(results: Path) -> bool:
    """Tell whether a folder holds the results of a whole run; what cannot be read counts as one."""
    if not results.exists():
        return False
    try:
        return bool(json.loads(results.read_text(encoding="utf-8"))["finished"])
    except (ValueError, KeyError, TypeError):
        return True


def _hyperparameters(run: Run) -> dict[str, Any]:
    values: dict[str, Any] = {"model": run.module.identity["source"]}
    if run.module.edit is not None:
        origin = run.module.edit.selection.origin
        values |= {
            "method": origin.get("method"),
            "proportion": origin.get("proportion"),
            "calibration": ", ".join(origin.get("calibration", ())),
            "factor": run.module.edit.factor,
            "selected parameters": run.module.edit.selection.count,
        }
    return values
