"""Combined edits: sets of positions as Python's own sets have them."""

import math
import random
from pathlib import Path

import pytest
import torch

from mathneuro.combine import combine
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.selection import Selection
from tests.commands import run

SHAPES: dict[str, tuple[int, ...]] = {"a": (6, 5), "b": (4, 9)}


def edit(seed: int, factor: float = 0.0, weight_hash: str = "x") -> Edit:
    """Select at random, nothing in some weights."""
    chosen = random.Random(seed)
    positions = {}
    for name, shape in SHAPES.items():
        parameters = math.prod(shape)
        picked = sorted(chosen.sample(range(parameters), chosen.choice([0, 7, 20, parameters])))
        positions[name] = torch.tensor(picked, dtype=torch.int64)
    data = {"math": {"sha256": str(seed), "text_hashes": [str(seed)]}}
    selection = Selection(positions, SHAPES, {"seed": seed}, frozenset({"b"}))
    return Edit(selection, factor, {"weight_hash": weight_hash}, data)


@pytest.mark.parametrize("number", [2, 3, 4])
def test_sets_are_those_of_python(number: int) -> None:
    """Union, intersection and difference of many random edits."""
    for seed in range(25):
        edits = [edit(100 * seed + each) for each in range(number)]
        for how in ("union", "intersection", "difference"):
            found = combine(edits, how).selection
            for name in SHAPES:
                sets = [set(each.selection.positions[name].tolist()) for each in edits]
                expected = getattr(sets[0], how)(*sets[1:])
                assert found.positions[name].tolist() == sorted(expected)
            assert found.transposed == {"b"}


def test_data_of_all_are_kept() -> None:
    """So that held-out texts of no identification are used; equal ones once."""
    data = combine([edit(1), edit(2), edit(1)], "union", names=["p", "q", "r"]).data
    assert {key: each["sha256"] for key, each in data.items()} == {"math": "1", "math of q": "2"}


def test_factors_must_agree_or_be_given() -> None:
    """None is chosen silently."""
    with pytest.raises(InputError, match="edit 1 multiplies by 0 and edit 2 by 2"):
        combine([edit(1), edit(2, 2.0)], "union")
    assert combine([edit(1), edit(2, 2.0)], "union", 1.1).factor == 1.1
    assert combine([edit(1, 2.0), edit(2, 2.0)], "union").factor == 2.0


def test_edits_of_other_models_are_refused() -> None:
    """By hash, weights and shapes."""
    other = edit(2)
    other.selection.shapes = {**SHAPES, "b": (9, 4)}
    with pytest.raises(InputError, match=r"not of one model \(their weights differ \(b\)\)"):
        combine([edit(1), other], "union")
    with pytest.raises(InputError, match=r"not of one model \(weights x, y\)"):
        combine([edit(1), edit(2, weight_hash="y")], "union")
    with pytest.raises(InputError, match="how: got 'xor'"):
        combine([edit(1), edit(2)], "xor")
    with pytest.raises(InputError, match="at least two"):
        combine([edit(1)], "union")


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files in, a file out, which is not overwritten."""
    paths = [tmp_path / f"{seed}.safetensors" for seed in (1, 2)]
    for seed, path in zip((1, 2), paths, strict=True):
        edit(seed).save(path)
    options = [f"--edits=[{paths[0]}, {paths[1]}]", f"--output={tmp_path / 'both.safetensors'}"]
    run(monkeypatch, "combine", [*options, "--how=intersection"])
    found = Edit.load(tmp_path / "both.safetensors")
    expected = combine([edit(1), edit(2)], "intersection").selection
    for name in SHAPES:
        assert torch.equal(found.selection.positions[name], expected.positions[name])
    assert found.selection.origin["of"][0]["name"] == str(paths[0])
    assert f"{expected.count:,} parameters, factor 0" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(monkeypatch, "combine", options)
    assert "is there already" in capsys.readouterr().err
