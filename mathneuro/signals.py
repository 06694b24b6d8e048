"""What signals do to a run: it ends at once, and what it changed is restored."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lightning.pytorch import Trainer
from lightning.pytorch.trainer.connectors.signal_connector import _SignalConnector
from lightning.pytorch.utilities.exceptions import SIGTERMException
from typing_extensions import override


class Signals(_SignalConnector):
    """Lightning's handlers of signals, but for SIGTERM, which ends a run at once.

    Lightning's own lets all processes meet, for which none is in the right place here, and then
    waits for the end of a batch, which may be a whole evaluation.
    """

    @override
    def _sigterm_notifier_fn(self, signum: int, _: FrameType | None) -> None:
        raise SIGTERMException


@contextmanager
def killable() -> Iterator[None]:
    """Let signals end the process in this block by themselves.

    Where it waits for others within a library, nothing of Python runs that could react to them.
    """
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, signal.SIG_DFL) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def ending_when_told(trainer: Trainer) -> Iterator[None]:
    """End a run at once when it is told to (SIGTERM), by an exception, so that all is restored.

    Args:
        trainer: The Trainer, whose own way is replaced.
    """

    def end(signum: int, frame: FrameType | None) -> None:
        raise SIGTERMException

    trainer._signal_connector = Signals(trainer)
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
