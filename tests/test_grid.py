"""The grid holds every combination once, and refuses what makes no sense."""

import itertools
from typing import Any

import pytest

from mathneuro.data.draws import DrawKey
from mathneuro.errors import InputError
from mathneuro.grid import PROPORTIONS, Grid, Setting

SETS = ["math", "race", "mmlu"]


def test_the_defaults_are_the_paper_s() -> None:
    """Eight proportions, five repeats, one run a calibration set, pruning."""
    assert PROPORTIONS == (0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15)
    settings = Grid().settings(SETS, 500)
    assert len(settings) == len({each.name for each in settings}) == 2 * 80 + 40
    assert {each.factor for each in settings} == {0.0}
    assert {each.num_samples for each in settings} == {500}
    for method, calibration in (("mathneuro", ("race",)), ("random", ("mmlu",)), ("wanda", ())):
        mine = {
            (each.repeat, each.proportion)
            for each in settings
            if (each.method, each.calibration) == (method, calibration)
        }
        assert mine == set(itertools.product(range(1, 6), PROPORTIONS))


def test_every_combination_is_there_once() -> None:
    """Sets that are removed together included."""
    grid = Grid(
        methods=["mathneuro"],
        calibration=["mmlu", ["race", "mmlu"]],
        repeats=2,
        proportions=[0.1, 0.2],
        factors=[0.0, 1.1],
        num_samples=[1, 10],
    )
    settings = grid.settings(SETS, 500)
    assert set(settings) == {
        Setting("mathneuro", *point)
        for point in itertools.product(
            [("mmlu",), ("race", "mmlu")], [1, 10], [1, 2], [0.1, 0.2], [0.0, 1.1]
        )
    }
    assert len(settings) == 32
    assert grid.draws(500) == [DrawKey(n, repeat) for n in (1, 10) for repeat in (1, 2)]


def test_settings_that_share_a_selection_are_neighbours() -> None:
    """So that it is made once."""
    settings = Grid(factors=[0.0, 0.5, 1.1]).settings(SETS, 500)
    for first, second, third in zip(*[iter(settings)] * 3, strict=True):
        assert [first.factor, second.factor, third.factor] == [0.0, 0.5, 1.1]
        same = {(each.method, each.draw, each.proportion) for each in (first, second, third)}
        assert len(same) == 1


def test_without_calibration_sets_some_methods_still_run() -> None:
    """Those that are defined without one."""
    assert len(Grid(methods=["wanda"], repeats=1).settings(["math"], None)) == 8
    with pytest.raises(InputError, match=r"grid\.calibration: the method mathneuro needs"):
        Grid(methods=["mathneuro"]).settings(["math"], None)


def test_all_texts_need_no_repeats() -> None:
    """But for methods that draw parameters."""
    settings = Grid(repeats=3, proportions=[0.1]).settings(["math", "race"], None)
    assert sorted((each.method, each.repeat) for each in settings) == [
        ("mathneuro", 1),
        ("random", 1),
        ("random", 2),
        ("random", 3),
        ("wanda", 1),
    ]


def test_long_names_are_cut_and_still_differ() -> None:
    """Files cannot have names of any length."""
    names = [Setting("mathneuro", ("数" * 50 + end,), 1, 1, 0.1, 0.0).name for end in "ab"]
    assert len(set(names)) == 2
    assert max(map(len, names)) < 150


def test_numbers_that_differ_have_names_that_differ() -> None:
    """However little."""
    close = [Setting("wanda", (), 1, 1, value, 0.0).name for value in (0.01, 0.0100000000000001)]
    assert close == ["wanda_n1_r1_p0.01_x0", "wanda_n1_r1_p0.0100000000000001_x0"]


def test_names_are_fit_for_files_and_tell_settings_apart() -> None:
    """Whatever a calibration set is called."""
    one = Setting("mathneuro", ("my set", "b:c"), None, 1, 1e-05, 1.0)
    assert one.name == "mathneuro_my%20set+b%3Ac_nall_r1_p1e-05_x1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": []}, r"grid\.methods: got an empty list"),
        ({"methods": ["wander"]}, r"grid\.methods: got 'wander', but it must be one of mathneuro"),
        ({"methods": ["wanda", "wanda"]}, r"grid\.methods: got 'wanda' twice"),
        ({"proportions": []}, r"grid\.proportions: got an empty list"),
        ({"proportions": [0.1, 1.5]}, r"grid\.proportions: got 1\.5, but it must lie between"),
        ({"proportions": [float("nan")]}, r"grid\.proportions: got nan"),
        ({"proportions": [0.1, 0.1]}, r"grid\.proportions: got 0\.1 twice"),
        ({"factors": [float("inf")]}, r"grid\.factors: got inf, but each must be a finite"),
        ({"repeats": 0}, r"grid\.repeats: got 0, but it must be at least 1"),
        ({"num_samples": [10, 0]}, r"grid\.num_samples: got 0, but it must be at least 1"),
        ({"calibration": []}, r"grid\.calibration: got an empty list"),
        ({"calibration": ["rice"]}, r"grid\.calibration: got 'rice', but no calibration set"),
        ({"calibration": ["math"]}, r"grid\.calibration: got 'math', but no calibration set"),
        ({"calibration": [["race", "race"]]}, r"grid\.calibration: got 'race' twice in one"),
        ({"calibration": [["race", "mmlu"], ["mmlu", "race"]]}, r"got \['race', 'mmlu'\] twice"),
        ({"math": []}, r"grid\.math: got an empty list"),
        ({"math": ["a"], "others": ["a"]}, r"grid\.others: got 'a', which stands for math too"),
        ({"others": ["a", "perplexity race"]}, r"grid\.others: got perplexities and other"),
        ({"calibration": [["race", "rice"]]}, r"grid\.calibration: got 'rice'"),
        ({"calibration": [[]]}, r"grid\.calibration: got an empty list"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    """In one sentence."""
    with pytest.raises(InputError, match=message):
        Grid(**changes).settings(SETS, 500)
