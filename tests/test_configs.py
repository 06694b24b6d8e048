"""Every config in the repository, parsed against the real classes."""

from pathlib import Path

import pytest
import yaml

from tests.commands import run

CONFIGS = sorted((Path(__file__).parent.parent / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("command", ["operate", "predict", "validate"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_a_config_parses_for_every_command(
    config: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what it says is what the command gets."""
    monkeypatch.chdir(config.parent.parent)
    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, command, [f"--config={config}", "--print_config"])
    assert exit_.value.code == 0
    parsed = yaml.safe_load(capsys.readouterr().out)
    given = yaml.safe_load(config.read_text())
    assert parsed["model"]["source"] == given["model"]["source"]
    assert parsed["selection"]["proportion"] == given["selection"]["proportion"]
    assert set(parsed["data"]["calibration"]) == set(given["data"]["calibration"])


def test_there_are_configs() -> None:
    """The test above would pass without any."""
    assert {"quickstart", "llama3.2-1b-gsm8k"} <= {path.stem for path in CONFIGS}
