"""Running commands in the test's own process."""

import sys

import pytest

import main


def run(monkeypatch: pytest.MonkeyPatch, command: str, arguments: list[str]) -> None:
    """Run a command as ``python main.py COMMAND ARGUMENTS`` would."""
    monkeypatch.setattr(sys, "argv", ["main.py", command, *arguments])
    main.main()


def refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    arguments: list[str],
) -> str:
    """Run a command that must end with status 2, and return the one line that it says."""
    with pytest.raises(SystemExit) as exit_:
        run(monkeypatch, command, arguments)
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, error
    assert "Traceback" not in error
    return lines[0]
