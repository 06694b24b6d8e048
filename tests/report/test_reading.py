"""Folders of sweeps are read in full, and damaged ones are told."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from mathneuro.errors import InputError
from mathneuro.grid import Setting
from mathneuro.report.reading import read_study
from tests.report.sweeps import Sweep, change

TINY = Sweep(methods=("mathneuro",), sets=("race",), repeats=1, proportions=(0.01,))
NAME = "mathneuro_race_n500_r1_p0.01_x0"


def test_everything_is_read(sweep: Sweep, folder: Path) -> None:
    """With the values that were written, in the order of the plan."""
    study = read_study(folder)
    assert study.planned == ["before", *sweep.names()]
    assert list(study.results) == study.planned
    assert (study.model, study.total, study.repeats) == ("org/tiny-math", 100_000, 3)
    for name, record in sweep.records.items():
        result = study.results[name]
        for label, score in result.scores.rows().items():
            kind, _, metric = label.partition(" ")
            part = record["scores"]["perplexity"] if kind == "perplexity" else record["scores"][
                "tasks"][kind]  # fmt: skip
            assert score.value == part[metric]["value"]
            assert score.standard_error == part[metric]["standard_error"]
            assert score.count == part[metric]["count"]
        for label, each in record["outcomes"].items():
            if "losses" in each:
                assert result.losses[label].losses == each["losses"]
                assert result.losses[label].tokens == each["tokens"]
            else:
                assert result.outcomes[label] == each["values"]
    assert study.results["random_mmlu_n500_r2_p0.1_x0"].setting == Setting(
        "random", ("mmlu",), 500, 2, 0.1, 0.0
    )
    assert study.results["wanda_n500_r1_p0.1_x0"].parameters == 10_000
    assert study.before is not None
    assert study.before.setting is None


def test_a_sweep_that_is_not_finished_is_read(tmp_path: Path) -> None:
    """As far as it went; what an earlier grid left belongs to it."""
    folder = Sweep().write(tmp_path / "sweep")
    planned = read_study(folder).planned
    (folder / "settings" / f"{planned[3]}.json").unlink()
    path = folder / "study.json"
    content = json.loads(path.read_text())
    content["settings"].remove(planned[5])
    content["grid"] |= {"methods": ["mathneuro"], "proportions": [0.001], "repeats": 1}
    path.write_text(json.dumps(content))
    study = read_study(folder)
    assert study.planned == [name for name in planned if name != planned[5]] + [planned[5]]
    assert list(study.results) == [name for name in study.planned if name != planned[3]]
    assert study.grid["methods"] == ["mathneuro", "random", "wanda"]
    assert study.grid["proportions"] == [0.001, 0.01, 0.1]
    assert study.grid["repeats"] == 3


def test_a_setting_of_another_sweep_is_refused(tmp_path: Path) -> None:
    """By the name of its file."""
    folder = TINY.write(tmp_path / "sweep")
    change(folder / "settings" / f"{NAME}.json", matters="0" * 64)
    with pytest.raises(InputError, match=rf"{NAME}\.json was made with another model"):
        read_study(folder)


def test_null_is_no_number(tmp_path: Path) -> None:
    """As a perplexity is that overflowed."""
    folder = TINY.write(tmp_path / "sweep")
    place = "scores__perplexity__math__"
    change(folder / "settings" / f"{NAME}.json",
           **{f"{place}value": None, f"{place}standard_error": None})  # fmt: skip
    score = read_study(folder).results[NAME].scores.perplexity["math"]
    assert math.isnan(score.value)
    assert score.standard_error is None


def test_the_model_is_unedited_where_nothing_changed(tmp_path: Path) -> None:
    """With factor 1, or with no parameter selected."""
    sweep = Sweep(methods=("mathneuro",), sets=("race",), repeats=1, factors=(0.0, 1.0),
                  proportions=(0.000001, 0.01))  # fmt: skip
    results = read_study(sweep.write(tmp_path / "sweep")).results
    assert {name for name, result in results.items() if not result.is_unedited} == {NAME}


def remove(path: Path) -> None:
    """Remove a file."""
    path.unlink()


def cut(path: Path) -> None:
    """End a file early, as a full disk does."""
    path.write_text(path.read_text()[:40])


def turned(path: Path) -> None:
    """Make a list of it."""
    path.write_text("[1]")


@pytest.mark.parametrize(
    ("damage", "file", "message"),
    [
        (remove, "study.json", r"study\.json does not exist; give a folder in which `sweep` has"),
        (cut, "study.json", r"study\.json is damaged or no JSON"),
        (cut, f"settings/{NAME}.json", rf"{NAME}\.json is damaged or no JSON"),
        (turned, f"settings/{NAME}.json", rf"{NAME}\.json holds \[1\] as its content, but an obj"),
    ],
)
def test_damaged_files_are_told(
    tmp_path: Path, damage: Callable[[Path], None], file: str, message: str
) -> None:
    """By their name."""
    folder = TINY.write(tmp_path / "sweep")
    damage(folder / file)
    with pytest.raises(InputError, match=rf"^folder: .*{message}"):
        read_study(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "other", "holds 'other' as format, but 'mathneuro-setting-2' was expected"),
        ("name", "other", f"holds 'other' as name, but '{NAME}' was expected"),
        ("setting__method", 3, "holds 3 as setting.method, but a text was expected"),
        ("setting__repeat", 1.5, "holds 1.5 as setting.repeat, but a whole number of 0 or more"),
        ("setting__calibration", "race", "holds 'race' as setting.calibration, but a list of"),
        ("selection__parameters", -1, "holds -1 as selection.parameters, but a whole number"),
        ("scores__tasks__race__acc__value", "high", "holds 'high' as scores.tasks.race.acc.value"),
        ("scores__tasks__race__acc", 0.5, "holds 0.5 as scores.tasks.race.acc, but an object"),
        ("outcomes__race acc__values", [0, True], "holds True as outcomes.race acc.values"),
        ("run", {}, "does not state run.device"),
    ],
)
def test_wrong_fields_are_told(tmp_path: Path, field: str, value: object, message: str) -> None:
    """By file and place, with what they held and what was expected."""
    folder = TINY.write(tmp_path / "sweep")
    change(folder / "settings" / f"{NAME}.json", **{field: value})
    with pytest.raises(InputError) as error:
        read_study(folder)
    assert str(error.value).startswith(f"folder: {folder / 'settings' / NAME}.json {message}")
    assert "delete the file and run `sweep` again" in str(error.value)


def test_a_folder_without_finished_settings_is_told(tmp_path: Path) -> None:
    """Rather than an empty report."""
    folder = TINY.write(tmp_path / "sweep")
    for path in (folder / "settings").iterdir():
        path.unlink()
    with pytest.raises(InputError, match=r"no setting of .* is finished"):
        read_study(folder)
