"""Mistakes of users: one sentence, status 2, before any forward pass, no traceback."""

import json
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from transformers import LlamaForCausalLM, LlamaModel, OPTConfig, OPTForCausalLM, T5Config

from mathneuro.importance import Importance
from tests.commands import refused, run

MISTAKES = [
    ("operate", ["--model.sorce=x"], "--model.sorce: there is no such option; did you mean"),
    (
        "operate",
        ["--data.num_samples=many"],
        "data.num_samples: got 'many', but it must be a whole",
    ),
    ("operate", ["--data.num_samples=0"], "data.num_samples: got 0"),
    ("operate", ["--data.replacement=false", "--data.num_samples=99"], "has 9 texts to draw from"),
    ("operate", ["--data.held_out=50"], "data.held_out: got 50"),
    ("operate", ["--data.math.path=nowhere.csv"], "data.math.path: the file nowhere.csv does not"),
    ("operate", ["--data.math.columns=[text]"], "has no column 'text'"),
    ("operate", ["--data.math.chat_template=true"], "the tokenizer has no chat template"),
    ("operate", ["--model.source=./nowhere"], "model.source: the folder nowhere does not exist"),
    ("operate", ["--model.source=nowhere.gguf"], "model.source: the file nowhere.gguf does not"),
    (
        "operate",
        ["--model.dtype=float12"],
        "model.dtype: got 'float12', but it must be one of auto",
    ),
    (
        "operate",
        ["--selection.method=magic"],
        "selection.method: got 'magic', but it must be one of",
    ),
    ("operate", ["--selection.proportion=2"], "selection.proportion: got 2.0"),
    ("operate", ["--selection.calibration=[race]"], "selection.calibration: got 'race'"),
    ("operate", ["--intervention.factor=1e39"], "intervention.factor: got 1e+39"),
    ("operate", ["--intervention.factor=.nan"], "intervention.factor: got nan"),
    ("operate", ["--lm_eval.limit=0"], "lm_eval.limit: got 0"),
    ("operate", ["--lm_eval.chat_template=true"], "the tokenizer has no chat template"),
    ("operate", ["--importance.file=no.safetensors"], "no.safetensors does not exist"),
    ("operate", ["--trainer.fast_dev_run=true"], "every text must be used"),
    ("operate", ["--trainer.strategy=magic"], "trainer.strategy: got 'magic'"),
    ("operate", ["--trainer.accelerator=magic"], "trainer: Lightning refuses these settings"),
    ("operate", ["--config=nowhere.yaml"], "nowhere.yaml does not exist"),
    ("operate", ["--folder="], "folder: '' cannot be made or written to (it has no name)"),
    ("operate", ["--folder=pyproject.toml"], "folder: 'pyproject.toml' cannot be made"),
    ("predict", ["--folder=/proc"], "folder: '/proc' cannot be made or written to"),
    ("predict", ["--importance.file=no.safetensors"], "importance.file"),
    ("validate", ["--edit=no.safetensors"], "no.safetensors does not exist"),
    ("validate", ["--factor=2"], "factor: it is given without an edit"),
    ("operate", ["--intervention.factors={'*.q_prj.*': 1}"], "intervention.factors: got '*.q_prj"),
    ("sweep", ["--intervention.factors={'*': 1}"], "intervention.factors: got {'*': 1.0}"),
    ("export", ["--edit=no.safetensors", "--output=o"], "no.safetensors does not exist"),
    ("export", ["--output=o"], "edit: not given, but needed; give it in the config, or as --edit"),
    ("operat", [], "command: got 'operat', but it must be one of"),
]


@pytest.fixture
def _no_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a text goes through the model."""

    def forward(*_args: object, **_keywords: object) -> None:
        raise AssertionError("a text went through the model")

    for model in (LlamaForCausalLM, LlamaModel):
        monkeypatch.setattr(model, "forward", forward)


@pytest.mark.usefixtures("_no_forward")
@pytest.mark.parametrize(("command", "changes", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(
    command: str,
    changes: list[str],
    message: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which field, what it held, what was expected."""
    assert message in refused(monkeypatch, capsys, command, [*arguments, *changes])


@pytest.mark.usefixtures("_no_forward")
def test_an_unknown_key_in_a_config_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a file as on the command line."""
    config = tmp_path / "config.yaml"
    config.write_text("model:\n  source: x\n  dtyp: float32\n")
    error = refused(monkeypatch, capsys, "operate", [f"--config={config}"])
    assert "model.dtyp: there is no such option; did you mean model.dtype?" in error


@pytest.mark.usefixtures("_no_forward")
def test_a_config_that_is_no_yaml_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the place of the mistake."""
    config = tmp_path / "config.yaml"
    config.write_text("model:\n  source: x\n dtype: y\n")
    error = refused(monkeypatch, capsys, "operate", [f"--config={config}"])
    assert "no valid YAML" in error
    assert "line 3" in error


