"""When files and TensorBoard events are written: as soon as their content is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch import Callback
from lightning.pytorch.loggers import TensorBoardLogger
from typing_extensions import override

from mathneuro.errors import InputError
from mathneuro.files import write_json
from mathneuro.results import run_record
from mathneuro.scores import Score, Scores, finite
from mathneuro.table import markdown, table

if TYPE_CHECKING:
    from mathneuro.module import CausalLanguageModel
    from mathneuro.trainer import MathNeuroTrainer

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
    def setup(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel", stage: str
    ) -> None:
        """Refuse a folder that holds results, or clear what an earlier run left there."""
        if self._checked:
            return
        self._checked = True
        folder = Path(trainer.default_root_dir)
        earlier = [folder / "results.json", *folder.glob("samples/*/*.jsonl")]
        earlier = [path for path in earlier if path.exists()]
        if earlier and not self.overwrite:
            raise InputError(
                f"folder: {folder} holds the results of an earlier run; give another folder, or "
                "set record.overwrite to true"
            )
        if trainer.is_global_zero:
            for path in (*earlier, *folder.glob("events.out.tfevents.*")):
                path.unlink()

    @override
    def on_predict_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Write the importance."""
        if trainer.command == "predict":
            self._write_results(trainer, pl_module)
        self._write_importance(trainer, pl_module)

    @override
    def on_validation_start(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Write the edit that this validation evaluates."""
        if trainer.command != "operate" or not trainer.is_global_zero:
            return
        if pl_module.intervening and pl_module.edit is not None:
            pl_module.edit.save(Path(trainer.default_root_dir) / "edit.safetensors")
            self._write_importance(trainer, pl_module)

    @override
    def on_validation_epoch_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Write the scores of this state of the model."""
        scores = pl_module.scores.setdefault(pl_module.column, Scores())
        names = trainer.datamodule.names  # type: ignore[attr-defined]
        for name, measured in zip(names, pl_module.perplexity(), strict=True):
            scores.perplexity[name] = Score(
                measured["perplexity"], finite(measured["standard_error"]), int(measured["texts"])
            )
        step = STEPS[pl_module.column]
        for label, score in scores.rows().items():
            tag, _, metric = label.rpartition(" ")
            for logger in trainer.loggers:
                logger.log_metrics({f"{tag}/{metric}": score.value}, step=step)
        self._write_results(trainer, pl_module)

    @override
    def on_validation_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Write the summary page and the hyperparameters, once all is measured."""
        if trainer.command == "operate" and not pl_module.intervening:
            return
        for logger in trainer.loggers:
            if isinstance(logger, TensorBoardLogger) and trainer.is_global_zero:
                page = markdown(table(pl_module.scores), pl_module.scores)
                logger.experiment.add_text("summary", page)
                scores = pl_module.scores[pl_module.column].rows()
                logger.log_hyperparams(
                    _hyperparameters(pl_module),
                    {f"result/{label}": score.value for label, score in scores.items()},
                )

    def _write_importance(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        if trainer.is_global_zero and pl_module.importance is not None:
            pl_module.importance.save(Path(trainer.default_root_dir) / "importance.safetensors")

    def _write_results(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        if trainer.is_global_zero:
            record = run_record(pl_module, str(trainer.command))
            write_json(Path(trainer.default_root_dir) / "results.json", record)


def _hyperparameters(pl_module: "CausalLanguageModel") -> dict[str, Any]:
    values: dict[str, Any] = {"model": pl_module.identity["source"]}
    if pl_module.edit is not None:
        origin = pl_module.edit.selection.origin
        values |= {
            "method": origin.get("method"),
            "proportion": origin.get("proportion"),
            "calibration": ", ".join(origin.get("calibration", ())),
            "factor": pl_module.edit.factor,
            "selected parameters": pl_module.edit.selection.count,
        }
    return values
