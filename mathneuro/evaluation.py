"""EleutherAI's lm-eval on a model that is in memory, left as it was found."""

import difflib
import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch import seed_everything
from lightning.pytorch.utilities.seed import isolate_rng

from mathneuro.errors import InputError
from mathneuro.hub import offline_if_unreachable
from mathneuro.outcomes import question_outcomes
from mathneuro.programs.spec import ProgramSet
from mathneuro.sandbox import check_sandbox
from mathneuro.scores import Score, finite

if TYPE_CHECKING:
    from mathneuro.live_model import LiveModel


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
        if self.seed < 0:
            raise InputError(f"lm_eval.seed: got {self.seed}, but it may not be below 0")


def load_tasks(settings: EvaluationSettings) -> dict[str, Any]:
    """Build tasks once, data included, so that nothing can be missing later.

    The random numbers that this draws are given back.

    Args:
        settings: Which tasks, and how.

    Returns:
        What ``lm_eval.evaluator.evaluate`` takes as ``task_dict``.

    Raises:
        InputError: If a folder or a task does not exist, or the data of a task cannot be read.
    """
    from lm_eval.tasks import TaskManager

    for folder in settings.task_folders:
        if not folder.is_dir():
            raise InputError(
                f"lm_eval.task_folders: the folder {folder} does not exist (looked from "
                f"{Path.cwd()}); give a folder with lm-eval task YAML files"
            )
    programs = _load_programs(settings)
    if not settings.tasks:
        return {"tasks": programs, "groups": {}}
    folders = [str(folder) for folder in settings.task_folders]
    manager = TaskManager(include_path=folders, include_defaults=False)
    if not set(settings.tasks) <= set(manager.all_tasks):
        # Looking through the thousands of tasks that lm-eval brings takes a while.
        manager = TaskManager(include_path=folders, include_defaults=True)
    for name in settings.tasks:
        if name not in manager.all_tasks:
            close = difflib.get_close_matches(name, manager.all_tasks, n=3)
            raise InputError(
                f"lm_eval.tasks: there is no task {name!r}"
                + (f"; did you mean {' or '.join(close)}?" if close else "")
                + " (`lm-eval ls tasks` lists those of lm-eval, task_folders adds your own)"
            )
    with isolate_rng(), quiet(), offline_if_unreachable():
        try:
            loaded = manager.load(list(settings.tasks))
        except ImportError as error:
            raise InputError(
                f"lm_eval.tasks: {', '.join(settings.tasks)} cannot be loaded, since a library is "
                f"missing ({' '.join(str(error).split()).rstrip('.')}); install it (competition "
                "math needs pip install 'lm-eval[math]'), or leave the task out"
            ) from error
        except Exception as error:
            # Loading a task runs code of that task and of data set loaders, with errors of many
            # libraries; each of them means that the task cannot be evaluated.
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(
                f"lm_eval.tasks: the data of {', '.join(settings.tasks)} cannot be loaded "
                f"({reason[0]}); check the tasks' files and the network, and name each task once"
            ) from error
    for task in loaded["tasks"].values():
        _set_fewshot(task, settings)
    _check_tasks(loaded["tasks"], programs)
    return {**loaded, "tasks": {**loaded["tasks"], **programs}}


def longest_answer(generation: dict[str, Any]) -> int:
    """Return how many tokens an answer has at most.

    Args:
        generation: The ``generation_kwargs`` of a task of lm-eval.
    """
    from lm_eval.models.utils import normalize_gen_kwargs

    return int(normalize_gen_kwargs(generation)["max_gen_toks"])


def check_context(tasks: dict[str, Any], context_length: int | None) -> None:
    """Refuse tasks whose answers alone may fill a model's context.

    Args:
        tasks: What `load_tasks` built.
        context_length: The longest text that the model was made for, in tokens. None: not known.

    Raises:
        InputError: If so.
    """
    for name, task in tasks["tasks"].items():
        most = longest_answer(task.get_config("generation_kwargs") or {})
        generates = task.OUTPUT_TYPE == "generate_until"
        if context_length is not None and generates and most >= context_length:
            raise InputError(
                f"lm_eval: {name} has answers of up to {most:,} tokens, but the model's context is "
                f"{context_length:,}, prompt included; use another model, or lower max_gen_toks "
                "in the task (max_new_tokens in lm_eval.programs)"
            )


def _check_tasks(tasks: dict[str, Any], programs: dict[str, Any]) -> None:
    """Refuse tasks that would run code unprotected, and two of one name."""
    for task in tasks.values():
        if getattr(task, "UNSAFE_CODE", False):
            raise InputError(
                f"lm_eval.tasks: {task.config.task} runs code that the model writes, unprotected, "
                "which MathNeuro does not do; leave it out (lm_eval.programs runs programs in a "
                "sandbox)"
            )
    twice = next((name for name in programs if name in tasks), None)
    if twice is not None:
        raise InputError(
            f"lm_eval.programs: got {twice!r}, which is one of lm_eval.tasks too; give it another "
            "name"
        )


