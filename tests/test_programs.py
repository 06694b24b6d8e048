"""Program-of-thought: prompts, programs, what is solved, and the whole through a command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings
from mathneuro.numerals import is_same_answer
from mathneuro.programs.examples import EXAMPLES
from mathneuro.programs.notes import program_notes
from mathneuro.programs.spec import ProgramSet, read_problems
from mathneuro.programs.task import RunPrograms, find_program, prompt, score
from mathneuro.sandbox import Limits, run_programs
from mathneuro.task_fingerprints import tasks_fingerprint
from mathneuro.tasks import load_tasks
from tests.commands import refused, run

REAL = Path(__file__).parent / "fixtures" / "real"


def rows(folder: Path, content: str) -> ProgramSet:
    """Write a CSV file and name it."""
    (folder / "problems.csv").write_text(content)
    return ProgramSet(str(folder / "problems.csv"))


def test_the_worked_programs_give_their_answers() -> None:
    """All eight, in the sandbox."""
    assert len(EXAMPLES) == 8
    outcomes = run_programs([each.program for each in EXAMPLES], Limits())
    for example, outcome in zip(EXAMPLES, outcomes, strict=True):
        assert outcome.status == "ran"
        assert is_same_answer(outcome.value, example.answer), example.question


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("\ndef solution():\n    return 1\n\nQuestion: x", "def solution():\n    return 1"),
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Here it is:\n```\nx = 1\n```\nDone", "x = 1\n"),
        ("```x = 1```", "x = 1"),
        ("", ""),
    ],
)
def test_programs_are_found_in_answers(answer: str, program: str) -> None:
    """Up to the next question, in a block of code or without one."""
    assert find_program(answer) == program


def test_answers_are_run_and_compared() -> None:
    """What ran, and what is right."""
    answers = [
        " def solution():\n    return 84 / 2\n\nQuestion: another",
        "def solution():\n    return 41",
        "def solution():\n    return 'forty-two'",
        "def solution(:",
        "while True: pass",
        "import os\nos._exit(0)",
        "def solution():\n    return float('nan')",
    ]
    found = RunPrograms(seconds=1.0, memory=2**29).apply(
        [[answer.lstrip()] for answer in answers], [{}] * len(answers)
    )
    doc = {"answer": "42"}
    assert [score(doc, [each])["solved"] for each in found] == [1, 0, 0, 0, 0, 0, 0]
    assert [score(doc, [each])["ran"] for each in found] == [1, 1, 1, 0, 0, 0, 1]
    assert [each["status"] for each in found[3:6]] == ["failed", "timeout", "ended"]


def test_questions_are_read(tmp_path: Path) -> None:
    """SGSM's columns, a subset of them, and rows without a number left out."""
    spec = rows(
        tmp_path,
        'question,solution,answer,subset\nA?,x,"1,200",sgsm_train\nB?,x,none,sgsm_train\n'
        "C?,x,3/4,sgsm_test\n,x,5,sgsm_train\n",
    )
    found = read_problems(spec, "p")
    assert [(each["row"], each["answer"]) for each in found.rows] == [(0, "1,200"), (2, "3/4")]
    assert found.left_out == 2
    spec.subset = "sgsm_test"
    assert [each["question"] for each in read_problems(spec, "p").rows] == ["C?"]


def test_answers_of_gsm8k_are_those_of_lm_eval(tmp_path: Path) -> None:
    """As its filters take them out of the data's own solutions."""
    from lm_eval.filters.extraction import RegexFilter

    lines = (REAL / "gsm8k.jsonl").read_text().splitlines()
    answers = [json.loads(line)["answer"] for line in lines]
    strict = RegexFilter(regex_pattern=r"#### (\-?[0-9\.\,]+)")
    expected = strict.apply([[answer] for answer in answers], [{}] * len(answers))
    found = read_problems(ProgramSet(str(REAL / "gsm8k.jsonl")), "p")
    assert [each["answer"] for each in found.rows] == [each[0] for each in expected]
    assert found.left_out == 0


@pytest.mark.parametrize(
    ("content", "changes", "told"),
    [
        ("question,answer\n", {}, "holds no question whose answer is a number"),
        ("question,answer\nA?,b\n", {}, "holds no question whose answer is a number"),
        ("q,answer\nA?,1\n", {}, "p.question: "),
        ("question,a\nA?,1\n", {}, "p.answer: "),
        ("question,answer\nA?,1\n", {"subset": "x"}, "p.subset: "),
        ("question,answer\nA?,1\n", {"seconds": 0.0}, "programs.seconds: got 0"),
        ("question,answer\nA?,1\n", {"max_new_tokens": 0}, "p.max_new_tokens: got 0"),
        ("question,answer\nA?,1\n", {"path": "nowhere.csv"}, "nowhere.csv does not exist"),
    ],
)
def test_data_that_do_not_serve(
    tmp_path: Path, content: str, changes: dict[str, Any], told: str
) -> None:
    """One sentence that names the field."""
    spec = rows(tmp_path, content)
    for name, value in changes.items():
        setattr(spec, name, value)
    with pytest.raises(InputError) as caught:
        read_problems(spec, "p")
    assert told in str(caught.value)


