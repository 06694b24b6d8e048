"""Where in a model a weight is, by its name: in which decoder block, and which projection."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["whole", "block", "projection", "cell"]
"""What a place is: the whole model, a block, a projection of all blocks, or one of one block."""

OUTSIDE = "outside"
"""Name of what is in no block."""


@dataclass(frozen=True, order=True)
class Group:
    """A place that weights of one kind share.

    Attributes:
        block: Which decoder block, from 0. None: outside of all blocks, as the head.
        projection: Which weight of a block, such as ``self_attn.q_proj``; all experts of a mixture
            share one.
    """

    block: int | None
    projection: str


def find_group(name: str) -> Group:
    """Tell where a weight is.

    The block is the first number in the name, the projection all that follows it, without further
    numbers (those of experts) and without ``weight``. Weights of a block that differ by a number
    alone therefore count as one projection, as experts should; so do the layers of an
    `nn.Sequential` inside a block.

    Args:
        name: Name of the weight in the model.

    Example:
        >>> find_group("model.layers.3.mlp.experts.down_proj.17")
        Group(block=3, projection='mlp.experts.down_proj')
        >>> find_group("lm_head.weight"), find_group("0.weight").projection
        (Group(block=None, projection='lm_head'), 'weight')
    """
    parts = name.split(".")
    first = next((place for place, part in enumerate(parts) if part.isdecimal()), None)
    own = parts if first is None else parts[first + 1 :]
    kept = [part for part in own if not part.isdecimal()]
    if len(kept) > 1 and kept[-1] == "weight":
        kept.pop()
    return Group(None if first is None else int(parts[first]), ".".join(kept))


@dataclass(frozen=True)
class Place:
    """Weights that are counted together.

    Attributes:
        level: What it is.
        block: Which block, of blocks and cells. None there: outside of all blocks.
        projection: Which projection, of projections and cells; empty otherwise.
    """

    level: Level
    block: int | None = None
    projection: str = ""

    @property
    def block_name(self) -> str:
        """The block's name; empty if it is not that of a block."""
        if self.level in ("whole", "projection"):
            return ""
        return OUTSIDE if self.block is None else str(self.block)


WHOLE = Place("whole")
"""The whole model, as far as it takes part."""


def find_places(names: Iterable[str]) -> dict[Place, list[str]]:
    """Find every place of a model, and the weights that belong to it.

    Args:
        names: Names of the weights, in the order of the model.

    Returns:
        Names by place: the whole; blocks in rising order, what is outside last; projections in the
        order of the model; one projection of one block, block by block.

    Example:
        >>> places = find_places(["lm_head.weight", "h.0.mlp.weight", "h.1.mlp.weight"])
        >>> places[Place("projection", projection="mlp")]
        ['h.0.mlp.weight', 'h.1.mlp.weight']
        >>> [place.block_name for place in places if place.level == "block"]
        ['0', '1', 'outside']
    """
    groups = {name: find_group(name) for name in names}
    blocks = sorted({group.block for group in groups.values()}, key=_last_if_none)
    projections = list(dict.fromkeys(group.projection for group in groups.values()))
    places: dict[Place, list[str]] = {WHOLE: list(groups)}
    places |= {Place("block", block): [] for block in blocks}
    places |= {Place("projection", projection=each): [] for each in projections}
    places |= {Place("cell", block, each): [] for block in blocks for each in projections}
    for name, group in groups.items():
        places[Place("block", group.block)].append(name)
        places[Place("projection", projection=group.projection)].append(name)
        places[Place("cell", group.block, group.projection)].append(name)
    return {place: members for place, members in places.items() if members or place == WHOLE}


def _last_if_none(block: int | None) -> tuple[bool, int]:
    return block is None, block or 0
