"""The benchmarks run, and what they compare with gives the same."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from jsonargparse import auto_parser

from benchmarks import edits, export, grid, growth, identification, sandbox, selection, sweep
from benchmarks.__main__ import BENCHMARKS
from benchmarks.measuring import Figure, Ratio, alternate
from benchmarks.parts import texts
from mathneuro.data.draws import DrawKey


def test_identification(tmp_path: Path) -> None:
    """Against bare passes and the naive method."""
    output = tmp_path / "figures.json"
    identification.main(num_samples=4, naive_samples=2, rounds=1, output=output)
    figures = json.loads(output.read_text())
    assert [each["what"][0] for each in figures] == ["1", "2", "5"]
    assert all(each["value"] > 0 for each in figures)


def test_the_naive_grid_selects_the_same(tmp_path: Path) -> None:
    """In float64; the figure says how much of it."""
    output = tmp_path / "figures.json"
    grid.main(num_samples=1, batch_size=1, repeats=1, rounds=1, output=output)
    (figure,) = json.loads(output.read_text())
    assert figure["details"]["agreement with float64 sums"] == 1
    assert figure["details"]["naive passes"] == 160
    assert figure["value"] > 1


def test_selection_and_edits(tmp_path: Path) -> None:
    """The former compares its positions with those of a sort by itself."""
    output = tmp_path / "figures.json"
    selection.main(side=64, rounds=1, output=output)
    assert len(json.loads(output.read_text())) == 4
    edits.main(rounds=1, output=output)
    assert json.loads(output.read_text())[0]["value"] > 0
    sandbox.main(programs=2, rounds=1, output=output)
    assert json.loads(output.read_text())[0]["value"] > 1


@pytest.mark.slow
def test_export(tmp_path: Path) -> None:
    """In processes of its own."""
    output = tmp_path / "figures.json"
    export.main(parameters=1_000_000, rounds=1, output=output)
    assert len(json.loads(output.read_text())) == 4


def test_a_sweep_and_how_all_grows(tmp_path: Path) -> None:
    """Shares and ratios."""
    output = tmp_path / "figures.json"
    sweep.main(proportions=[0.05], num_samples=4, limit=2, output=output)
    assert 0 < json.loads(output.read_text())[0]["value"] < 1
    size = growth.Size(parameters=1_000_000, texts=4, words=4)
    assert growth.compare(size, size, rounds=1).keys() == {*growth.PARTS, "weights"}


def test_figures_know_their_goals() -> None:
    """On the right side of them."""
    assert Figure("", "", 1.02, at_most=1.03).met == "yes"
    assert Figure("", "", 1.04, at_most=1.03).met == "no"
    assert Figure("", "", 9.9, at_least=10).met == "no"
    assert Figure("", "", 1.0).met == ""


def test_sides_take_turns() -> None:
    """Each comes first in every other round, so that a rising load does not favour either."""
    clock = iter(range(1, 7))
    order: list[str] = []

    def side(name: str) -> Callable[[], float]:
        def measure() -> float:
            order.append(name)
            return float(next(clock))

        return measure

    ratio = alternate(side("a"), side("b"), 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert ratio == Ratio(4.0, 3.0, 5 / 6, (1 / 2, 4 / 3))


def test_the_naive_grid_is_timed_in_slices() -> None:
    """Which are all of it, and of one size but for one setting."""
    data = texts(4, 1)
    data.draws = [DrawKey(4, repeat) for repeat in (1, 2)]
    slices = grid.naive_slices(data, 2, 5)
    assert len({setting for each in slices for setting in each}) == 32
    assert sorted(map(len, slices)) == [6, 6, 6, 7, 7]


@pytest.mark.parametrize("command", BENCHMARKS, ids=" ".join)
def test_every_benchmark_has_its_options(command: list[str]) -> None:
    """As the one command gives them."""
    name, *options = command
    main = import_module(f"benchmarks.{name}").main
    parser = auto_parser(main, as_positional=False)
    assert parser.parse_args([*options, "--output=figures.json"]).output is not None
