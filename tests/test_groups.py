"""Where weights are, for every family of models."""

import re

import pytest

from mathneuro.groups import WHOLE, Group, Place, find_group, find_places
from mathneuro.layers import find_linear_weights
from tests.families import FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_every_weight_of_a_family_has_its_place(name: str) -> None:
    """Weights of a block share a projection only if they are experts; blocks are the model's."""
    model = FAMILIES[name].build()
    weights = find_linear_weights(model).weights
    groups: dict[Group, list[str]] = {}
    for weight in weights:
        groups.setdefault(find_group(weight), []).append(weight)
    for group, members in groups.items():
        # What is outside of the blocks is the head, or what stands before it.
        in_a_list = any(re.search(r"\.\d+\.", weight) for weight in members)
        assert (group.block is not None) == in_a_list, members
        assert group.projection
        assert not re.search(r"\d\.|\.\d|weight", group.projection)
        if len(members) > 1:
            assert all("experts" in weight or weights[weight].expert is not None
                       for weight in members), members  # fmt: skip
            assert len({weights[weight].stored_shape for weight in members}) == 1
    text_config = model.config.get_text_config()
    blocks = {group.block for group in groups} - {None}
    assert blocks == set(range(text_config.num_hidden_layers))


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("model.layers.11.self_attn.q_proj.weight", Group(11, "self_attn.q_proj")),
        ("model.layers.0.mlp.experts.3.down_proj.weight", Group(0, "mlp.experts.down_proj")),
        ("model.layers.0.block.input_linear.weight.3", Group(0, "block.input_linear")),
        ("transformer.h.2.attn.c_attn.weight", Group(2, "attn.c_attn")),
        ("lm_head.weight", Group(None, "lm_head")),
        ("0.weight", Group(0, "weight")),
        ("weight", Group(None, "weight")),
    ],
)
def test_names(name: str, group: Group) -> None:
    """Of kinds that the families have, and of plain modules."""
    assert find_group(name) == group


def test_places_hold_every_weight_once_a_level() -> None:
    """Blocks in rising order, what is outside last."""
    names = ["lm_head.weight", *(f"h.{i}.{j}.weight" for i in (10, 2) for j in ("a", "b"))]
    places = find_places(names)
    for level in ("whole", "block", "projection", "cell"):
        held = [name for place, members in places.items() if place.level == level
                for name in members]  # fmt: skip
        assert sorted(held) == sorted(names)
    assert places[WHOLE] == names
    assert [place.block_name for place in places if place.level == "block"] == [
        "2",
        "10",
        "outside",
    ]
    assert places[Place("cell", 2, "a")] == ["h.2.a.weight"]
    assert find_places([]) == {WHOLE: []}
