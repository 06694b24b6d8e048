"""How lm-eval's own tasks read the answers of published data sets, on the data's own solutions."""

import csv
import json
from pathlib import Path
from typing import Any

import lm_eval.tasks
import pytest
import yaml

from mathneuro.data.published import prepare
from mathneuro.data.reading import read_texts
from mathneuro.data.spec import TextSet
from mathneuro.evaluation import EvaluationSettings
from mathneuro.numerals import is_same_answer, parse_number
from mathneuro.programs.spec import ProgramSet, read_problems
from mathneuro.tasks import load_tasks

ROOT = Path(__file__).parent.parent
CONFIGS = ROOT / "configs"
REAL = ROOT / "tests" / "fixtures" / "real"
GSM8K = [REAL / "gsm8k.jsonl", REAL / "gsm8k_test.jsonl"]
THEIRS = Path(lm_eval.tasks.__file__).parent

PROBLEM = "What is half of one?"
SOLUTION = r"Half of one is one divided by two, which is $\boxed{\frac{1}{2}}$."


def load_on(folder: Path, task: str, data: Path) -> Any:  # noqa: ANN401
    """Load one of lm-eval's tasks as it is, but with a local file as its data."""
    settings = {
        "include": str(THEIRS / task),
        "task": "on_local_data",
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": {"train": str(data), "test": str(data)}},
    }
    (folder / "task.yaml").write_text(yaml.safe_dump(settings))
    return load_tasks(EvaluationSettings(("on_local_data",), (folder,))).tasks["on_local_data"]


def read_by_lm_eval(task: Any, answers: list[str]) -> list[dict[str, str]]:  # noqa: ANN401
    """Return what each filter of a task takes out of the answers to its questions."""
    task.build_all_requests(rank=0, world_size=1)
    for instance, answer in zip(task.instances, answers, strict=True):
        instance.resps = [answer]
    task.apply_filters()
    return [each.filtered_resps for each in task.instances]


@pytest.mark.parametrize("data", GSM8K, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("gsm8k/gsm8k.yaml", ("strict-match", "flexible-extract")),
        # Its strict filter looks for "The answer is", which these solutions do not say.
        ("gsm8k/gsm8k-cot.yaml", ("flexible-extract",)),
    ],
)
def test_answers_of_gsm8k_are_those_that_lm_eval_takes_out(
    task: str, names: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    """Thousands and negative ones too; and each solution is right by lm-eval's own metric."""
    solutions = [json.loads(line)["answer"] for line in data.read_text().splitlines()]
    mine = read_problems(ProgramSet(str(data)), "p").rows
    (copy,) = prepare("gsm8k", tmp_path, str(data))
    with copy.open(newline="", encoding="utf-8") as file:
        copied = [row["answer"] for row in csv.DictReader(file)]
    loaded = load_on(tmp_path, task, data)
    theirs = read_by_lm_eval(loaded, solutions)
    assert len(mine) == len(copied) == len(theirs) == len(solutions)
    for row, answer, found, doc in zip(mine, copied, theirs, loaded.test_docs(), strict=True):
        assert row["answer"] == answer
        for name in names:
            assert parse_number(found[name]) == parse_number(answer) is not None
            assert is_same_answer(found[name], answer)
            assert loaded.process_results(doc, [found[name]])["exact_match"] == 1
            assert loaded.process_results(doc, [f"{found[name]}1"])["exact_match"] == 0


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        (SOLUTION, True),
        (r"It is $\boxed{\frac12}$.", True),
        (r"\boxed{0.5}", True),
        (r"\boxed{\dfrac{2}{4}}", True),
        (r"First $\boxed{3}$? No: $\boxed{1/2}$", True),
        (r"Final Answer: The final answer is $\frac{1}{2}$. I hope it is correct.", True),
        (r"\boxed{2}", False),
        (r"\boxed{-\frac{1}{2}}", False),
        (r"It is \boxed", False),
        (r"I do not know.", False),
        ("", False),
    ],
)
def test_the_score_of_competition_math_reads_boxed_answers_as_math(
    answer: str, is_right: bool, tmp_path: Path
) -> None:
    """That which the config names; lm-eval's hendrycks_math reads no box."""
    config = yaml.safe_load((CONFIGS / "experiments" / "math.yaml").read_text())
    (label,) = config["grid"]["math"]
    name, _, metric = label.partition(" ")
    assert name in config["lm_eval"]["tasks"]
    data = tmp_path / "problems.jsonl"
    data.write_text(json.dumps({"problem": PROBLEM, "solution": SOLUTION}) + "\n")
    group = yaml.safe_load((THEIRS / "benchmarks" / f"{name}.yaml").read_text())
    assert metric in [each["metric"] for each in group["aggregate_metric_list"]]
    for each in group["task"]:
        assert (THEIRS / "minerva_math" / f"{each}.yaml").is_file()
    task = load_on(tmp_path, f"minerva_math/{group['task'][0]}.yaml", data)
    (found,) = read_by_lm_eval(task, [answer])
    (doc,) = task.test_docs()
    assert task.process_results(doc, [found["none"]])[metric] == is_right


