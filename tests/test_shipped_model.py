"""The model that the project ships: what the README says of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from tests.commands import run

ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "assets"


def rows(name: str) -> list[dict[str, str]]:
    """Read a data file."""
    lines = (ASSETS / "data" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_quickstart_separates_the_two_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pruning halves arithmetic at least, and takes a tenth of language at most."""
    monkeypatch.chdir(ROOT)
    run(
        monkeypatch, "operate", ["--config=configs/quickstart.yaml", f"--folder={tmp_path / 'run'}"]
    )
    scores = json.loads((tmp_path / "run" / "results.json").read_text())["scores"]
    before, after = (
        {
            skill: scores[state]["tasks"][f"tiny_{skill}"]["exact_match"]["value"]
            for skill in ("arithmetic", "language")
        }
        for state in ("before", "after")
    )
    assert min(before.values()) >= 0.9
    assert after["arithmetic"] <= before["arithmetic"] / 2
    assert after["language"] >= before["language"] * 0.9


def test_the_model_is_small_and_tied() -> None:
    """About a million parameters, under 5 MB with its tokenizer."""
    folder = ASSETS / "tiny-math"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 5e6
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert 0.8e6 < model.num_parameters() < 1.3e6
    assert model.lm_head.weight is model.model.embed_tokens.weight


@pytest.mark.parametrize("skill", ["arithmetic", "language"])
def test_held_out_texts_are_held_out(skill: str) -> None:
    """No test text stands in the training file; no test sum does, in words or bare."""
    train, test = rows(f"{skill}_train"), rows(f"{skill}_test")
    assert len(test) >= 200
    assert not {row["qa"] for row in train} & {row["qa"] for row in test}
    if skill == "arithmetic":
        bare = [
            {row["question"] for row in each if "What is" in row["question"]}
            for each in (train, test)
        ]
        assert min(map(len, bare)) > 20
        assert not bare[0] & bare[1]


def test_the_data_files_can_be_made_again(tmp_path: Path) -> None:
    """Byte for byte."""
    script = [sys.executable, str(ASSETS / "make_data.py")]
    subprocess.run(
        [*script, "--output", str(tmp_path)], check=True, capture_output=True, timeout=120
    )
    made = sorted(tmp_path.glob("*.jsonl"))
    assert len(made) == 4
    for file in made:
        assert file.read_bytes() == (ASSETS / "data" / file.name).read_bytes()


@pytest.mark.slow
def test_the_training_script_runs(tmp_path: Path) -> None:
    """For two steps: a model comes out that transformers loads."""
    script = [sys.executable, str(ASSETS / "train.py"), "--output", str(tmp_path / "model")]
    ended = subprocess.run(
        [*script, "--steps", "2", "--check_every", "2"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "model").num_parameters() > 0.8e6
