"""Progress bars that are there while something runs, and only where somebody looks."""

import sys

from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.callbacks.progress.tqdm_progress import Tqdm
from typing_extensions import override


class TransientProgressBar(TQDMProgressBar):
    """Lightning's bars, gone when they are done; none if the output is no terminal."""

    def __init__(self) -> None:
        super().__init__()
        if not sys.stdout.isatty():
            self.disable()

    @override
    def init_validation_tqdm(self) -> Tqdm:
        """Make a bar that does not stay."""
        bar = super().init_validation_tqdm()
        bar.leave = False
        return bar

    @override
    def init_predict_tqdm(self) -> Tqdm:
        """Make a bar that does not stay."""
        bar = super().init_predict_tqdm()
        bar.leave = False
        return bar
