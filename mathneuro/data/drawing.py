"""Reading all sets of texts, and drawing from what no set holds out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mathneuro.data.draws import DrawKey, Split, draw, hold_out, some_distinct, without
from mathneuro.data.reading import Text, read_texts
from mathneuro.data.sets import DrawnSet
from mathneuro.data.spec import MATH, TextSet
from mathneuro.errors import InputError


@dataclass(frozen=True)
class Drawing:
    """How texts are drawn.

    Attributes:
        keys: The draws.
        replacement: Whether a text can be drawn more than once.
        seed: Seed of the draws, and of which texts are held out.
        held_out: Texts of each set that identification never uses.
    """

    keys: Sequence[DrawKey]
    replacement: bool
    seed: int
    held_out: int


def place(name: str) -> str:
    """Return where the user gave a set: ``data.math`` or ``data.calibration.NAME``."""
    return "data.math" if name == MATH else f"data.calibration.{name}"


def draw_sets(specs: Mapping[str, TextSet], how: Drawing) -> dict[str, DrawnSet]:
    """Read all sets, and draw from what no set holds out.

    Args:
        specs: Where the texts come from, by name of the set.
        how: How they are drawn.

    Raises:
        InputError: If a set cannot be read, or too little of it is left.
    """
    read = {name: _read(name, spec, how) for name, spec in specs.items()}
    held_out = tuple(text for split in read.values() for text in split.held_out)
    return {name: _draw(name, specs[name], split, held_out, how) for name, split in read.items()}


def _read(name: str, spec: TextSet, how: Drawing) -> Split:
    """Read one set, and split it."""
    where = place(name)
    read = read_texts(spec, where)
    empty = read.empty
    if spec.has_own_held_out:
        field = "held_out_split" if spec.held_out_path is None else "held_out_path"
        others = read_texts(spec.held_out(), where, field)
        empty += others.empty
        held_out = some_distinct(others.texts, how.held_out, how.seed, where)
        return Split(read.texts, held_out, empty)
    usable, held_out = hold_out(read.texts, how.held_out, how.seed, where)
    return Split(usable, held_out, empty)


def _draw(
    name: str, spec: TextSet, split: Split, held_out: tuple[Text, ...], how: Drawing
) -> DrawnSet:
    """Draw from the texts of a set that neither it nor another set holds out."""
    usable = without(split.usable, held_out)
    if not usable:
        raise InputError(
            f"{place(name)}: each of its texts is held out, by itself or by another set, but some "
            "must be left for identification; give another file or split, or hold out fewer"
        )
    draws = {key: draw(usable, key, how.replacement, how.seed, place(name)) for key in how.keys}
    return DrawnSet(spec, usable, draws, split.held_out, split.empty)