def _load_programs(settings: EvaluationSettings) -> dict[str, Any]:
    """Build the tasks whose answers are programs, if the user wants these to be run."""
    if not settings.programs:
        return {}
    if not settings.confirm_run_unsafe_code:
        raise InputError(
            "lm_eval.confirm_run_unsafe_code: got false, but lm_eval.programs runs programs that "
            "the model writes (in a sandbox; the README says what that protects); set it to true "
            "if you want that"
        )
    from mathneuro.programs.task import program_task

    check_sandbox()
    with isolate_rng(), quiet(), offline_if_unreachable():
        return {name: program_task(name, spec) for name, spec in settings.programs.items()}


def _set_fewshot(task: Any, settings: EvaluationSettings) -> None:  # noqa: ANN401
    """Set the number of worked examples and their seed, as lm-eval's own command does."""
    own = task.get_config("num_fewshot")
    if settings.num_fewshot is not None and own != 0:
        task.set_config(key="num_fewshot", value=settings.num_fewshot)
    elif own is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=settings.seed)


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
        notes: Prompts that did not fit and answers that were cut.
        record: lm-eval's own record: configurations, versions, shots, numbers of questions.
        outcomes: What came of every question, by label; see `question_outcomes`.
    """

    scores: dict[str, dict[str, Score]]
    samples: dict[str, list[dict[str, Any]]]
    notes: list[str]
    record: dict[str, Any]
    outcomes: dict[str, dict[str, list[float]]]


def evaluate(live: "LiveModel", tasks: dict[str, Any], settings: EvaluationSettings) -> Evaluation:
    """Evaluate the model as it is now.

    Args:
        live: The model, as lm-eval sees it.
        tasks: What `load_tasks` built; it can be used again.
        settings: How to evaluate.

    Returns:
        Scores, per-sample results and notes. Random numbers are given back.
    """
    from lm_eval.evaluator import evaluate as run

    with ExitStack() as stack:
        for context in (isolate_rng(), quiet(), _compiled_once(), live.attached()):
            stack.enter_context(context)
        stack.enter_context(redirect_stdout(io.StringIO()))
        seed_everything(settings.seed, verbose=False)
        results = run(
            lm=live,
            task_dict=tasks,
            limit=settings.limit,
            log_samples=True,
            apply_chat_template=settings.chat_template,
            fewshot_as_multiturn=settings.fewshot_as_multiturn,
            system_instruction=settings.system_instruction,
            # Tasks that run programs outside of our sandbox are refused when they are loaded.
            confirm_run_unsafe_code=settings.confirm_run_unsafe_code,
        )
        notes = [*live.notes(), *_fewshot_notes(tasks, settings), *_program_notes(tasks)]
    groups = results.get("group_subtasks", {})
    inner = {name for names in groups.values() for name in names}
    measured = {
        name: _metrics(metrics) for name, metrics in results["results"].items() if name not in inner
    }
    scores = {name: metrics for name, metrics in measured.items() if metrics}
    samples = results.pop("samples")
    return Evaluation(
        scores=scores,
        samples=samples,
        notes=notes,
        record=dict(results),
        outcomes=question_outcomes(samples, scores, groups),
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


def _fewshot_notes(tasks: dict[str, Any], settings: EvaluationSettings) -> list[str]:
    """Tell of tasks whose own number of worked examples stands, as lm-eval has it."""
    shots = {name: task.get_config("num_fewshot") for name, task in tasks["tasks"].items()}
    return [
        f"{name} fixes the number of worked examples at {own}, so that num_fewshot "
        f"{settings.num_fewshot} was not used"
        for name, own in shots.items()
        if settings.num_fewshot not in (None, own)
    ]


def _program_notes(tasks: dict[str, Any]) -> list[str]:
    """Tell of questions that are not asked since their answer is no number."""
    counts = {
        name: (task.get_config("metadata") or {}).get("rows_left_out", 0)
        for name, task in tasks["tasks"].items()
    }
    return [
        f"{name} leaves out {count:,} rows that state no number as the answer"
        for name, count in counts.items()
        if count
    ]


def _metrics(metrics: dict[str, Any]) -> dict[str, Score]:
    """Pick the metrics of one task out of lm-eval's flat dictionary."""
    scores = {}
    for key, value in metrics.items():
        metric, _, name = key.partition(",")
        if not name or metric.endswith("_stderr") or not isinstance(value, int | float):
            continue
        error = metrics.get(f"{metric}_stderr,{name}")
        label = metric if name == "none" else key
        scores[label] = Score(
            float(value),
            finite(float(error)) if isinstance(error, int | float) else None,
            int(metrics["sample_len"]),
        )
    return scores