def copy_of_hub(folder: Path, split: str, rows: list[dict[str, Any]]) -> str:
    """Write a data set as the hub holds them."""
    folder.mkdir()
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


@pytest.mark.parametrize("config", ["experiments/program-of-thought", "data/sgsm-local"])
def test_programs_are_asked_for_questions_that_identification_does_not_read(
    config: str, tmp_path: Path
) -> None:
    """SGSM has one split, of which each gets a part, and none is left over."""
    parsed = yaml.safe_load((CONFIGS / f"{config}.yaml").read_text())
    rows = [{"question": f"q{n}", "solution": "s", "answer": n, "subset": "s"} for n in range(203)]
    path = copy_of_hub(tmp_path / "sgsm", "train", rows)
    if parsed["data"]["math"]["path"].startswith("data/"):
        prepare("sgsm", tmp_path / "copy", path)
        path = str(tmp_path / "copy")
    spec = TextSet(**{**parsed["data"]["math"], "path": path})
    programs = ProgramSet(**{**parsed["lm_eval"]["programs"]["sgsm"], "path": path})
    problems = read_problems(programs, "p")
    read = {text.turns[0][1] for text in read_texts(spec, "data.math").texts}
    asked = {row["question"] for row in problems.rows}
    assert read
    assert asked
    assert not read & asked
    assert read | asked == {row["question"] for row in rows}
    assert all(row["question"] == f"q{parse_number(str(row['answer']))}" for row in problems.rows)


def test_local_copies_of_math_give_the_texts_of_the_hub(tmp_path: Path) -> None:
    """Once `prepare` has made them."""
    row = {"problem": '$x$, "y"?', "solution": "So\n$\\boxed{3}$", "level": "1", "type": "t"}
    original = tmp_path / "math.jsonl"
    original.write_text(json.dumps(row) + "\n")
    (copy,) = prepare("math", tmp_path, str(original))
    texts = []
    for config, path in (("experiments/math", original), ("data/math-local", copy)):
        fields = yaml.safe_load((CONFIGS / f"{config}.yaml").read_text())["data"]["math"]
        spec = TextSet(str(path), template=fields["template"])
        texts.append([text.text for text in read_texts(spec, "data.math").texts])
    assert texts[0] == texts[1] == ['Problem: $x$, "y"?\n\nSolution: So\n$\\boxed{3}$']


def test_questions_of_mgsm_are_not_those_that_identification_reads(tmp_path: Path) -> None:
    """Its test split is all that there is, but for eight worked examples."""
    config = yaml.safe_load((CONFIGS / "data" / "mgsm-german.yaml").read_text())
    rows = [{"question": f"q{n}.", "answer": None, "answer_number": n} for n in range(250)]
    path = copy_of_hub(tmp_path / "mgsm", "test", rows)
    spec = TextSet(**{**config["data"]["math"], "path": path, "name": None})
    texts = read_texts(spec, "data.math").texts
    name = config["lm_eval"]["tasks"][0]
    task = load_on(tmp_path, f"mgsm/direct/{name}.yaml", tmp_path / "mgsm" / "test.jsonl")
    asked = [doc["question"] for _, doc in task.doc_iterator(limit=config["lm_eval"]["limit"])]
    assert len(asked) == config["lm_eval"]["limit"]
    assert len(texts) > config["data"]["held_out"]
    assert {text.text.split()[0] for text in texts} | set(asked) == {
        row["question"] for row in rows
    }
    assert not {text.text.split()[0] for text in texts} & set(asked)
