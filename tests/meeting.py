"""What two processes check that meet; a test starts both."""

import time
from datetime import timedelta

import pytest
from lightning.pytorch import Trainer
from torch import distributed
from torch.distributed import distributed_c10d

from mathneuro.errors import InputError
from mathneuro.programs.task import RunPrograms, running_in
from mathneuro.ranks import Ranks


def start() -> Ranks:
    """Let Lightning set the processes up."""
    trainer = Trainer(
        accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, barebones=True,
    )  # fmt: skip
    assert trainer.strategy.launcher is not None
    trainer.strategy.launcher.launch(trainer.strategy.setup_environment)
    return Ranks.of(trainer)


def check_what_is_given(ranks: Ranks) -> None:
    """Every process has what all gave, in order, or what the first one found."""
    assert ranks.gather(10 * ranks.rank) == [0, 10]
    assert ranks.collect("ab"[ranks.rank]) == ["a", "b"]
    assert ranks.first(lambda: f"found by {ranks.rank}") == "found by 0"


def check_order(ranks: Ranks) -> None:
    """The first of a machine is done before the other begins."""

    def work() -> float:
        time.sleep(0.3)
        return time.monotonic()

    times = ranks.gather(ranks.in_turn(work))
    assert times[1] - times[0] >= 0.3


def check_agreement(ranks: Ranks) -> None:
    """What differs is refused in both, with both values."""
    ranks.agree("the number", lambda: 7)
    with pytest.raises(InputError, match=r"the number of process \d is \d, but that of process"):
        ranks.agree("the number", lambda: ranks.rank)


def check_patience(ranks: Ranks) -> None:
    """They wait for longer than ordinary collectives do."""
    distributed_c10d._set_pg_timeout(timedelta(seconds=0.5))
    if ranks.rank == 0:
        time.sleep(2)
    ranks.meet()
    if ranks.rank == 1:
        time.sleep(2)
        return
    with pytest.raises(RuntimeError, match="imed out"):
        distributed.barrier()


def check_programs(ranks: Ranks) -> None:
    """The first process runs the programs of a model, and all get what came of them."""
    mine = f"def solution():\n    return {ranks.rank + 7}"
    with running_in(ranks):
        [found] = RunPrograms(seconds=5.0, memory=2**29).apply([[mine]], [{}])
    assert (found["status"], found["value"]) == ("ran", "7")


def main() -> None:
    """Check all of it."""
    both = start()
    for check in (
        check_what_is_given,
        check_order,
        check_agreement,
        check_programs,
        check_patience,
    ):
        check(both)
