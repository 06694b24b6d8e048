"""The command inspect: tables, figures and pages of edits, from their files alone."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mathneuro.analysis.edits import find_names
from mathneuro.edit import Edit
from mathneuro.selection import Selection
from tests.analysis.test_overlap import SELECTIONS, SHAPES, as_sets
from tests.commands import refused, run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of three runs with edits, as `operate` leaves them, and one that selects nothing."""
    folder = tmp_path_factory.mktemp("runs")
    methods = ("mathneuro", "wanda", "random", "mathneuro")
    for name, selection, method in zip("abcd", SELECTIONS, methods, strict=True):
        origin = {"method": method, "proportion": 0.95, "calibration": ["language"]}
        selection = Selection(selection.positions, selection.shapes, origin)
        model = {"source": "org/tiny", "weight_hash": "x" if name == "a" else "y"}
        Edit(selection, 0.0, model).save(folder / name / "edit.safetensors")
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    """Read a table."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def paths(runs: Path, names: str) -> str:
    """Return the option for some edits."""
    return f"--edits=[{', '.join(str(runs / name / 'edit.safetensors') for name in names)}]"


@pytest.fixture
def inspected(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which all edits were inspected."""
    run(monkeypatch, "inspect", [paths(runs, "abcd"), f"--folder={tmp_path / 'all'}"])
    return tmp_path / "all"


def test_tables_hold_what_sets_say(inspected: Path) -> None:
    """Of overlap, location and the most selected rows."""
    by_name = dict(zip("abcd", SELECTIONS, strict=True))
    sets = {name: as_sets(each, list(SHAPES)) for name, each in by_name.items()}
    found = rows(inspected / "overlaps.csv")
    whole = {(row["first"], row["second"]): row for row in found if row["level"] == "whole"}
    assert len(whole) == 6
    for (first, second), row in whole.items():
        common, either = sets[first] & sets[second], sets[first] | sets[second]
        assert int(row["common"]) == len(common)
        assert float(row["jaccard"]) == pytest.approx(len(common) / len(either))
        low, high = float(row["jaccard_by_chance_low"]), float(row["jaccard_by_chance_high"])
        assert low <= float(row["jaccard_by_chance"]) <= high
    assert {row["block"] for row in found if row["level"] == "block"} == {"0", "1", "outside"}
    located = {(row["edit"], row["level"], row["block"], row["projection"]): row
               for row in rows(inspected / "location.csv")}  # fmt: skip
    row = located["a", "cell", "1", "mlp.experts"]
    names = [name for name in SHAPES if name.startswith("h.1.mlp")]
    assert int(row["selected"]) == len(as_sets(by_name["a"], names))
    assert float(row["share_of_selected"]) == pytest.approx(int(row["selected"]) / len(sets["a"]))
    assert located["b", "whole", "", ""]["removed_by_calibration"] == ""
    top = sum(int(0.95 * each.numel()) for each in map(torch.empty, SHAPES.values()))
    removed = float(located["a", "whole", "", ""]["removed_by_calibration"])
    assert removed == pytest.approx(1 - len(sets["a"]) / top)
    # What selects nothing lies nowhere.
    assert located["d", "whole", "", ""]["share_of_selected"] == ""
    lines = rows(inspected / "rows_and_columns.csv")
    assert {row["kind"] for row in lines if row["edit"] == "a"} == {"row", "column"}
    assert not [row for row in lines if row["edit"] == "d"]


def test_figures_and_pages_are_whole(inspected: Path) -> None:
    """One location an edit, the matrix, the profile; and all of it for TensorBoard."""
    names = {"jaccard", "overlap_1", *(f"location_{number}" for number in range(1, 5))}
    figures = list((inspected / "figures").iterdir())
    assert {path.name for path in figures} == {
        f"{name}.{kind}" for name in names for kind in ("png", "svg")
    }
    for path in figures:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 300
    svg = (inspected / "figures" / "location_1.svg").read_text(encoding="utf-8")
    assert "mlp.experts" in svg
    assert "outside" in svg
    summary = (inspected / "summary.md").read_text(encoding="utf-8")
    assert "checkpoints of the same shapes" in summary
    assert "![What the edits have in common](figures/jaccard.png)" in summary
    board = EventAccumulator(str(inspected / "tensorboard"), {"images": 0, "tensors": 0})
    board.Reload()
    assert set(board.Tags()["images"]) == {f"figures/{name}" for name in names}
    assert board.Tags()["tensors"] == ["summary/text_summary"]


