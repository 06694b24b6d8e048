"""Every config in the repository, parsed against the real classes."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from mathneuro.grid import PROPORTIONS
from tests.commands import run

FOLDER = Path(__file__).parent.parent / "configs"
BASE = FOLDER / "llama3.2-1b-gsm8k.yaml"
WHOLE = sorted(FOLDER.glob("*.yaml"))
MODELS = sorted((FOLDER / "models").glob("*.yaml"))
EXPERIMENTS = sorted((FOLDER / "experiments").glob("*.yaml"))
DATA = sorted((FOLDER / "data").glob("*.yaml"))


def parse(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    *configs: Path,
) -> dict[str, Any]:
    """Return the config that a command gets."""
    monkeypatch.chdir(FOLDER.parent)
    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, command, [*(f"--config={each}" for each in configs), "--print_config"])
    assert exit_.value.code == 0
    return dict(yaml.safe_load(capsys.readouterr().out))


def holds(parsed: Any, given: Any) -> bool:  # noqa: ANN401
    """Tell whether all that a file says is what the command gets."""
    if isinstance(given, dict):
        return all(key in parsed and holds(parsed[key], value) for key, value in given.items())
    return bool(parsed == given)


@pytest.mark.parametrize("command", ["operate", "predict", "sweep", "validate"])
@pytest.mark.parametrize("config", WHOLE, ids=lambda path: path.stem)
def test_a_config_parses_for_every_command(
    config: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what it says is what the command gets."""
    assert holds(parse(monkeypatch, capsys, command, config), yaml.safe_load(config.read_text()))


@pytest.mark.parametrize("overlay", [*MODELS, *EXPERIMENTS, *DATA], ids=lambda path: path.stem)
def test_an_overlay_changes_what_it_says_and_no_more(
    overlay: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On top of the base."""
    base = parse(monkeypatch, capsys, "sweep", BASE)
    changed = parse(monkeypatch, capsys, "sweep", BASE, overlay)
    given = yaml.safe_load(overlay.read_text())
    assert holds(changed, given)
    for section in base:
        if section not in given:
            assert changed[section] == base[section]


def test_all_published_models_are_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each goes with every experiment, and the base is one of them."""
    sources = {path: yaml.safe_load(path.read_text())["model"]["source"] for path in MODELS}
    assert len(set(sources.values())) == 6
    base = parse(monkeypatch, capsys, "sweep", BASE)
    assert base["model"]["source"] in sources.values()
    for model, experiment in itertools.product(MODELS[:2], EXPERIMENTS):
        parsed = parse(monkeypatch, capsys, "sweep", BASE, model, experiment)
        assert parsed["model"]["source"] == sources[model]


def test_the_base_is_the_published_experiment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the paper has it."""
    parsed = parse(monkeypatch, capsys, "sweep", BASE)
    assert parsed["data"]["num_samples"] == 500
    assert parsed["data"]["replacement"] is True
    assert parsed["grid"]["repeats"] == 5
    assert tuple(parsed["grid"]["proportions"]) == PROPORTIONS
    assert parsed["grid"]["calibration"] == list(parsed["data"]["calibration"]) == ["race", "mmlu"]
    assert parsed["lm_eval"]["limit"] == 200


def test_there_are_configs() -> None:
    """The tests above would pass without any."""
    assert {"quickstart", "sweep", "llama3.2-1b-gsm8k"} == {path.stem for path in WHOLE}
    experiments = {path.stem for path in EXPERIMENTS}
    assert experiments == {"scale", "math", "ablations", "data-efficiency", "program-of-thought"}
    assert {path.stem for path in DATA} == {
        "gsm8k-local", "math-local", "sgsm-local", "calibration-local", "mgsm-german", "codealpaca",
    }  # fmt: skip


def test_whole_numbers_may_be_written_as_others_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """On the command line and in a file; they are whole numbers from then on."""
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(
        "data: {num_samples: 1e2, held_out: 1e1}\ngrid: {num_samples: [1e2, 5], repeats: 2.0}\n"
    )
    parsed = parse(monkeypatch, capsys, "sweep", BASE, overlay)
    numbers = [parsed["data"][name] for name in ("num_samples", "held_out")]
    numbers += [*parsed["grid"]["num_samples"], parsed["grid"]["repeats"]]
    assert numbers == [100, 10, 100, 5, 2]
    assert {type(number) for number in numbers} == {int}
