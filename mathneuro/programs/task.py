"""Program-of-thought as a task of lm-eval: prompt, programs, scores."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter
from lm_eval.api.task import ConfigurableTask

from mathneuro.numerals import is_same_answer
from mathneuro.programs.examples import EXAMPLES
from mathneuro.programs.spec import LEFT_OUT, Problems, ProgramSet, read_problems
from mathneuro.ranks import ALONE, Ranks
from mathneuro.sandbox import Limits, run_programs

RUN = "mathneuro_run_programs"
"""Name of the filter in lm-eval's registry."""

_RANKS: ContextVar[Ranks] = ContextVar("ranks", default=ALONE)

INTRODUCTION = (
    "Answer each question with a Python function solution() that computes the answer and returns "
    "it as a number."
)
QUESTION, PROGRAM = "Question:", "Program:"


@contextmanager
def running_in(ranks: Ranks) -> Iterator[None]:
    """Run programs in this block in the first of some processes alone; all get what came of them.

    lm-eval builds filters itself, so that they cannot be told in another way.
    """
    token = _RANKS.set(ranks)
    try:
        yield
    finally:
        _RANKS.reset(token)


@register_filter(RUN)
class RunPrograms(Filter):  # type: ignore[misc]
    """Runs the programs of all questions, several at once.

    Args:
        seconds: Time on a processor that each may take.
        memory: Bytes that each may take.
    """

    def __init__(self, seconds: float, memory: int) -> None:
        super().__init__()
        self._limits = Limits(seconds, memory)

    def apply(
        self, resps: Sequence[Sequence[str]], docs: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, str]]:
        """Run the first answer to each question.

        Args:
            resps: The answers to each question.
            docs: The questions.

        Returns:
            For each question the program, its status, the value and the error.
        """
        programs = [find_program(answers[0]) for answers in resps]
        outcomes = _RANKS.get().first(lambda: run_programs(programs, self._limits))
        return [
            {"program": program, "status": each.status, "value": each.value, "error": each.error}
            for program, each in zip(programs, outcomes, strict=True)
        ]


def program_task(name: str, spec: ProgramSet) -> ConfigurableTask:
    """Build a task.

    Args:
        name: Its name.
        spec: Where its questions come from.

    Raises:
        InputError: If the questions cannot be read.
    """
    problems = read_problems(spec, f"lm_eval.programs.{name}")
    task = ConfigurableTask(
        config={
            "task": name,
            "custom_dataset": partial(_dataset, problems),
            "test_split": "test",
            "output_type": "generate_until",
            "num_fewshot": 0,
            "doc_to_text": prompt,
            "doc_to_target": "{{answer}}",
            "generation_kwargs": {
                "until": [QUESTION],
                "do_sample": False,
                "max_gen_toks": spec.max_new_tokens,
            },
            "filter_list": [
                {
                    "name": "none",
                    "filter": [{"function": RUN, "seconds": spec.seconds, "memory": spec.memory}],
                }
            ],
            "process_results": score,
            "metric_list": [
                {"metric": metric, "aggregation": "mean", "higher_is_better": True}
                for metric in ("solved", "ran")
            ],
            "unsafe_code": True,
            "metadata": {"version": 1.0, LEFT_OUT: problems.left_out},
        }
    )
    # It has been read. lm-eval would write it into its records, all questions included.
    task.config.custom_dataset = None
    return task


def prompt(doc: Mapping[str, Any]) -> str:
    """Return the text that a model completes with a program.

    Example:
        >>> text = prompt({"question": "How many legs do 3 cats have?"})
        >>> text.count("def solution():"), text.splitlines()[-2:]
        (8, ['Question: How many legs do 3 cats have?', 'Program:'])
    """
    parts = [f"{QUESTION} {each.question}\n{PROGRAM}\n{each.program}" for each in EXAMPLES]
    return "\n\n".join([INTRODUCTION, *parts, f"{QUESTION} {doc['question']}\n{PROGRAM}"])


def find_program(answer: str) -> str:
    r"""Take the program out of an answer: up to the next question, out of a block of code.

    Example:
        >>> find_program("\n```python\nx = 1\n```\nIt is 1.\nQuestion: And 2?")
        'x = 1\n'
        >>> find_program(" x = 1\n y = 2")
        'x = 1\ny = 2'
    """
    answer = answer.partition(QUESTION)[0]
    if "```" in answer:
        block = answer.split("```")[1]
        first, _, rest = block.partition("\n")
        return block if not first.isalnum() and first.strip() else rest
    return textwrap.dedent(answer.strip("\n"))


def score(doc: Mapping[str, Any], results: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Tell whether a program ran, and whether it gave the answer.

    Args:
        doc: The question.
        results: What `RunPrograms` gave for it.

    Returns:
        ``solved`` and ``ran``, each 0 or 1. A program ran if ``solution()`` returned something
        other than None.
    """
    ran = results[0]["status"] == "ran"
    solved = ran and is_same_answer(results[0]["value"], str(doc["answer"]))
    return {"solved": float(solved), "ran": float(ran)}


def _dataset(problems: Problems, **_: object) -> Any:  # noqa: ANN401
    from datasets import Dataset, DatasetDict

    return DatasetDict({"test": Dataset.from_list(problems.rows)})
