"""EleutherAI's lm-eval on a model that is in memory, left as it was found."""

import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mathneuro.addresses import without_addresses
from mathneuro.errors import InputError
from mathneuro.outcomes import question_outcomes
from mathneuro.programs.notes import program_notes
from mathneuro.programs.spec import ProgramSet
from mathneuro.prompts import prompts_hash
from mathneuro.scores import Score, finite, real
from mathneuro.void import void_scores

if TYPE_CHECKING:
    from mathneuro.live_model import LiveModel
    from mathneuro.tasks import LoadedTasks


@dataclass(frozen=True)
class EvaluationSettings:
    """How tasks are evaluated; before and after an edit they are the same.

    Attributes:
        tasks: Names of lm-eval tasks, groups or tags.
        task_folders: Folders with task YAML files of your own.
        limit: First so many questions of each task. None: all.
        num_fewshot: Worked examples in each prompt. None: what the task says.
        batch_size: Requests a forward pass, or ``auto``.
        seed: Seed of everything that an evaluation draws, few-shot examples included.
        chat_template: Whether the tokenizer's chat template is applied to prompts.
        chat_template_args: What the chat template is given besides, such as ``enable_thinking``.
        think_end_token: What ends a model's thoughts; answers begin after its last occurrence.
            A text, or the number of a token. None: all of an answer counts.
        fewshot_as_multiturn: Whether few-shot examples become turns of the conversation.
        system_instruction: System message of the chat template.
        programs: Program-of-thought tasks by name: where the questions come from.
        confirm_run_unsafe_code: Whether programs that the model writes are run, in the sandbox.
    """

    tasks: tuple[str, ...]
    task_folders: tuple[Path, ...] = ()
    limit: int | None = None
    num_fewshot: int | None = None
    batch_size: int | str = 1
    seed: int = 1234
    chat_template: bool = False
    chat_template_args: Mapping[str, Any] = field(default_factory=dict)
    think_end_token: str | int | None = None
    fewshot_as_multiturn: bool = False
    system_instruction: str | None = None
    programs: Mapping[str, ProgramSet] = field(default_factory=dict)
    confirm_run_unsafe_code: bool = False

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        numbers = {"limit": self.limit, "batch_size": self.batch_size}
        for label, number in numbers.items():
            if isinstance(number, int) and number < 1:
                raise InputError(f"lm_eval.{label}: got {number}, but it must be at least 1")
        if isinstance(self.batch_size, str) and self.batch_size != "auto":
            raise InputError(
                f"lm_eval.batch_size: got {self.batch_size!r}, but it must be a number or auto"
            )
        if self.num_fewshot is not None and self.num_fewshot < 0:
            raise InputError(
                f"lm_eval.num_fewshot: got {self.num_fewshot}, but it may not be below 0"
            )
        if self.chat_template_args and not self.chat_template:
            raise InputError(
                f"lm_eval.chat_template_args: got {dict(self.chat_template_args)}, but "
                "lm_eval.chat_template is false, so that nothing takes them; set it to true, or "
                "leave them out"
            )
        turns = {
            "fewshot_as_multiturn": self.fewshot_as_multiturn,
            "system_instruction": self.system_instruction,
        }
        for label, value in turns.items():
            if value and not self.chat_template:
                raise InputError(
                    f"lm_eval.{label}: got {value!r}, but lm_eval.chat_template is false, so that "
                    "there are no turns of a conversation; set it to true, or leave this out"
                )
        if not 0 <= self.seed < 2**32:
            raise InputError(f"lm_eval.seed: got {self.seed}, but it must be from 0 to 2**32 - 1")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep lm-eval's reports of its progress off the terminal; warnings stay."""
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class Evaluation:
    """What lm-eval measured.

    Attributes:
        scores: By task or group, and by metric and filter (``exact_match,strict-match``).
        samples: By task, one record a question and filter.
        notes: Prompts that did not fit, answers that were cut, and scores that are void.
        record: lm-eval's own record: configurations, versions, shots, numbers of questions.
        outcomes: What came of every question, by label; see `question_outcomes`.
        prompts: By task, a hash of all that it asked; see `prompts_hash`.
    """

    scores: dict[str, dict[str, Score]]
    samples: dict[str, list[dict[str, Any]]]
    notes: list[str]
    record: dict[str, Any]
    outcomes: dict[str, dict[str, list[float]]]
    prompts: dict[str, str]