def test_one_edit_has_a_location_and_nothing_to_compare(
    inspected: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables and figures of an earlier inspection in the folder are gone."""
    run(monkeypatch, "inspect", [paths(runs, "a"), "--names=[mine]", f"--folder={inspected}"])
    told = capsys.readouterr().out
    assert "mine: mathneuro, language, proportion 0.95, factor 0, " in told
    assert "Jaccard" not in told
    assert not (inspected / "overlaps.csv").exists()
    assert [path.name for path in sorted((inspected / "figures").iterdir())] == [
        "location_1.png", "location_1.svg",
    ]  # fmt: skip
    assert "have in common" not in (inspected / "summary.md").read_text(encoding="utf-8")


def test_two_edits_are_compared_place_by_place(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal as a whole, in the summary by block and projection."""
    run(monkeypatch, "inspect", [paths(runs, "ab"), f"--folder={tmp_path / 'two'}"])
    told = capsys.readouterr().out
    sets = [as_sets(each, list(SHAPES)) for each in SELECTIONS[:2]]
    share = f"{100 * len(sets[0] & sets[1]) / len(sets[0]):.3g} %"
    assert f"a / b   {len(sets[0] & sets[1])}" in told
    assert share in told
    assert "a: the calibration removed" in told
    summary = (tmp_path / "two" / "summary.md").read_text(encoding="utf-8")
    assert "| block | in both | of the first | of the second | Jaccard | by chance |" in summary
    assert "| outside |" in summary


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--edits=[]"], "edits: got none"),
        (["--edits=[{a}, {a}]"], "twice; give each file once"),
        (["--edits=[{a}, nothing.safetensors]"], "nothing.safetensors does not exist"),
        (["--edits=[{a}, {b}]", "--names=[x]"], "names: got ['x'], but each of the 2 edits"),
        (["--edits=[{a}, {b}]", "--names=[x, x]"], "names: got ['x', 'x']"),
        (["--edits=[{a}, {other}]"], "other cannot be compared: h.0.attn.weight has shape [8, 9]"),
        (["--edits=[{a}, {damaged}]"], "damaged"),
        (["--edits=[{a}]", "--folder={run}"], "holds the results of a run (results.json)"),
    ],
)
def test_mistakes_are_one_sentence(
    extra: list[str],
    message: str,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And nothing is written."""
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other" / "edit.safetensors"
    empty = torch.tensor([], dtype=torch.int64)
    Edit(Selection({"h.0.attn.weight": empty}, {"h.0.attn.weight": (9, 8)}), 0.0).save(other)
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(other.read_bytes()[:-3])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").write_text("{}")
    known = {"a": runs / "a" / "edit.safetensors", "b": runs / "b" / "edit.safetensors",
             "other": other, "damaged": damaged, "run": tmp_path / "run"}  # fmt: skip
    arguments = [each.format(**known) for each in extra]
    before = sorted(tmp_path.rglob("*"))
    assert message in refused(monkeypatch, capsys, "inspect", arguments)
    assert sorted(tmp_path.rglob("*")) == before


def test_names_tell_files_apart() -> None:
    """By as little as that takes; never alike."""
    assert find_names([Path("/x/a.safetensors"), Path("/x/edit.safetensors")]) == ["a", "x"]
    assert find_names([Path("/x/1/run/edit.safetensors"), Path("/x/2/run/edit.safetensors")]) == [
        "1/run", "2/run",
    ]  # fmt: skip
    same = [
        Path("/x/edit/edit.safetensors"),
        Path("/x/edit.safetensors"),
        Path("/edit.safetensors"),
    ]
    assert find_names(same) == ["x/edit", "x", "edit"]
    assert find_names([Path("/edit.safetensors")]) == ["edit"]


def test_many_edits_are_inspected(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs beyond those of one figure get another one."""
    for number in range(5):
        target = tmp_path / str(number) / "edit.safetensors"
        target.parent.mkdir()
        shutil.copy(runs / "abcda"[number] / "edit.safetensors", target)
    run(monkeypatch, "inspect", [paths(tmp_path, "01234"), f"--folder={tmp_path / 'many'}"])
    assert (tmp_path / "many" / "figures" / "overlap_2.png").exists()


def test_no_model_library_is_needed() -> None:
    """Nor matplotlib before there is something to draw."""
    code = (
        "import sys, mathneuro.analysis.inspection_pages; "
        "heavy = {'transformers', 'lm_eval', 'lightning', 'matplotlib', 'scipy', 'tensorboard'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
