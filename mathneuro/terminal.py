"""What the terminal shows: our lines, progress bars, warnings about results, and no more."""

import logging
import os
import warnings


def settle() -> None:
    """Keep what libraries tell of themselves off the terminal.

    Has to run before they are imported: tqdm reads its settings from the environment then. Bars
    appear for what takes longer than two seconds and go when it is done.
    """
    os.environ.setdefault("TQDM_DELAY", "2")
    os.environ.setdefault("TQDM_LEAVE", "")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (".*does not have many workers.*", ".*treespec, LeafSpec.*"):
        warnings.filterwarnings("ignore", message=message)
