"""How the processes of a run end together when one fails: one tells the user why, all end."""

import errno
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lightning.pytorch.utilities.memory import is_oom_error
from torch import distributed
from torch.distributed import DistError, distributed_c10d

from mathneuro.watch import tells

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""Numbers of errors that mean that a file cannot be written, wherever a library does."""

FORBIDDEN = {errno.EACCES, errno.EPERM}
"""Numbers of errors that mean that a file may not be read or written."""

LOOK_SECONDS = 0.02
"""How often a waiting process looks up, so that an interruption reaches it."""

LOST = (
    "trainer: another process of this run ended before its work was done; see what it said last, "
    "or whether its machine ran out of memory"
)

FAILED = "mathneuro/failed"
"""Key under which processes that fail count themselves."""

TOLD = "mathneuro/told"
"""Key that is there once the first of them has told why."""

FIRST_SECONDS = 3.0
"""How long others wait for it before they know of one another."""

TELL_SECONDS = 10.0
"""How long the others wait for that; it may be killed before."""


def what_went_wrong(error: Exception) -> str | None:
    """Say in a sentence what an error means: no memory, no room, or processes that cannot meet.

    Args:
        error: An error, of a library too.

    Returns:
        The sentence. None: it is an error of something else.
    """
    if is_oom_error(error):
        reason = str(error).split(". ")[0]
        return (
            f"trainer: the device ran out of memory ({reason}); lower data.batch_size or "
            "data.batch_tokens, or lm_eval.batch_size, or see model.device_map"
        )
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        place = error.filename or error.filename2 or "a file"
        return (
            f"folder: {place} cannot be written ({error.strerror}); give a folder that you may "
            "write to and that has room"
        )
    if isinstance(error, OSError) and error.errno in FORBIDDEN:
        place = error.filename or error.filename2 or "a file"
        return (
            f"trainer: {place} may not be used ({error.strerror}); change its permissions, or give "
            "another"
        )
    # Gloo raises plain errors, which name the file of its source code where they come from.
    if not isinstance(error, DistError) and "/gloo/transport/" not in str(error):
        return None
    if distributed.is_initialized():
        return LOST
    reason = str(error).splitlines()[0]
    return (
        f"trainer: the processes of this run did not find one another ({reason}); start one on "
        "every device of every machine, and check that they reach the first machine"
    )


def tell_once(say: Callable[[], object]) -> None:
    """Let one process alone tell the user why the run ends: the first that fails.

    The others end because of it, or for the same reason. This returns once it has told, in all of
    them, since whoever ends first may end all. Before the processes know of one another it is the
    first of each machine that tells.

    Args:
        say: Tells it on the terminal.
    """
    if not distributed.is_initialized():
        if tells():
            say()
        else:
            # Whoever ends first may end all, and the one that tells may not be as far yet.
            time.sleep(FIRST_SECONDS)
        return
    try:
        store = _store()
        if store.add(FAILED, 1) == 1 or not _is_told(store):
            say()
            sys.stderr.flush()
            store.set(TOLD, "")
    except DistError:
        # The process that keeps the store has gone, and could be killed before it told why.
        if tells():
            say()


def has_failed() -> bool:
    """Tell whether a process of the run failed.

    Raises:
        DistError: If the process that keeps the store is gone.
    """
    return bool(_store().check([FAILED]))


def _is_told(store: "Store") -> bool:
    """Wait until another process has told why the run ends; False if it does not."""
    limit = time.monotonic() + TELL_SECONDS
    while not store.check([TOLD]):
        if time.monotonic() > limit:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _store() -> "Store":
    """Return what the processes met through, for which torch has no public name."""
    return distributed_c10d._get_default_store()