@pytest.mark.usefixtures("_no_forward")
def test_nothing_given_names_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And where to find a config."""
    error = refused(monkeypatch, capsys, "operate", [])
    assert "model.source, data.math.path, data.calibration: not given" in error


@pytest.mark.usefixtures("_no_forward")
def test_an_encoder_decoder_is_refused(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one sentence."""
    folder = tmp_path / "t5"
    T5Config(num_layers=1).save_pretrained(folder)
    error = refused(monkeypatch, capsys, "operate", [*arguments, f"--model.source={folder}",
                    f"--model.tokenizer={tmp_path / 'tiny-llama'}"])  # fmt: skip
    assert "encoder-decoder" in error


@pytest.mark.usefixtures("_no_forward")
def test_importance_of_another_model_is_refused(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the hash of the weights."""
    file = tmp_path / "other.safetensors"
    Importance({"math": {}}, {"math": 1}, {"source": "other", "weight_hash": "1"}).save(file)
    error = refused(monkeypatch, capsys, "operate", [*arguments, f"--importance.file={file}"])
    assert "was made for other with weights 1, but the loaded model has" in error


def test_results_are_not_overwritten_by_accident(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only when asked to."""
    arguments = [*arguments, "--lm_eval.tasks=[]"]
    run(monkeypatch, "operate", arguments)
    assert "record.overwrite" in refused(monkeypatch, capsys, "operate", arguments)
    run(monkeypatch, "operate", [*arguments, "--record.overwrite=true"])


def test_overwriting_leaves_nothing_of_the_run_before(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for files that the new run reads."""
    folder = tmp_path / "run"
    run(monkeypatch, "operate", arguments)
    files = {path.name for path in folder.iterdir()}
    assert {"edit.safetensors", "importance.safetensors", "samples"} < files
    again = ["--record.overwrite=true", f"--importance.file={folder / 'importance.safetensors'}"]
    run(monkeypatch, "operate", [*arguments, *again])
    events = [EventAccumulator(str(path)).Reload() for path in folder.glob("events*")]
    steps = [point.step for each in events for point in each.Scalars("perplexity/math")]
    assert sorted(steps) == [0, 1]
    assert {path.name for path in folder.iterdir() if "tfevents" not in path.name} == {
        name for name in files if "tfevents" not in name
    }
    plain = [each for each in arguments if not each.startswith(("--selection", "--lm_eval"))]
    run(monkeypatch, "predict", [*plain, "--record.overwrite=true"])
    left = {path.name.split(".")[0] for path in folder.iterdir()}
    assert left == {"config", "hparams", "importance", "results"}
    run(monkeypatch, "validate", [*plain, "--record.overwrite=true"])
    left = {path.name.split(".")[0] for path in folder.iterdir()}
    assert left == {"config", "events", "hparams", "results"}


def test_activations_that_are_not_finite_stop_the_run(
    arguments: list[str],
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The module and the text are named, and no importance file is left."""
    model = LlamaForCausalLM.from_pretrained(model_folder)
    with torch.no_grad():
        model.model.embed_tokens.weight[10] = float("inf")
    model.save_pretrained(model_folder)
    error = refused(monkeypatch, capsys, "predict", arguments)
    assert "the input of model.layers.0.self_attn.q_proj holds NaN or Inf for row" in error
    assert "data." in error
    assert not (tmp_path / "run" / "importance.safetensors").exists()


@pytest.mark.usefixtures("_no_forward")
def test_texts_beyond_learned_positions_are_refused(
    arguments: list[str],
    model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A table of positions has an end; before its embedding would fail."""
    config = OPTConfig(
        vocab_size=25, hidden_size=16, ffn_dim=24, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=8, word_embed_proj_dim=16, pad_token_id=0,
    )  # fmt: skip
    OPTForCausalLM(config).save_pretrained(model_folder)
    error = refused(monkeypatch, capsys, "predict", arguments)
    assert "tokens and the model positions for 8; set it to 8 or less" in error


@pytest.mark.parametrize("command", ["operate", "validate"])
def test_held_out_texts_that_identification_used_are_refused(
    command: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Perplexity would be measured on texts that were seen."""
    arguments = [*arguments, "--lm_eval.tasks=[]"]
    run(monkeypatch, "operate", arguments)
    option = {"operate": "--importance.file", "validate": "--edit"}[command]
    file = {"operate": "importance", "validate": "edit"}[command]
    changes = [f"{option}={tmp_path / 'run' / file}.safetensors", f"--folder={tmp_path / 'other'}"]
    error = refused(monkeypatch, capsys, command, [*arguments, *changes, "--data.seed=3"])
    assert f"{option.strip('-')}: its identification used" in error
    run(monkeypatch, command, [*arguments, *changes])


def test_an_unfinished_run_can_be_run_again(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed run left is no result."""
    arguments = [*arguments, "--lm_eval.tasks=[]"]

    def killed(*_args: object, **_keywords: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("callbacks.intervene.Edit.apply", killed)
        with pytest.raises(RuntimeError, match="killed"):
            run(patched, "operate", arguments)
    left = json.loads((tmp_path / "run" / "results.json").read_text())
    assert (left["finished"], set(left["scores"])) == (False, {"before"})
    run(monkeypatch, "operate", arguments)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["finished"]
