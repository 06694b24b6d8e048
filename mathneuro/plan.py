"""What a sweep is going to do, told before anything is loaded."""

from typing import TYPE_CHECKING

from mathneuro.study import Study
from mathneuro.terminal import counted

if TYPE_CHECKING:
    from mathneuro.data.module import TextDataModule


def plan_lines(study: Study, data: "TextDataModule") -> list[tuple[str, str]]:
    """Say how much work a sweep is, in lines of a label and a text.

    The texts are read and drawn for it; model, tokenizer and tasks are not.

    Args:
        study: The sweep.
        data: The sets of texts, with the draws of the sweep.
    """
    edits = [setting for setting in study.settings.values() if setting is not None]
    calibration = sorted({"+".join(each.calibration) for each in edits if each.calibration})
    grid = [
        f"{', '.join(study.grid.methods)}",
        f"calibration {', '.join(calibration)}" if calibration else "no calibration",
        counted(study.grid.repeats, "repeat"),
        counted(len(study.grid.proportions), "proportion"),
        counted(len(study.grid.factors), "factor"),
        counted(len({draw.num_samples for draw in study.draws}), "number") + " of samples",
    ]
    pending, shard = len(study.pending()), study.shard
    drawn = sum(len(draw.rows) for each in data.drawn.values() for draw in each.draws.values())
    distinct = [len(each.texts) for each in data.drawn.values()]
    work = f"forward passes of up to {data.batches}"
    if data.batch_tokens is None and data.batch_size is not None:
        # Without tokens it is known how many these are.
        work = f"{sum(-(-number // data.batch_size) for number in distinct):,} {work}"
    if not study.needs_identification():
        work = "0 forward passes"
    return [
        ("grid", " x ".join(grid)),
        (
            "settings",
            f"{counted(len(study.names), 'setting')}, one of them the model as it is; at most as "
            f"many evaluations; {pending:,} to do in shard {shard.index}/{shard.count}",
        ),
        ("identify", f"{drawn:,} texts drawn, {sum(distinct):,} distinct; {work}"),
        *_notes(study),
    ]


def _notes(study: Study) -> list[tuple[str, str]]:
    """Say what the command asks for and will not get."""
    if not study.grid.samples:
        return []
    without = sum(
        study.path(name).exists() and not (study.folder / "samples" / name).exists()
        for name in study.names
    )
    text = f"{counted(without, 'setting')} finished before without answers, which stay unknown"
    return [("note", f"grid.samples: {text}")] if without else []
