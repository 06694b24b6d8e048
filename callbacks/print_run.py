"""When something is told on the terminal: as soon as it is known."""

from typing import TYPE_CHECKING

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException
from typing_extensions import override

from callbacks.run import Run, running
from mathneuro.table import plain
from mathneuro.terminal import counted, say, tell
from mathneuro.trainer import MathNeuroTrainer

if TYPE_CHECKING:
    from mathneuro.layers import Coverage, LeftAlone
    from mathneuro.neurons import NeuronCoverage


class PrintRun(Callback):
    """Tells in a few lines what a run does and finds."""

    def __init__(self) -> None:
        self._begun = False

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Introduce the model, then the edit."""
        run = running(trainer, pl_module)
        self._begin(run)
        self._tell_untold(run)
        if run.is_first and run.module.intervening:
            if run.command == "operate":
                self._identified(run)
            self._edited(run)

    @override
    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Introduce the model."""
        run = running(trainer, pl_module)
        self._begin(run)
        self._tell_untold(run)

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the end table."""
        run = running(trainer, pl_module)
        self._tell_untold(run)
        if not run.is_first or run.command == "sweep":
            return
        for note in run.module.scores[run.module.column].notes:
            tell("note", f"{run.module.column}: {note}")
        if run.command == "validate" or run.module.intervening:
            self._table(run)
            self._files(run)

    @override
    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Tell where the importance is."""
        run = running(trainer, pl_module)
        if run.is_first and run.command == "predict":
            self._identified(run)
            self._files(run)

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Tell that an interruption leaves nothing half-written."""
        if isinstance(exception, KeyboardInterrupt | SIGTERMException) and trainer.is_global_zero:
            of_sweep = f"{trainer.default_root_dir} holds what was measured; run it again to go on"
            is_sweep = isinstance(trainer, MathNeuroTrainer) and trainer.command == "sweep"
            tell("interrupted", of_sweep if is_sweep else "nothing is half-written; run it again")

    def _begin(self, run: Run) -> None:
        if self._begun or not run.is_first:
            return
        self._begun = True
        coverage = run.module.coverage
        name = run.module.source.path.rstrip("/").rpartition("/")[2]
        shares = sorted(coverage.reasons().items(), key=lambda item: -item[1])
        left_alone = [f"{reason} {100 * count / coverage.total:.2g} %" for reason, count in shares]
        tell(
            name,
            f"{_millions(coverage.total)} parameters, {len(coverage.weights):,} linear weights = "
            f"{coverage.share:.0%} of them take part"
            + (f"; left alone: {', '.join(left_alone)}" if left_alone else ""),
        )
        self._warn(coverage)
        if run.module.needs_activations:
            self._tell_neurons(run.module.neurons)
        if run.module.loaded_tokenizer.note is not None:
            tell("note", run.module.loaded_tokenizer.note)
        for note in run.data.notes(run.module.context_length):
            tell("note", note)

    def _tell_untold(self, run: Run) -> None:
        """Tell what was found out of how texts are read."""
        while run.is_first and run.data.untold:
            tell("note", run.data.untold.pop(0))

    def _warn(self, coverage: "Coverage") -> None:
        """Name the weights that should take part and cannot."""
        missing: dict[str, list[LeftAlone]] = {}
        for item in coverage.not_covered():
            missing.setdefault(item.reason, []).append(item)
        for reason, items in missing.items():
            share = sum(item.parameters for item in items) / coverage.total
            tell(
                "warning",
                f"{100 * share:.2g} % of the parameters are not covered: {items[0].name}"
                + (f" and {len(items) - 1} more" if len(items) > 1 else "")
                + f", {reason}",
            )

    def _tell_neurons(self, neurons: "NeuronCoverage") -> None:
        """Tell how many neurons take part, and name those that do not."""
        tell("neurons", f"{neurons.count:,} of {neurons.total:,} MLP neurons take part")
        for reason, items in neurons.reasons().items():
            share = sum(item.neurons for item in items) / neurons.total
            tell(
                "warning",
                f"{100 * share:.2g} % of the MLP neurons are left out: {items[0].name}"
                + (f" and {len(items) - 1} more" if len(items) > 1 else "")
                + f", {reason}",
            )

    def _identified(self, run: Run) -> None:
        importance, found = run.module.importance, run.module.identification
        if importance is None or found is None:
            return
        texts = ", ".join(f"{name} {count:,} texts" for name, count in importance.texts.items())
        if found.file is not None:
            tell("identify", f"{texts}, from {found.file}, no forward pass")
            return
        distinct = sum(each["distinct_texts"] for each in importance.data.values())
        tell(
            "identify",
            f"{texts}, {distinct:,} distinct in {found.forward_passes:,} forward passes, "
            f"{found.seconds:.1f} s",
        )

    def _edited(self, run: Run) -> None:
        edit = run.module.edit
        if edit is None:
            return
        origin, count = edit.selection.origin, edit.selection.count
        share = count / run.module.coverage.total
        neurons = (
            f"{origin['neurons']:,} of {origin['of_neurons']:,} neurons, "
            if "neurons" in origin
            else ""
        )
        tell(
            "select",
            f"{origin.get('method')}"
            + (f", proportion {origin['proportion']}" if "proportion" in origin else "")
            + f": {neurons}{count:,} parameters ({100 * share:.3g} %)",
        )
        if count == 0:
            tell("note", "nothing is selected, so that nothing changes")
        others = len(edit.factors)
        tell(
            "prune" if edit.factor == 0 and not others else "scale",
            f"factor {edit.factor:g}"
            + (f", others for {counted(others, 'weight')}" if others else ""),
        )

    def _table(self, run: Run) -> None:
        if not any(scores.rows() for scores in run.module.scores.values()):
            tell("note", "nothing was measured: lm_eval names no tasks, and data.held_out is 0")
            return
        for line in plain(run.module.scores):
            say(line)

    def _files(self, run: Run) -> None:
        folder = run.folder
        names = ["results.json"]
        names += ["edit.safetensors"] if run.command == "operate" else []
        names += ["importance.safetensors"] if run.command != "validate" else []
        names += ["samples"] if (folder / "samples").exists() else []
        board = f", TensorBoard: tensorboard --logdir {folder}" if run.has_logger else ""
        tell(str(folder), f"{', '.join(names)}{board}")


def _millions(number: int) -> str:
    return f"{number / 1e9:.2f} B" if number >= 1e9 else f"{number / 1e6:.1f} M"
