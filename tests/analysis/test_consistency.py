"""The command consistency, on a real sweep, against selections that are made one by one."""

import csv
import re
import shutil
from itertools import combinations
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from mathneuro.analysis.pairs import find_pairs, tally
from mathneuro.data.draws import DrawKey
from mathneuro.grid import Setting
from mathneuro.importance import Importance
from mathneuro.layers import find_linear_weights
from mathneuro.methods import select
from mathneuro.neurons import find_neurons
from mathneuro.suitability import check_model
from tests.commands import refused, run
from tests.families import FAMILIES

GRID = [
    "--grid.methods=[mathneuro, wanda, random, lape]",
    "--grid.repeats=2",
    "--grid.num_samples=[6, 20]",
    "--grid.proportions=[0.1, 0.3]",
    "--grid.factors=[0.0, 1.5]",
    "--lm_eval.tasks=null",
    "--data.held_out=1",
]


@pytest.fixture
def sweep(arguments: list[str]) -> list[str]:
    """Arguments of a small sweep on the tiny model; perplexity of one text a set."""
    dropped = ("--selection", "--lm_eval.tasks", "--data.held_out", "--data.num_samples")
    return [each for each in arguments if not each.startswith(dropped)] + GRID


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the small sweep is kept for all tests; it may be moved."""
    return tmp_path_factory.mktemp("store") / "run"


@pytest.fixture
def swept(
    sweep: list[str], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Arguments of the small sweep, which is finished."""
    if store.exists():
        shutil.copytree(store, tmp_path / "run")
    else:
        run(monkeypatch, "sweep", sweep)
        shutil.copytree(tmp_path / "run", store)
    return sweep


def rows(path: Path) -> list[dict[str, str]]:
    """Read a table."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept(folder: Path) -> dict[Path, bytes]:
    """Return all files of a sweep."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def selected(
    model: PreTrainedModel, folder: Path, method: str, texts: str, repeat: str, proportion: str
) -> set[tuple[str, int]]:
    """Select by itself what a row names; of lape, neurons."""
    weights = check_model(model, find_linear_weights(model)).weights
    importance = Importance.load(folder / "importance" / f"n{texts}_r{repeat}.safetensors")
    selection = select(weights, importance, method, float(proportion), repeat=int(repeat))
    if method == "lape":
        return {
            (name, column)
            for name in weights
            for column in selection.mask(name).all(dim=0).nonzero().flatten().tolist()
        }
    return {(name, each) for name, positions in selection.positions.items()
            for each in positions.tolist()}  # fmt: skip


