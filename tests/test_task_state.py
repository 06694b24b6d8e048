"""Every evaluation asks the same prompts, whatever ran before it, and those are lm-eval's."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pytest
import torch
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from mathneuro.changes import changes
from mathneuro.errors import InputError
from mathneuro.evaluation import Evaluation, EvaluationSettings, evaluate
from mathneuro.live_model import LiveModel
from mathneuro.scores import Scores
from mathneuro.tasks import load_tasks
from tests.commands import run

SEED = 7

UTILS = '''
import random
import numpy as np
import torch
from lm_eval.api.samplers import ContextSampler
from lm_eval.api.filter import Filter

GENERATOR = np.random.default_rng(3)
OLD = np.random.RandomState(4)
TENSORS = torch.Generator().manual_seed(5)

class Own(ContextSampler):
    """Remembers what it gave, and draws from more than its own generator."""

    def sample(self, n, eval_doc=None, df=None, **kwargs):
        self.given = getattr(self, "given", 0) + 1
        pool = list(self.df)
        numbers = [self.given, GENERATOR.integers(99), OLD.randint(99), random.randrange(99)]
        numbers.append(int(torch.randint(99, (1,), generator=TENSORS)))
        numbers.append(int(torch.randint(99, (1,))))
        return [pool[number % len(pool)] for number in numbers[:n]]

def question(doc):
    return f"{doc['question']} {random.randrange(5)}"

def answers(resps, docs):
    return [[random.choice(each)] for each in resps]
'''

SAMPLERS = {
    "default": "",
    "first_n": "fewshot_config:\n  sampler: first_n\n",
    "own": "fewshot_config:\n  sampler: !function utils.Own\n",
}

QUESTION = {"draws": "!function utils.question"}


@pytest.fixture
def drawing_tasks(task_folder: Path) -> Path:
    """One task of each sampler of lm-eval, and one whose questions draw."""
    (task_folder / "utils.py").write_text(UTILS)
    template = (task_folder / "tiny_generate.yaml").read_text()
    for name in (*SAMPLERS, "draws"):
        text = template.replace("task: tiny_generate", f"task: {name}")
        text = text.replace('"{{question}}"', QUESTION.get(name, '"{{question}}"'))
        text += f"num_fewshot: 2\nfewshot_split: test\n{SAMPLERS.get(name, '')}"
        (task_folder / f"{name}.yaml").write_text(text)
    return task_folder


def chosen(folder: Path, *names: str) -> EvaluationSettings:
    """Ask the given tasks."""
    return EvaluationSettings(names, (folder,), batch_size=4, seed=SEED)


def asked(evaluation: Evaluation) -> dict[str, list[Any]]:
    """Return the prompts of every task."""
    return {
        name: [sample["arguments"] for sample in samples]
        for name, samples in evaluation.samples.items()
    }


@pytest.mark.parametrize("name", [*SAMPLERS, "draws"])
def test_prompts_are_the_same_again_and_those_of_lm_eval(
    drawing_tasks: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str
) -> None:
    """Before and after an edit, beside another task, and in lm-eval's own evaluation."""
    settings = chosen(drawing_tasks, name)
    tasks, live = load_tasks(settings), LiveModel(tied_llama, tokenizer, 4)
    before = evaluate(live, tasks, settings)
    random.seed(99)
    np.random.seed(99)
    torch.manual_seed(99)
    with torch.no_grad():
        tied_llama.model.embed_tokens.weight.neg_()
    after = evaluate(live, tasks, settings)
    assert asked(before) == asked(after)
    assert before.prompts == after.prompts
    assert before.prompts.keys() == {name}

    model = HFLM(pretrained=tied_llama, tokenizer=tokenizer, batch_size=4)
    seeds = ("random_seed", "numpy_random_seed", "torch_random_seed", "fewshot_random_seed")
    stock = lm_eval.simple_evaluate(
        model=model,
        tasks=[name],
        task_manager=TaskManager(include_path=str(drawing_tasks), include_defaults=False),
        log_samples=True,
        **dict.fromkeys(seeds, SEED),
    )
    assert [sample["arguments"] for sample in stock["samples"][name]] == asked(after)[name]
    assert stock["results"][name]["exact_match,none"] == after.scores[name]["exact_match"].value


def test_other_seeds_ask_other_prompts(
    drawing_tasks: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Where something draws: the hash knows."""
    hashes = []
    for seed in (SEED, SEED + 1):
        settings = EvaluationSettings(("default", "first_n"), (drawing_tasks,), seed=seed)
        live = LiveModel(tied_llama, tokenizer, 4)
        hashes.append(evaluate(live, load_tasks(settings), settings).prompts)
    assert hashes[0]["default"] != hashes[1]["default"]
    assert hashes[0]["first_n"] == hashes[1]["first_n"]


def test_generation_that_draws_starts_the_same(
    drawing_tasks: Path, tied_llama: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Sampled answers are equal for equal weights."""
    path = drawing_tasks / "tiny_generate.yaml"
    path.write_text(
        path.read_text().replace("do_sample: false", "do_sample: true\n  temperature: 2.0")
    )
    settings = chosen(drawing_tasks, "tiny_generate")
    tasks, live = load_tasks(settings), LiveModel(tied_llama, tokenizer, 4)
    first, again = (evaluate(live, tasks, settings).samples["tiny_generate"] for _ in range(2))
    assert [each["resps"] for each in first] == [each["resps"] for each in again]
    assert len({each["resps"][0][0] for each in first}) > 1


def test_scores_on_other_prompts_are_not_compared() -> None:
    """In one sentence that names the task."""
    before, after = Scores(prompts={"sums": "1"}), Scores(prompts={"sums": "2"})
    with pytest.raises(InputError, match="the prompts of 'sums' differ between before and after"):
        changes(before, after)


def prompts(path: Path, take: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, str]:
    """Return the hashes that a file states."""
    found: dict[str, str] = take(json.loads(path.read_text()))["prompts"]
    return found


def test_a_sweep_asks_what_a_run_asks(
    drawing_tasks: Path, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting, alone, resumed and in a run, states the same hash."""
    own = [
        f"--lm_eval.task_folders=[{drawing_tasks}]",
        "--lm_eval.tasks=[default, own]",
        "--lm_eval.limit=4",
        "--data.held_out=0",
    ]
    base = [each for each in arguments if not each.startswith(("--selection", "--folder"))]
    grid = ["--grid.methods=[wanda]", "--grid.proportions=[0.1]", "--grid.math=[default]"]
    grid.append("--grid.repeats=1")
    run(monkeypatch, "operate", [*arguments, *own])
    record = tmp_path / "run" / "results.json"
    found = [
        prompts(record, lambda all_, state=state: all_["scores"][state])  # type: ignore[misc]
        for state in ("before", "after")
    ]
    sweep = [*base, *own, *grid, f"--folder={tmp_path / 'sweep'}"]
    run(monkeypatch, "sweep", [*sweep, "--grid.factors=[0.5]"])
    run(monkeypatch, "sweep", [*sweep, "--grid.factors=[0.5, 0, 1.1]"])
    settings = sorted((tmp_path / "sweep" / "settings").glob("*.json"))
    assert len(settings) == 4
    found += [prompts(path, lambda all_: all_["scores"]) for path in settings]
    assert found[0].keys() == {"default", "own"}
    assert all(each == found[0] for each in found)
