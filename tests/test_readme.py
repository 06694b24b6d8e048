"""Every command and every piece of code in the README runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mathneuro.data import TextSet
from tests.commands import run
from tests.family_table import table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(kind: str) -> list[str]:
    """Return the fenced blocks of one kind."""
    return re.findall(rf"```{kind}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[list[str]]:
    """Return all commands, word by word, without comments."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return list(filter(None, (shlex.split(line, comments=True) for line in lines)))


def test_commands_run_in_their_order_and_then_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On few questions and settings; what needs a GPU is parsed in the test of configs."""
    for name in ("assets", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    mine = [words[2:] for words in commands() if words[:2] == ["python", "main.py"]]
    local = [words for words in mine if not any("llama" in word for word in words)]
    assert len(local) >= 9
    few = ["--lm_eval.limit=10", "--data.held_out=5"]
    fewer = [*few, "--grid.repeats=1", "--grid.proportions=[0.05]"]
    extra = {
        "sweep": fewer,
        "consistency": fewer,
        "report": [],
        "inspect": [],
        "combine": [],
        "prepare": [],
    }
    for name, *arguments in local:
        words = [name, *arguments, *extra.get(name, few)]
        if "--trainer.devices" in words:
            # The other processes are started with the arguments of this one.
            whole = [sys.executable, str(ROOT / "main.py"), *words]
            subprocess.run(whole, check=True, timeout=180, cwd=tmp_path)
        else:
            run(monkeypatch, name, words[1:])
    for name, *arguments in local:
        if name not in extra and "--folder" in arguments:
            folder = arguments[arguments.index("--folder") + 1]
            assert (tmp_path / folder / "results.json").exists()
    for folder in ("sweep/report", "sweep/consistency", "inspected"):
        assert (tmp_path / "runs" / folder / "summary.md").exists()
    assert (tmp_path / "exported" / "tiny-pruned" / "README.md").exists()
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), {})


def test_make_targets_exist() -> None:
    """Each that the README names."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {words[1] for words in commands() if words[0] == "make"}
    assert {"quickstart", "test", "test-slow", "bench"} <= named <= targets


def test_the_config_that_is_shown_holds_real_fields() -> None:
    """Of sets of texts, which the parser checks last."""
    shown = yaml.safe_load(blocks("yaml")[0])
    for fields in (shown["data"]["math"], *shown["data"]["calibration"].values()):
        assert TextSet(**fields).columns


def test_files_that_are_linked_exist() -> None:
    """Pictures and pages."""
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("http") or (ROOT / link).exists(), link


def test_no_place_is_left_to_fill_in() -> None:
    """No capitals stand where a number should, but for variables of the shell."""
    assert not re.findall(r"(?<!\$)\b[A-Z0-9]+_[A-Z_]+\b", README)


def test_the_table_of_families_is_what_the_tests_found() -> None:
    """``python -m tests.family_table`` prints it anew."""
    assert table() in README
