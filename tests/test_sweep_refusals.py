"""What a sweep refuses: in one sentence, and without touching what is there."""

import csv
import shutil
from pathlib import Path

import pytest
from transformers import PreTrainedModel

from tests.commands import refused, run

SMALL = [
    "--grid.methods=[wanda]",
    "--grid.repeats=1",
    "--grid.proportions=[0.1, 0.2]",
    "--lm_eval.limit=3",
]


@pytest.fixture
def sweep(arguments: list[str]) -> list[str]:
    """Arguments of a small sweep on the tiny model."""
    return [each for each in arguments if not each.startswith("--selection")] + SMALL


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


def kept(folder: Path) -> dict[Path, bytes]:
    """Return all that a folder holds; Lightning begins TensorBoard's file before any check."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if not path.match("run/events.out.*")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--lm_eval.limit=2", "lm_eval.limit 3, but it is 2 now"),
        ("--lm_eval.tasks=[tiny_choose]", "lm_eval."),
        ("--lm_eval.batch_size=2", "lm_eval.batch_size 4, but it is 2 now"),
        ("--lm_eval.seed=1", "lm_eval.seed 1234, but it is 1 now"),
        ("--lm_eval.think_end_token=sees", 'lm_eval.think_end_token null, but it is "sees" now'),
        ("--data.seed=1", "data.seed 0, but it is 1 now"),
        ("--data.replacement=false", "data.replacement true, but it is false now"),
        ("--data.max_length=4", "data.max_length null, but it is 4 now"),
        ("--data.held_out=2", "data.held_out 3, but it is 2 now"),
        ("--selection.seed=1", "selection.seed 0, but it is 1 now"),
        ("--model.dtype=bfloat16", "model.dtype"),
        ("--trainer.precision=bf16-true", "trainer.precision"),
        ("--model.exclude=['*.q_proj.weight']", "coverage.parameters"),
    ],
)
def test_another_config_is_refused(
    change: str,
    message: str,
    swept: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If it changes results; all files stay as they are, the config included."""
    before = kept(tmp_path / "run")
    (tmp_path / "run" / "settings" / "before.json").unlink()
    arguments = [*swept, change]
    if change.startswith("--data.replacement"):
        arguments.append("--grid.num_samples=[6]")
    assert message in refused(monkeypatch, capsys, "sweep", arguments)
    before.pop(tmp_path / "run" / "settings" / "before.json")
    assert kept(tmp_path / "run") == before


def test_other_texts_are_refused(
    swept: list[str],
    text_files: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Even if the file has the name that it had."""
    path = text_files["math"]
    path.write_text(path.read_text().replace("Question: 1", "Question: 5"))
    assert "data.sets.math." in refused(monkeypatch, capsys, "sweep", swept)


def test_other_questions_are_refused(
    swept: list[str],
    task_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a task whose name stayed."""
    path = task_folder / "questions.jsonl"
    path.write_text(path.read_text().replace("red", "blue"))
    sentence = refused(monkeypatch, capsys, "sweep", swept)
    assert "lm_eval.questions.tiny_" in sentence


def test_other_weights_are_refused(
    swept: list[str],
    model_folder: Path,
    untied_llama: PreTrainedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a model in the same place."""
    untied_llama.save_pretrained(model_folder)
    assert "model." in refused(monkeypatch, capsys, "sweep", swept)
    # Without the plan, each result still knows what it was measured on.
    (tmp_path / "run" / "study.json").unlink()
    assert "was made with another model" in refused(monkeypatch, capsys, "sweep", swept)


def test_a_model_that_moved_is_the_same_model(
    swept: list[str], model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are texts and tasks that moved."""
    (tmp_path / "run" / "settings" / "before.json").unlink()
    moved = model_folder.rename(tmp_path / "moved")
    arguments = [each.replace(str(model_folder), str(moved)) for each in swept]
    run(monkeypatch, "sweep", arguments)
    assert (tmp_path / "run" / "settings" / "before.json").exists()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--data.repeat=2"], "data.repeat: got 2, but a sweep runs the repeats 1 to"),
        (["--shard=3/2"], "shard: got '3/2', but it must be i/n"),
        (["--grid.proportions=[2]"], "grid.proportions: got 2.0, but it must lie between 0 and 1"),
        (["--grid.methods=[lobotomy]"], "grid.methods: got 'lobotomy', but it must be one of"),
        (["--grid.methods=wanda"], "grid.methods: got 'wanda', but it must be a list"),
        (["--grid.repeats=five"], "grid.repeats: got 'five', but it must be a whole number"),
        (["--grid.repeets=5"], "did you mean grid.repeats?"),
        (["--grid.factors=[1e300]"], "grid.factors: got 1e+300"),
        (["--grid.calibration=[rice]"], "grid.calibration: got 'rice', but no calibration set"),
        (["--importance.file=x.safetensors"], "importance.file: got x.safetensors, but a sweep"),
        (["--lm_eval.tasks=null", "--data.held_out=0"], "nothing would be measured"),
        (["--grid.math=[nothing]"], "grid.math: got 'nothing', but no score has that name"),
    ],
)
def test_mistakes_are_one_sentence(
    extra: list[str],
    message: str,
    sweep: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is measured."""
    kept_apart = [name.partition("=")[0] for name in extra]
    arguments = [each for each in sweep if not each.startswith(tuple(kept_apart))]
    assert message in refused(monkeypatch, capsys, "sweep", [*arguments, *extra])
    assert not list(tmp_path.glob("run/settings/*"))


def test_single_runs_and_sweeps_do_not_share_a_folder(
    swept: list[str],
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In either order."""
    before = kept(tmp_path / "run")
    sentence = refused(monkeypatch, capsys, "operate", [*arguments, "--record.overwrite=true"])
    assert "holds the results of a sweep" in sentence
    assert kept(tmp_path / "run") == before
    other = f"--folder={tmp_path / 'other'}"
    run(monkeypatch, "operate", [*arguments, "--lm_eval.limit=2", other])
    sentence = refused(monkeypatch, capsys, "sweep", [*swept, other])
    assert "holds the results of a single run" in sentence


def test_damaged_importance_is_refused(
    swept: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And that of other texts."""
    (tmp_path / "run" / "settings" / "wanda_n20_r1_p0.2_x0.json").unlink()
    path = tmp_path / "run" / "importance" / "n20_r1.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    sentence = refused(monkeypatch, capsys, "sweep", swept)
    assert "cannot be used; delete it to have it measured again" in sentence
    path.write_bytes(whole)
    run(monkeypatch, "sweep", swept)


def test_report_needs_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says what it looked for."""
    sentence = refused(monkeypatch, capsys, "report", [f"--folder={tmp_path}"])
    assert "study.json" in sentence


def test_report_takes_other_scores(
    swept: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From the folder alone: the model is gone."""
    (tmp_path / "tiny-llama" / "config.json").unlink()
    folder = f"--folder={tmp_path / 'run'}"
    run(monkeypatch, "report", [folder, "--math=[perplexity math]", "--others=[tiny_choose]"])
    assert "math: perplexity math" in " ".join(capsys.readouterr().out.split())
    table = (tmp_path / "run" / "report" / "results.csv").read_text()
    roles = {row["score"]: row["role"] for row in csv.DictReader(table.splitlines())}
    assert roles["perplexity math"] == "math"
    assert roles["tiny_choose acc"] == "other"
    assert roles["tiny_generate exact_match"] == ""
    assert "nothing" in refused(monkeypatch, capsys, "report", [folder, "--math=[nothing]"])