def evaluate(live: "LiveModel", loaded: "LoadedTasks", settings: EvaluationSettings) -> Evaluation:
    """Evaluate the model as it is now.

    Args:
        live: The model, as lm-eval sees it.
        loaded: What `mathneuro.tasks.load_tasks` built; every evaluation of it asks the same.
        settings: How to evaluate.

    Returns:
        Scores, per-sample results and notes. Random numbers are given back.
    """
    from lm_eval.evaluator import evaluate as run

    from mathneuro.programs.task import running_in

    with ExitStack() as stack:
        contexts = quiet(), _compiled_once(), live.attached(), running_in(live.ranks)
        for context in contexts:
            stack.enter_context(context)
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.enter_context(loaded.state.restored())
        results = run(
            lm=live,
            task_dict={"tasks": loaded.tasks, "groups": loaded.groups},
            limit=settings.limit,
            log_samples=True,
            apply_chat_template=settings.chat_template,
            fewshot_as_multiturn=settings.fewshot_as_multiturn,
            system_instruction=settings.system_instruction,
            # Tasks that run programs outside of our sandbox are refused when they are loaded.
            confirm_run_unsafe_code=settings.confirm_run_unsafe_code,
        )
        notes = [*live.notes(), *fewshot_notes(loaded.tasks, settings)]
    samples = results.pop("samples")
    groups = results.get("group_subtasks", {})
    notes += void_scores(results["results"], samples, groups)
    inner = {name for names in groups.values() for name in names}
    measured = {
        name: _metrics(metrics) for name, metrics in results["results"].items() if name not in inner
    }
    scores = {name: metrics for name, metrics in measured.items() if metrics}
    notes += dropped_notes(results["results"])
    for name, spec in settings.programs.items():
        notes += program_notes(name, spec, loaded.tasks[name], samples[name])
    return Evaluation(
        scores=scores,
        samples=samples,
        notes=notes,
        record=without_addresses(dict(results)),
        outcomes=question_outcomes(samples, scores, groups),
        prompts={name: prompts_hash(task.instances) for name, task in loaded.tasks.items()},
    )


@contextmanager
def _compiled_once() -> Iterator[None]:
    """Compile each template of a task once, where lm-eval compiles it anew for every question."""
    from lm_eval.utils import env

    env.from_string = cache(type(env).from_string.__get__(env))
    try:
        yield
    finally:
        del env.from_string


def fewshot_notes(tasks: Mapping[str, Any], settings: EvaluationSettings) -> list[str]:
    """Tell of tasks whose own number of worked examples stands, as lm-eval has it."""
    shots = {name: task.get_config("num_fewshot") for name, task in tasks.items()}
    return [
        f"{name} fixes the number of worked examples at {own}, so that num_fewshot "
        f"{settings.num_fewshot} was not used"
        for name, own in shots.items()
        if settings.num_fewshot not in (None, own)
    ]


def _metrics(metrics: Mapping[str, Any]) -> dict[str, Score]:
    """Pick the metrics of one task out of lm-eval's flat dictionary."""
    scores = {}
    for key, value in metrics.items():
        metric, _, name = key.partition(",")
        number = real(value)
        if not name or metric.endswith("_stderr") or number is None:
            continue
        error = real(metrics.get(f"{metric}_stderr,{name}"))
        label = metric if name == "none" else key
        scores[label] = Score(
            number, None if error is None else finite(error), int(metrics["sample_len"])
        )
    return scores


def dropped_notes(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Name the metrics that are no numbers, which no table can hold.

    Args:
        results: lm-eval's scores by task or group.

    Example:
        >>> dropped_notes({"sums": {"alias": "sums", "acc,none": 0.5, "parts,none": [1, 2]}})
        ['parts of sums is a list and no number, so that it is left out']
    """
    return [
        f"{key.partition(',')[0]} of {task} is a {type(value).__name__} and no number, so that it "
        "is left out"
        for task, metrics in results.items()
        for key, value in metrics.items()
        if "," in key and "_stderr," not in key and real(value) is None and value != ""
    ]
