"""Local copies of published data sets, from copies in the forms that the hub holds them in."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from mathneuro.data.published import PUBLISHED, prepare
from mathneuro.data.reading import read_texts
from mathneuro.data.spec import TextSet
from mathneuro.errors import InputError
from mathneuro.programs.spec import ProgramSet, read_problems
from tests.commands import refused, run

REAL = Path(__file__).parent.parent / "fixtures" / "real" / "gsm8k.jsonl"

ROWS: dict[str, dict[str, Any]] = {
    "gsm8k": {"question": "Q, \"1\"?\nQ", "answer": "So 2.\n#### 1,002"},
    "math": {"problem": "$x$?", "solution": "$\\boxed{3}$", "level": "Level 1", "type": "Algebra"},
    "sgsm": {"question": "Q?", "solution": "def solution():\n  return 1", "answer": 1.5,
             "subset": "s"},
    "mgsm_de": {"question": "Wie viele?", "answer": None, "answer_number": 18},
    "race": {"article": "A.", "question": "Q?", "options": ["a", "b", "c", "d"], "answer": "C"},
    "mmlu": {"question": "Q?", "choices": ["a", "b", "c", "d"], "answer": 2, "subject": "s"},
    "codealpaca": {"instruction": "Do.", "input": "", "output": "done"},
}  # fmt: skip

EXPECTED = {
    "gsm8k": {"question": 'Q, "1"?\nQ', "solution": "So 2.\n#### 1,002", "answer": "1,002"},
    "math": {"question": "$x$?", "solution": "$\\boxed{3}$"},
    "sgsm": {"question": "Q?", "solution": "def solution():\n  return 1", "answer": "1.5",
             "subset": "s"},
    "mgsm_de": {"question": "Wie viele?", "solution": "18", "answer": "18"},
    "race": {"qa": "A.\n\nQuestion: Q?\n\nAnswer: c"},
    "mmlu": {"qa": "Question: Q?\n\nChoices: ['a', 'b', 'c', 'd']\n\nAnswer: c"},
    "codealpaca": {"question": "Do.", "solution": "done"},
}  # fmt: skip


def read(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ROWS)
def test_files_have_the_published_columns(name: str, tmp_path: Path) -> None:
    """From a file, with quotes and line ends kept; and they serve as a set of texts."""
    source = tmp_path / "source.jsonl"
    source.write_text("".join(json.dumps(ROWS[name]) + "\n" for _ in range(2)))
    counts = prepare(name, tmp_path / "out", str(source))
    assert counts == {tmp_path / "out" / f"{name}.csv": 2}
    (path,) = counts
    assert read(path) == [EXPECTED[name]] * 2
    columns = ["qa"] if "qa" in EXPECTED[name] else ["question", "solution"]
    assert len(read_texts(TextSet(str(path), columns=columns), "data.math").texts) == 2
    if "answer" in EXPECTED[name]:
        assert len(read_problems(ProgramSet(str(path)), "p").rows) == 2


def test_splits_and_configurations_of_a_copy_of_the_hub(tmp_path: Path) -> None:
    """One file a split, all configurations together."""
    copy = tmp_path / "copy"
    lines = ["---", "configs:"]
    for kind in PUBLISHED["math"].names:
        lines += [f"- config_name: {kind}", "  data_files:"]
        for split in ("train", "test"):
            path = copy / str(kind) / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"problem": f"{kind} {split}", "solution": "s"}) + "\n")
            lines += [f"  - split: {split}", f"    path: {kind}/{split}.jsonl"]
    (copy / "README.md").write_text("\n".join([*lines, "---"]))
    counts = prepare("math", tmp_path / "out", str(copy))
    assert [path.name for path in counts] == ["math_train.csv", "math_test.csv"]
    assert [row["question"] for row in read(tmp_path / "out" / "math_test.csv")] == [
        f"{kind} test" for kind in PUBLISHED["math"].names
    ]


@pytest.mark.parametrize("name", ["gsm8k", "mmlu"])
def test_a_folder_of_files_is_a_copy_too(name: str, tmp_path: Path) -> None:
    """Without the configurations of the hub."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for split in PUBLISHED[name].splits:
        (copy / f"{split}.jsonl").write_text(json.dumps(ROWS[name]) + "\n")
    counts = prepare(name, tmp_path / "out", str(copy))
    assert [path.stem for path in counts] == [f"{name}_{each}" for each in PUBLISHED[name].splits]
    assert [read(path) for path in counts] == [[EXPECTED[name]]] * 2


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It tells what it wrote, and overwrites nothing."""
    options = ["--data=gsm8k", f"--output={tmp_path}", f"--source={REAL}"]
    run(monkeypatch, "prepare", options)
    count = len(REAL.read_text().splitlines())
    assert f"{tmp_path / 'gsm8k.csv'}, {count} rows" in capsys.readouterr().out
    assert "is there already" in refused(monkeypatch, capsys, "prepare", options)
    wrong = refused(monkeypatch, capsys, "prepare", ["--data=gsm", f"--output={tmp_path}"])
    assert "data: got 'gsm', but it must be one of gsm8k, math" in wrong
    other = ["--data=math", f"--output={tmp_path}", f"--source={REAL}"]
    assert "problem" in refused(monkeypatch, capsys, "prepare", other)
    assert not (tmp_path / "math.csv").exists()
    with pytest.raises(InputError, match="does not exist"):
        prepare("math", tmp_path, "nowhere.jsonl")