def test_nothing_runs_without_the_users_word(tmp_path: Path) -> None:
    """Nor do lm-eval's own tasks that run code, whatever the user says."""
    spec = rows(tmp_path, "question,answer\nA?,1\n")
    with pytest.raises(InputError, match=r"confirm_run_unsafe_code: got false"):
        load_tasks(EvaluationSettings((), programs={"sums": spec}))
    tasks = load_tasks(
        EvaluationSettings((), programs={"sums": spec}, confirm_run_unsafe_code=True)
    )
    assert tasks.tasks.keys() == {"sums"}
    (tmp_path / "unsafe.yaml").write_text(
        "task: unsafe\ndataset_path: csv\ndataset_kwargs:\n  data_files:\n"
        f"    test: {spec.path}\ntest_split: test\noutput_type: generate_until\n"
        "doc_to_text: q\ndoc_to_target: a\nunsafe_code: true\n"
    )
    with pytest.raises(InputError, match="runs code that the model writes, unprotected"):
        load_tasks(EvaluationSettings(("unsafe",), (tmp_path,), confirm_run_unsafe_code=True))


def test_the_command(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scores, the answer to every question, and a sentence without the user's word."""
    spec = rows(tmp_path, "question,answer\n" + "How many is one and one?,2\n" * 3 + "What?,x\n")
    programs = f"--lm_eval.programs={{sums: {{path: {spec.path}, max_new_tokens: 4}}}}"
    message = refused(monkeypatch, capsys, "validate", [*arguments, programs])
    assert "lm_eval.confirm_run_unsafe_code: got false" in message
    long = f"--lm_eval.programs={{sums: {{path: {spec.path}, max_new_tokens: 9999}}}}"
    confirm = "--lm_eval.confirm_run_unsafe_code=true"
    message = refused(monkeypatch, capsys, "validate", [*arguments, long, confirm])
    assert "sums has answers of up to 9,999 tokens, but the model's context is " in message
    confirmed = [*arguments, programs, "--lm_eval.confirm_run_unsafe_code=true"]
    run(monkeypatch, "operate", confirmed)
    out = capsys.readouterr().out
    assert "sums solved" in out
    assert "sums ran" in out
    assert "sums leaves out 1 rows that state no number" in out
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["scores"]["after"]["tasks"]["sums"]["ran"]["count"] == 3
    assert "sums solved" in results["changes"]
    path = tmp_path / "run" / "samples" / "before" / "sums.jsonl"
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    assert samples[0]["arguments"][0][0] == prompt(samples[0]["doc"])
    assert samples[0]["filtered_resps"][0]["status"] in ("failed", "no solution")


def test_what_is_asked_is_the_same_in_every_process(tmp_path: Path) -> None:
    """So that a sweep can go on, and its shards and processes agree; other questions are not."""
    spec = rows(tmp_path, "question,answer\nA?,1\n")
    settings = EvaluationSettings((), programs={"sums": spec}, confirm_run_unsafe_code=True)
    first, second = (tasks_fingerprint(load_tasks(settings).tasks, settings) for _ in range(2))
    assert first == second
    code = (
        "from mathneuro.evaluation import EvaluationSettings\n"
        "from mathneuro.programs.spec import ProgramSet\n"
        "from mathneuro.task_fingerprints import tasks_fingerprint\n"
        "from mathneuro.tasks import load_tasks\n"
        f"settings = EvaluationSettings((), programs={{'sums': ProgramSet({spec.path!r})}})\n"
        "print(tasks_fingerprint(load_tasks(settings, to_run=False).tasks, settings)['sums'])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split()[-1] == first["sums"]
    Path(spec.path).write_text("question,answer\nB?,1\n")
    assert tasks_fingerprint(load_tasks(settings).tasks, settings) != first


@pytest.mark.parametrize("name", ["a/b", "../a", ".hidden", "a b", ""])
def test_names_that_files_cannot_have(tmp_path: Path, name: str) -> None:
    """Answers are kept in files of that name."""
    spec = rows(tmp_path, "question,answer\nA?,1\n")
    with pytest.raises(InputError, match=r"lm_eval\.programs: got '.*' as a name"):
        load_tasks(EvaluationSettings((), programs={name: spec}), to_run=False)


def test_programs_are_no_tasks_to_name(tmp_path: Path) -> None:
    """And no task is named twice."""
    programs = {"sums": rows(tmp_path, "question,answer\nA?,1\n")}
    for tasks, told in (
        (("sums",), "which is one of lm_eval.programs"),
        (("arc_easy", "arc_easy"), "got 'arc_easy' twice"),
    ):
        with pytest.raises(InputError, match=told):
            load_tasks(EvaluationSettings(tasks, programs=programs), to_run=False)


def test_programs_that_were_stopped_are_told(tmp_path: Path) -> None:
    """As scores do not show them."""
    spec = rows(tmp_path, "question,answer\nA?,1\nB?,x\n")
    settings = EvaluationSettings((), programs={"sums": spec})
    task = load_tasks(settings, to_run=False).tasks["sums"]
    statuses = ["ran", "timeout", "memory", "timeout"]
    samples = [{"filtered_resps": [{"status": each}]} for each in statuses]
    assert program_notes("sums", spec, task, samples) == [
        "sums leaves out 1 rows that state no number as the answer",
        "2 of 4 programs of sums needed more than 5 seconds and were stopped",
        "1 of 4 programs of sums needed more than 1,073,741,824 bytes and were stopped",
    ]
