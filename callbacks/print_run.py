"""When something is told on the terminal: as soon as it is known."""

from typing import TYPE_CHECKING

from lightning.pytorch import Callback
from rich.console import Console
from rich.table import Table
from typing_extensions import override

from callbacks.accumulate_importance import AccumulateImportance
from mathneuro.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from mathneuro.layers import Coverage
    from mathneuro.module import CausalLanguageModel
    from mathneuro.trainer import MathNeuroTrainer

LABEL_WIDTH = 11


class PrintRun(Callback):
    """Tells in a few lines what a run does and finds."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._begun = False

    @override
    def on_validation_start(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Introduce the model, then the edit."""
        self._begin(trainer, pl_module)
        if trainer.is_global_zero and pl_module.intervening:
            if trainer.command == "operate":
                self._identified(trainer, pl_module)
            self._edited(pl_module)

    @override
    def on_predict_start(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Introduce the model."""
        self._begin(trainer, pl_module)

    @override
    def on_validation_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Show the end table."""
        if not trainer.is_global_zero:
            return
        for note in pl_module.scores[pl_module.column].notes:
            self._line("note", f"{pl_module.column}: {note}")
        if trainer.command == "validate" or pl_module.intervening:
            self._table(pl_module)
            self._files(trainer)

    @override
    def on_predict_end(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        """Tell where the importance is."""
        if trainer.is_global_zero and trainer.command == "predict":
            self._identified(trainer, pl_module)
            self._files(trainer)

    def _line(self, label: str, text: str) -> None:
        self._console.print(f"{label:<{LABEL_WIDTH}} {text}", markup=False)

    def _begin(self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel") -> None:
        if self._begun or not trainer.is_global_zero:
            return
        self._begun = True
        coverage = pl_module.coverage
        name = pl_module.source.path.rstrip("/").rpartition("/")[2]
        self._line(
            name,
            f"{_millions(coverage.total)} parameters, {len(coverage.linears)} linear weights = "
            f"{coverage.share:.0%} of them take part",
        )
        self._not_covered(coverage)
        for note in trainer.datamodule.notes(pl_module.context_length):  # type: ignore[attr-defined]
            self._line("note", note)

    def _not_covered(self, coverage: "Coverage") -> None:
        missing = coverage.not_covered()
        if missing:
            share = sum(item.parameters for item in missing) / coverage.total
            self._line(
                "warning",
                f"{len(missing)} weights = {share:.0%} of the parameters are not covered: "
                f"{missing[0].name} first, {missing[0].reason}",
            )

    def _identified(
        self, trainer: "MathNeuroTrainer", pl_module: "CausalLanguageModel"
    ) -> None:
        importance = pl_module.importance
        if importance is None:
            return
        texts = ", ".join(f"{name} {count:,} texts" for name, count in importance.texts.items())
        measured = next(
            each for each in trainer.callbacks if isinstance(each, AccumulateImportance)
        )
        if measured.file is not None:
            self._line("identify", f"{texts}, from {measured.file}, no forward pass")
            return
        distinct = sum(each["distinct_texts"] for each in importance.data.values())
        self._line(
            "identify",
            f"{texts}, {distinct:,} distinct in {measured.forward_passes:,} forward passes, "
            f"{measured.seconds:.1f} s",
        )

    def _edited(self, pl_module: "CausalLanguageModel") -> None:
        edit = pl_module.edit
        if edit is None:
            return
        origin, count = edit.selection.origin, edit.selection.count
        share = count / pl_module.coverage.total
        self._line(
            "select",
            f"{origin.get('method')}, proportion {origin.get('proportion')}: {count:,} parameters "
            f"({share:.2%})",
        )
        self._line("prune" if edit.factor == 0 else "scale", f"factor {edit.factor:g}")

    def _table(self, pl_module: "CausalLanguageModel") -> None:
        both = len(pl_module.scores) == 2
        shown = Table(box=None, padding=(0, 3, 0, 0), show_edge=False)
        for title in ("", *(("before", "after", "change") if both else ("score",)), ""):
            shown.add_column(title, header_style="", no_wrap=True)
        for row in table(pl_module.scores):
            columns = (
                (row.before, row.after, row.change) if both else (row.before or row.after,)
            )
            shown.add_row(row.label, *columns, row.count)
        self._console.print(shown)

    def _files(self, trainer: "MathNeuroTrainer") -> None:
        folder: Path | str = trainer.default_root_dir
        names = {
            "operate": "results.json, edit.safetensors, importance.safetensors, samples",
            "predict": "results.json, importance.safetensors",
            "validate": "results.json, samples",
        }[str(trainer.command)]
        board = f", TensorBoard: tensorboard --logdir {folder}" if trainer.loggers else ""
        self._line(str(folder), f"{names}{board}")


def _millions(number: int) -> str:
    return f"{number / 1e9:.2f} B" if number >= 1e9 else f"{number / 1e6:.1f} M"
