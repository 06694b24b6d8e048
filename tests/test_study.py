"""The folder of a sweep: shards, results that are known, what must not change."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mathneuro.errors import InputError
from mathneuro.files import write_json
from mathneuro.finished import FORMAT
from mathneuro.grid import Grid
from mathneuro.selection import Selection
from mathneuro.shard import Shard
from mathneuro.study import Study


def make_study(folder: Path, shard: str = "1/1", **changes: Any) -> Study:
    """Plan a small sweep."""
    values: dict[str, Any] = {"methods": ["mathneuro"], "repeats": 1, "factors": [0.0, 1.0]}
    values |= {"proportions": [0.1, 0.2], **changes}
    return Study(folder, Grid(**values), ["math", "language"], 6, Shard.parse(shard))


def make_record(study: Study, name: str, selection: Selection | None) -> dict[str, Any]:
    """Make the result of a setting in which nothing was measured."""
    setting = study.settings[name]
    return {
        "format": FORMAT,
        "name": name,
        "setting": None if setting is None else setting.record(),
        "selection": None
        if selection is None
        else {"sha256": selection.sha256(), "parameters": selection.count},
        "scores": {"perplexity": {}, "tasks": {}, "notes": [], "prompts": {}},
        "outcomes": {},
        "run": {"device": "cpu", "host": "here"},
    }


def select(*positions: int) -> Selection:
    """Select of one weight."""
    return Selection({"weight": torch.tensor(positions, dtype=torch.int64)}, {"weight": (2, 4)})


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_shards_together_hold_every_setting_once(count: int, tmp_path: Path) -> None:
    """As evenly as can be."""
    parts = [make_study(tmp_path, f"{index}/{count}").pending() for index in range(1, count + 1)]
    whole = make_study(tmp_path).pending()
    assert sorted(position for part in parts for position in part) == whole
    assert len(whole) == 5
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "-1/2", "1/0", "1/2/3", ""])
def test_shards_that_are_none_are_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(InputError, match=r"shard: got .* write --shard 2/8"):
        Shard.parse(text)


def test_what_is_there_is_not_pending(tmp_path: Path) -> None:
    """A file that is there is whole."""
    study = make_study(tmp_path)
    study.keep(make_record(study, study.names[2], select(1)), write=True)
    assert study.pending() == [0, 1, 3, 4]
    assert study.missing() == 4


def test_equal_edits_are_found_whoever_measured_them(tmp_path: Path) -> None:
    """Before and after a restart; another factor is another edit."""
    study = make_study(tmp_path, factors=[0.0, 2.0])
    assert study.find(select(1, 3), 0.0) is None
    record = make_record(study, study.names[1], select(1, 3))
    assert record["setting"]["factor"] == 0.0
    study.keep(record, write=True)
    for each in (study, make_study(tmp_path, factors=[0.0, 2.0])):
        assert each.find(select(1, 3), 0.0) == record
        assert each.find(select(1, 3), 2.0) is None
        assert each.find(select(1, 2), 0.0) is None


def test_an_edit_that_changes_nothing_is_the_model_as_it_is(tmp_path: Path) -> None:
    """No parameter selected, or a factor of 1."""
    study = make_study(tmp_path)
    assert study.find(select(), 0.0) is None
    before = make_record(study, "before", None)
    study.keep(before, write=True)
    assert study.find(select(), 0.0) == study.find(select(1), 1.0) == before
    assert study.find(select(1), 0.0) is None


def test_what_changes_results_is_refused_by_name(tmp_path: Path) -> None:
    """Where a model lies does not change results."""
    values = {"limit": 10, "nested": {"seed": 1, "names": ("a", "b")}}
    study = make_study(tmp_path)
    study.expect("lm_eval", values)
    study.expect("model", {"source": "here", "weight_hash": "abc"})
    study.begin({})
    again = make_study(tmp_path)
    again.expect("lm_eval", values)
    again.expect("model", {"source": "there", "weight_hash": "abc"})
    with pytest.raises(InputError, match=r'sweep with model\.weight_hash "abc", but it is "d" now'):
        again.expect("model", {"source": "here", "weight_hash": "d"})
    with pytest.raises(InputError, match=r"sweep with lm_eval\.nested\.seed 1, but it is 2 now"):
        again.expect("lm_eval", {**values, "nested": {"seed": 2, "names": ("a", "b")}})
    with pytest.raises(InputError, match=r"sweep with lm_eval\.limit 10, but it is null now"):
        again.expect("lm_eval", {"nested": values["nested"]})


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "other"}', "{"])
def test_damaged_files_are_refused_by_name(text: str, tmp_path: Path) -> None:
    """They are complete or absent, unless somebody touched them."""
    study = make_study(tmp_path)
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(
        InputError, match=r"study\.json (is damaged or no JSON|holds .* was expected)"
    ):
        study.expect("data", {})


def test_a_folder_with_a_single_run_is_refused(tmp_path: Path) -> None:
    """Its files would get mixed up with the sweep's."""
    write_json(tmp_path / "results.json", {})
    with pytest.raises(InputError, match="holds the results of a single run"):
        make_study(tmp_path).expect("data", {})


def test_results_that_were_made_otherwise_are_refused(tmp_path: Path) -> None:
    """Even if nothing else tells how the folder was made."""
    study = make_study(tmp_path)
    study.expect("model", {"weight_hash": "abc"})
    study.keep(make_record(study, "before", None), write=True)
    study.begin({})
    (tmp_path / "study.json").unlink()
    again = make_study(tmp_path)
    again.expect("model", {"weight_hash": "def"})
    with pytest.raises(InputError, match=r"before\.json was made with another model"):
        again.begin({})
    assert not (tmp_path / "study.json").exists()


@pytest.mark.parametrize("text", ["", "{", "{}", '{"format": "mathneuro-setting-2"}'])
def test_damaged_results_are_refused_before_anything_is_measured(text: str, tmp_path: Path) -> None:
    """By the name of the file."""
    study = make_study(tmp_path)
    study.path("before").parent.mkdir()
    study.path("before").write_text(text)
    with pytest.raises(InputError, match=r"before\.json .* delete the file"):
        study.begin({})


def test_scores_that_are_not_measured_are_refused(tmp_path: Path) -> None:
    """By task at first, by metric as soon as metrics are known."""
    study = make_study(tmp_path, math=["sums acc"], others=["race"])
    study.check_scores(["sums", "race"], tasks_only=True)
    study.check_scores(["sums acc", "race acc"], tasks_only=False)
    with pytest.raises(InputError, match=r"grid\.math: got 'sums acc', but no score has that name"):
        study.check_scores(["sums f1", "race acc"], tasks_only=False)
    with pytest.raises(InputError, match=r"grid\.others: got 'race'"):
        study.check_scores(["sums"], tasks_only=True)


def test_a_folder_has_to_be_shared(tmp_path: Path) -> None:
    """A process sees what the first of them wrote down."""
    study = make_study(tmp_path)
    with pytest.raises(InputError, match=r"folder: .* is not the same on all machines"):
        study.check_begun()
    study.begin({})
    study.check_begun()
