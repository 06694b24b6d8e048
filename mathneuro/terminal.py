"""What the terminal shows: our lines, progress bars, warnings about results, and no more."""

import logging
import os
import warnings


def settle() -> None:
    """Make bars appear for what takes longer than two seconds, and go when it is done.

    Has to run before anything else is imported: tqdm reads its settings from the environment then.
    """
    os.environ.setdefault("TQDM_DELAY", "2")
    os.environ.setdefault("TQDM_LEAVE", "")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def quieten() -> None:
    """Keep what libraries tell of themselves off the terminal, once they are imported."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (".*does not have many workers.*", ".*treespec, LeafSpec.*"):
        warnings.filterwarnings("ignore", message=message)
