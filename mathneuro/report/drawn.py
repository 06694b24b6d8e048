"""Figures as files: PNG and SVG, and the pixels for TensorBoard."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mathneuro.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESOLUTION = 150
"""Dots per inch of PNG files."""


@dataclass(frozen=True)
class Drawn:
    """One figure.

    Attributes:
        title: Its title.
        png: Its file.
        svg: The same, scalable.
    """

    title: str
    png: Path
    svg: Path


def save_figure(figure: "Figure", path: Path) -> Drawn:
    """Write a figure as PNG and SVG; the same figure gives the same bytes.

    Args:
        figure: The figure.
        path: Where to, without an ending.
    """
    kinds: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None}}
    paths = []
    for kind, metadata in kinds.items():
        target = path.with_name(f"{path.name}.{kind}")

        def write(unfinished: Path, kind: str = kind, metadata: object = metadata) -> None:
            figure.savefig(unfinished, format=kind, dpi=RESOLUTION, metadata=metadata)

        write_file(target, write)
        paths.append(target)
    return Drawn(figure.get_suptitle().replace("\n", " "), *paths)


def write_summary_page(folder: Path, tag: str, text: str, drawn: Sequence[Drawn]) -> None:
    """Write a run for TensorBoard that holds a text and figures.

    Args:
        folder: Where the run goes.
        tag: Name of the text.
        text: Markdown.
        drawn: The figures.
    """
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        writer.add_text(tag, text)
        for each in drawn:
            writer.add_image(f"figures/{each.png.stem}", _pixels(each.png), dataformats="HWC")


def _pixels(path: Path) -> Any:  # noqa: ANN401
    """Read a PNG file as bytes of red, green and blue, ``[height, width, 3]``."""
    import numpy as np
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))