def test_agreement_equals_sets(
    swept: list[str],
    tied_llama: PreTrainedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of every pair of draws; the sweep's own files stay, and no text goes through the model."""
    folder = tmp_path / "run"
    before = kept(folder)

    def fail(*_: object) -> None:
        raise AssertionError("Something went through the model.")

    with monkeypatch.context() as patched:
        patched.setattr("torch.nn.Linear.forward", fail)
        run(patched, "consistency", swept)
    told = capsys.readouterr().out
    assert {path: each for path, each in kept(folder).items() if path in before} == before
    found = rows(folder / "consistency" / "agreement.csv")
    # Two numbers of texts, two repeats: two pairs of either kind; random has no pairs of numbers.
    assert len(found) == 2 * (3 * 4 + 2)
    sets: dict[tuple[str, ...], set[tuple[str, int]]] = {}
    for row in found:
        pair = []
        for side in ("first", "second"):
            key = (row["method"], row[f"{side}_num_samples"], row[f"{side}_repeat"],
                   row["proportion"])  # fmt: skip
            if key not in sets:
                sets[key] = selected(tied_llama, folder, *key)
            pair.append(sets[key])
            assert int(row[f"{side}_selected"]) == len(sets[key])
        common, either = len(pair[0] & pair[1]), len(pair[0] | pair[1])
        assert int(row["common"]) == common
        if either:
            assert float(row["jaccard"]) == pytest.approx(common / either)
            assert float(row["share"]) == pytest.approx(2 * common / (len(pair[0]) + len(pair[1])))
        differing = row["first_num_samples"] != row["second_num_samples"]
        assert row["differ_in"] == ("samples" if differing else "repeats")
    assert re.search(r"wanda +0\.3 ", told)
    assert "of the top for math the calibration removed" in told


def test_location_is_the_mean_over_repeats(
    swept: list[str], tied_llama: PreTrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside what the calibration removed; all figures are there."""
    run(monkeypatch, "consistency", swept)
    folder = tmp_path / "run"
    found = rows(folder / "consistency" / "location.csv")
    assert {row["method"] for row in found} == {"mathneuro", "lape"}
    weights = find_linear_weights(tied_llama).weights
    of_neurons = {
        row["level"] + row["block"] + row["projection"]: int(row["units"])
        for row in found
        if (row["method"], row["num_samples"], row["proportion"]) == ("lape", "20", "0.3")
    }
    inner, blocks = tied_llama.config.intermediate_size, tied_llama.config.num_hidden_layers
    assert of_neurons["whole"] == of_neurons["projectionmlp.down_proj"] == inner * blocks
    assert of_neurons["block0"] == of_neurons["cell0mlp.down_proj"] == inner
    assert not [place for place in of_neurons if "self_attn" in place or "gate" in place]
    (row,) = [
        row for row in found
        if (row["method"], row["num_samples"], row["proportion"], row["level"], row["block"],
            row["projection"]) == ("mathneuro", "20", "0.3", "cell", "1", "mlp.down_proj")
    ]  # fmt: skip
    name = "model.layers.1.mlp.down_proj.weight"
    shares, of_all, removed = [], [], []
    for repeat in "12":
        everything = selected(tied_llama, folder, "mathneuro", "20", repeat, "0.3")
        mine = sum(weight == name for weight, _ in everything)
        shares.append(mine / weights[name].numel)
        of_all.append(mine / len(everything))
        removed.append(1 - mine / int(weights[name].numel * 0.3))
    for column, values in (("share_of_units", shares), ("share_of_selected", of_all),
                           ("removed", removed)):  # fmt: skip
        mean = "removed_by_calibration" if column == "removed" else column
        assert float(row[mean]) == pytest.approx(sum(values) / 2)
        assert float(row[f"{column}_lowest"]) == pytest.approx(min(values))
        assert float(row[f"{column}_highest"]) == pytest.approx(max(values))
    figures = {path.stem for path in (folder / "consistency" / "figures").glob("*.png")}
    assert figures == {"repeats_by_proportion", "repeats_by_samples", "largest_by_samples",
                       "location_1", "location_2", "removed"}  # fmt: skip
    summary = (folder / "consistency" / "summary.md").read_text(encoding="utf-8")
    assert "`wanda` selects the same share of every weight" in summary
    assert "| lape, language | 6 and 20 |" in summary
    assert list((folder / "consistency" / "tensorboard").glob("events.out.tfevents.*"))


def test_draws_that_are_not_there_are_named(
    swept: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The others are compared; without any the command is refused."""
    importance = tmp_path / "run" / "importance"
    (importance / "n6_r2.safetensors").unlink()
    run(monkeypatch, "consistency", [*swept, "--grid.num_samples=[6, 20, 1]"])
    told = " ".join(capsys.readouterr().out.split())
    assert "3 draws of the grid left out, whose importance is not there yet: n6_r2, n1_r1" in told
    found = rows(tmp_path / "run" / "consistency" / "agreement.csv")
    assert {row["first_num_samples"] for row in found if row["differ_in"] == "repeats"} == {"20"}
    shutil.rmtree(importance)
    sentence = refused(monkeypatch, capsys, "consistency", swept)
    assert "holds no importance of the draws of this grid, such as n6_r1" in sentence


def test_importance_without_activations_is_told(
    sweep: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the grid got lape later; one draw alone has a location and nothing to compare."""
    small = ["--grid.repeats=1", "--grid.num_samples=[6]", "--grid.factors=[0.0]"]
    run(monkeypatch, "sweep", [*sweep, *small, "--grid.methods=[wanda]"])
    run(monkeypatch, "consistency", [*sweep, *small, "--grid.methods=[mathneuro, lape]"])
    told = " ".join(capsys.readouterr().out.split())
    assert "lape left out for 1 draw whose importance holds no activations: n6_r1" in told
    assert "in common" not in told
    sentence = refused(
        monkeypatch, capsys, "consistency", [*sweep, *small, "--grid.methods=[lape]"]
    )
    assert "holds no activations, which the methods of this grid need (lape)" in sentence
    found = tmp_path / "run" / "consistency"
    assert rows(found / "agreement.csv") == []
    assert {row["method"] for row in rows(found / "location.csv")} == {"mathneuro"}
    assert {path.stem for path in (found / "figures").iterdir()} == {"location_1", "removed"}
    nothing = ["--grid.methods=[mathneuro]", "--grid.proportions=[0.0]"]
    run(monkeypatch, "consistency", [*sweep, *small, *nothing])
    assert not list((found / "figures").iterdir())


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--folder={tmp}/nothing"], "nothing/study.json does not exist"),
        (["--data.repeat=2"], "data.repeat: got 2"),
        (
            ["--model.exclude=['*.q_proj.weight']"],
            "model.exclude (or include): model.layers.0.",
        ),
        (["--model.dtype=bfloat16"], "holds a sweep with model.dtype"),
        (["--trainer.precision=bf16-true"], "holds a sweep with trainer.precision"),
        (["--data.seed=5"], "holds a sweep with data.seed 0, but it is 5 now"),
        (["--data.max_length=7"], "holds a sweep with data.max_length"),
        (["--grid.proportions=[2]"], "grid.proportions: got 2.0"),
        (["--shard=1/2"], "shard"),
    ],
)
def test_mistakes_are_one_sentence(
    extra: list[str],
    message: str,
    swept: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And nothing is written."""
    before = kept(tmp_path)
    changed = [each.partition("=")[0] for each in extra]
    arguments = [each for each in swept if not each.startswith(tuple(changed))]
    given = [each.format(tmp=tmp_path) for each in extra]
    assert message in refused(monkeypatch, capsys, "consistency", [*arguments, *given])
    assert kept(tmp_path) == before
    assert not (tmp_path / "nothing").exists()


def test_another_model_and_damaged_importance_are_refused(
    swept: list[str],
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a sweep does."""
    path = tmp_path / "run" / "importance" / "n20_r1.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert "cannot be used" in refused(monkeypatch, capsys, "consistency", swept)
    path.write_bytes(whole)
    weights = model_folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-2] ^= 1
    weights.write_bytes(content)
    sentence = refused(monkeypatch, capsys, "consistency", swept)
    assert "holds a sweep with model.weight_hash" in sentence
    assert not (tmp_path / "run" / "consistency").exists()


@pytest.mark.parametrize("name", ["GPT-2", "Mixtral"])
def test_every_kind_of_weight_is_counted(name: str) -> None:
    """Transposed ones and experts, by methods that look at one weight or at all."""
    model = FAMILIES[name].build()
    coverage = check_model(model, find_linear_weights(model))
    neurons = find_neurons(model, coverage).neurons
    importances = {}
    for repeat in (1, 2):
        sets, activations = {}, {}
        for each in ("math", "language"):
            sets[each] = {key: torch.rand(weight.in_features, dtype=torch.float64)
                          for key, weight in coverage.weights.items()}  # fmt: skip
            activations[each] = {
                key: torch.randint(0, 90, (coverage.weights[key].in_features,)) for key in neurons
            }
        importances[DrawKey(5, repeat)] = Importance(
            sets, {"math": 5, "language": 5}, activations=activations,
            tokens={"math": 90, "language": 90},
        )  # fmt: skip
    settings = [
        Setting(method, ("language",), 5, repeat, proportion, 0.0)
        for method in ("mathneuro", "lape", "random")
        for proportion in (0.0, 0.2, 1.0)
        for repeat in (1, 2)
    ]
    found = tally(coverage.weights, importances, settings, seed=3)
    masks = []
    for row, setting in enumerate(settings):
        selection = select(coverage.weights, importances[setting.draw], setting.method,
                           setting.proportion, seed=3, repeat=setting.repeat)  # fmt: skip
        mine = []
        for key, weight in coverage.weights.items():
            mask = selection.mask(key).t() if weight.transposed else selection.mask(key)
            mine.append(mask.all(dim=0) if setting.method == "lape" else mask.flatten())
        assert found.selected[row].tolist() == [int(each.sum()) for each in mine]
        assert list(found.units[setting.method]) == [
            each.numel() if setting.method != "lape" or key in neurons else 0
            for key, each in zip(coverage.weights, mine, strict=True)
        ]
        masks.append(torch.cat(mine))
    pairs = find_pairs(settings)
    assert len(pairs) == 9
    for first, second in combinations(range(len(settings)), 2):
        if (first, second) in pairs:
            common = int((masks[first] & masks[second]).sum())
            assert found.common[first, second] == common
            assert found.overlap((first, second)).common == common
