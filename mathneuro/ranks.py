"""The processes of a run: what each one takes, and where they wait for one another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from torch import distributed
from torch.distributed import DistError

from mathneuro.errors import InputError
from mathneuro.failure import LOOK_SECONDS, LOST, has_failed
from mathneuro.shard import neighbours

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

T = TypeVar("T")

PATIENCE = timedelta(days=365)
"""How long processes wait for one another: as long as the longest evaluation."""


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, as one of them sees them.

    They wait for one another in a group of their own, whose patience has no practical end: an
    ordinary collective gives up after some minutes, but one process may evaluate for hours while
    the others are done. If a process is lost, the others hear of it where they wait (`meet`) or
    look (`check`).

    Attributes:
        rank: Which of the processes this one is.
        count: How many there are.
        is_first_here: Whether this one builds the caches of its machine.
        in_lockstep: Whether all do the same work together, as where one model is spread over them;
            then nothing is divided.
        group: The group to wait in. None: there is one process.

    Example:
        >>> Ranks(rank=1, count=3).share(list("abcde")), Ranks(rank=1, count=3).part(list("abcde"))
        (['b', 'e'], ['c', 'd'])
    """

    rank: int = 0
    count: int = 1
    is_first_here: bool = True
    in_lockstep: bool = False
    group: Any = None

    @classmethod
    def of(cls, trainer: "Trainer", in_lockstep: bool = False) -> "Ranks":
        """Return the processes of a Trainer whose strategy is set up; all have to call it."""
        if trainer.world_size == 1:
            return cls()
        return cls(
            trainer.global_rank,
            trainer.world_size,
            trainer.local_rank == 0,
            in_lockstep,
            distributed.new_group(backend="gloo", timeout=PATIENCE),
        )

    @property
    def divides(self) -> bool:
        """Whether work is divided among several processes."""
        return self.count > 1 and not self.in_lockstep

    def share(self, items: Sequence[T]) -> list[T]:
        """Return this process's share of a list: every so many."""
        return list(items[self.rank :: self.count] if self.divides else items)

    def part(self, items: Sequence[T]) -> list[T]:
        """Return this process's share of a list: neighbours."""
        return neighbours(items, self.rank, self.count) if self.divides else list(items)

    def meet(self) -> None:
        """Wait until all processes are here.

        Raises:
            InputError: If another process ended.
        """
        if self.group is None:
            return
        try:
            arrival = distributed.barrier(self.group, async_op=True)
            while not arrival.is_completed():
                time.sleep(LOOK_SECONDS)
            arrival.wait()
        except RuntimeError as error:
            raise InputError(LOST) from error

    def check(self) -> None:
        """Refuse to go on alone, where there is nothing to wait for.

        Raises:
            InputError: If another process failed, or the one that started this one is gone.
        """
        if self.group is None:
            return
        try:
            failed = has_failed()
        except DistError as error:
            raise InputError(LOST) from error
        if failed:
            raise InputError(LOST)

    def collect(self, value: T) -> list[T]:
        """Return what the processes give that divide the work; all have to call it.

        Raises:
            InputError: If another process ended.
        """
        return self.gather(value) if self.divides else [value]

    def gather(self, value: T) -> list[T]:
        """Return what every process gives, in the order of their ranks; all have to call it.

        Raises:
            InputError: If another process ended.
        """
        if self.group is None:
            return [value]
        values: list[Any] = [None] * self.count
        self.meet()
        try:
            distributed.all_gather_object(values, value, group=self.group)
        except RuntimeError as error:
            raise InputError(LOST) from error
        return values

    def first(self, find: Callable[[], T]) -> T:
        """Return what the first process finds, in all; all have to call it.

        What a process finds in a folder another may find a moment later, or not yet.

        Raises:
            InputError: If another process ended.
        """
        return self.gather(find() if self.rank == 0 else None)[0]  # type: ignore[return-value]

    def in_turn(self, work: Callable[[], T]) -> T:
        """Do something in one process of each machine first: the others find its caches."""
        if not self.is_first_here:
            self.meet()
        result = work()
        if self.is_first_here:
            self.meet()
        return result

    def agree(self, what: str, value: Callable[[], object]) -> None:
        """Refuse to go on if something is not the same in all processes; all have to call it.

        Args:
            what: What it is, for the message.
            value: Finds it; not called where there is only one process.

        Raises:
            InputError: If it is not the same.
        """
        if self.count == 1:
            return
        mine = value()
        for rank, other in enumerate(self.gather(mine)):
            if other != mine:
                raise InputError(
                    f"trainer: {what} of process {self.rank} is {mine}, but that of process "
                    f"{rank} is {other}, and they must be the same; give every machine the same "
                    "files and the same library versions"
                )


ALONE = Ranks()
"""One process that shares nothing with others."""
