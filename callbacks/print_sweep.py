"""When something of a sweep is told on the terminal: as each setting ends."""

from lightning.pytorch import LightningModule, Trainer
from typing_extensions import override

from callbacks.intervene import Intervene
from callbacks.run import Run, running
from callbacks.select_parameters import SelectParameters
from callbacks.setting import SettingCallback
from mathneuro.scores import Scores
from mathneuro.study import InFlight, Study
from mathneuro.table import written
from mathneuro.terminal import counted, tell


class PrintSweep(SettingCallback):
    """Tells what identification took, and the scores of each setting in one line."""

    def __init__(self) -> None:
        self._begun = False

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Tell of options that a sweep does not use."""
        run = running(trainer, pl_module)
        if run.module.study is None or not run.is_first or self._begun:
            return
        self._begun = True
        for section, unused in _unused(trainer).items():
            tell(
                "note", f"{section}: {', '.join(unused)} not used, as grid says what a sweep tries"
            )

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Tell what identification took, or where it came from."""
        run = running(trainer, pl_module)
        found, study = run.module.identification, run.module.study
        if study is None or found is None or not run.is_first:
            return
        if found.file is not None:
            draws = counted(len(run.module.importances), "draw")
            tell("identify", f"{draws}, from {found.file}")
            return
        tell(
            "identify",
            f"{counted(found.texts_forwarded, 'text')} in {found.forward_passes:,} forward passes, "
            f"{found.seconds:.1f} s, for {counted(len(study.draws), 'draw')} of each set",
        )

    @override
    def on_setting_end(self, run: Run, study: Study, flight: InFlight) -> None:
        """Tell the scores of the setting that just ended."""
        if flight.scores is None or not run.writes:
            return
        # Perplexities would make the line long; without tasks they are all there is.
        rows = Scores(tasks=flight.scores.tasks).rows() or flight.scores.rows()
        shown = ", ".join(f"{label} {written(label, score)}" for label, score in rows.items())
        position = f"{study.names.index(flight.name) + 1}/{len(study.names)}"
        same = f" (as {flight.known['name']})" if flight.known is not None else ""
        tell(position, f"{flight.name}{same}: {shown}")
        for note in flight.scores.notes:
            tell("note", f"{flight.name}: {note}")


def _unused(trainer: Trainer) -> dict[str, list[str]]:
    """Return the options of single runs that were set, by section."""
    unused: dict[str, list[str]] = {}
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(callback, SelectParameters | Intervene):
            default = type(callback)()
            names = [
                name
                for name in ("method", "proportion", "calibration", "factor")
                if getattr(callback, name, None) != getattr(default, name, None)
            ]
            section = "selection" if isinstance(callback, SelectParameters) else "intervention"
            if names:
                unused[section] = names
    return unused
