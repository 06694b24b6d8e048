"""The tasks of lm-eval, loaded and checked before anything is evaluated."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities.seed import isolate_rng
from transformers import set_seed

from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings, quiet
from mathneuro.hub import offline_if_unreachable
from mathneuro.sandbox import check_sandbox
from mathneuro.task_state import TaskState

UNSAFE = (
    "lm_eval.tasks: {} runs code that the model writes, unprotected, which MathNeuro does not do; "
    "leave it out (lm_eval.programs runs programs in a sandbox)"
)
"""What is said of tasks that run code."""


@dataclass(frozen=True)
class LoadedTasks:
    """Tasks that are ready, and the state that each evaluation of them starts from.

    Attributes:
        tasks: lm-eval's tasks by name.
        groups: lm-eval's groups by name.
        state: What they draw from.
    """

    tasks: dict[str, Any]
    groups: dict[str, Any]
    state: TaskState


def load_tasks(settings: EvaluationSettings, to_run: bool = True) -> LoadedTasks:
    """Build tasks once, data included, so that nothing can be missing later.

    The random numbers that this draws are given back.

    Args:
        settings: Which tasks, and how.
        to_run: Whether they will be evaluated, programs of the model included.

    Returns:
        The tasks; they can be evaluated again and again, each time with the same prompts.

    Raises:
        InputError: If a folder or a task does not exist, or the data of a task cannot be read.
    """
    for folder in settings.task_folders:
        if not folder.is_dir():
            raise InputError(
                f"lm_eval.task_folders: the folder {folder} does not exist (looked from "
                f"{Path.cwd()}); give a folder with lm-eval task YAML files"
            )
    programs = _load_programs(settings, to_run)
    with isolate_rng():
        # Tasks that draw while they load draw what they draw in lm-eval's own command.
        set_seed(settings.seed)
        loaded = _load(settings) if settings.tasks else {"tasks": {}, "groups": {}}
        for task in loaded["tasks"].values():
            _set_fewshot(task, settings)
        _check_tasks(loaded["tasks"], programs)
        tasks = {**loaded["tasks"], **programs}
        return LoadedTasks(tasks, loaded["groups"], TaskState(tasks))


def _load(settings: EvaluationSettings) -> dict[str, Any]:
    """Build the tasks that lm-eval knows by name, and their groups."""
    for name in settings.tasks:
        _check_named_once(name, settings)
    manager = _manager(settings)
    for name in settings.tasks:
        _check_name(name, manager)
    with quiet(), offline_if_unreachable():
        try:
            loaded: dict[str, Any] = manager.load(list(settings.tasks))
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
    return loaded


def _manager(settings: EvaluationSettings) -> Any:  # noqa: ANN401
    """Return lm-eval's manager of the tasks in the folders, and of its own if these are asked."""
    from lm_eval.tasks import TaskManager

    folders = tuple(map(str, settings.task_folders))
    manager = TaskManager(include_path=list(folders), include_defaults=False)
    if set(settings.tasks) <= set(manager.all_tasks):
        return manager
    files = sorted(path for folder in settings.task_folders for path in folder.rglob("*.y*ml"))
    return _whole_manager(folders, tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=1)
def _whole_manager(folders: tuple[str, ...], _files: tuple[tuple[Path, int], ...]) -> Any:  # noqa: ANN401
    """Return lm-eval's manager of all tasks: it reads 14,000 files, which takes a while.

    Args:
        folders: Folders with tasks besides its own.
        _files: The files in them and when they changed, so that changed ones are read again.
    """
    from lm_eval.tasks import TaskManager

    return TaskManager(include_path=list(folders), include_defaults=True)


def _check_named_once(name: str, settings: EvaluationSettings) -> None:
    """Refuse a task that is named twice, or a program's."""
    if settings.tasks.count(name) > 1:
        raise InputError(f"lm_eval.tasks: got {name!r} twice; name it once")
    if name in settings.programs:
        raise InputError(
            f"lm_eval.tasks: got {name!r}, which is one of lm_eval.programs; these are evaluated "
            "without being named here, so leave it out"
        )


def _check_name(name: str, manager: Any) -> None:  # noqa: ANN401
    """Refuse a task that does not exist, or would run code unprotected."""
    if name not in manager.all_tasks:
        close = difflib.get_close_matches(name, manager.all_tasks, n=3)
        raise InputError(
            f"lm_eval.tasks: there is no task {name!r}"
            + (f"; did you mean {' or '.join(close)}?" if close else "")
            + " (`lm-eval ls tasks` lists those of lm-eval, task_folders adds your own)"
        )
    # Loading such a task fetches code before it can be looked at.
    if (manager.task_index[name].cfg or {}).get("unsafe_code"):
        raise InputError(UNSAFE.format(name))


def longest_answer(generation: dict[str, Any], default: int = 256) -> int:
    """Return how many tokens an answer has at most.

    Args:
        generation: The ``generation_kwargs`` of a task of lm-eval.
        default: The number where they do not say; lm-eval's own.
    """
    from lm_eval.models.utils import normalize_gen_kwargs

    return int(normalize_gen_kwargs(generation, default)["max_gen_toks"])


def check_answers(tasks: Mapping[str, Any], context_length: int | None) -> None:
    """Refuse tasks whose answers cannot be generated as they ask.

    Args:
        tasks: The tasks by name.
        context_length: The longest text that the model was made for, in tokens. None: no limit.

    Raises:
        InputError: If answers may fill the context by themselves or have no tokens, or are sampled
            at no temperature.
    """
    for name, task in tasks.items():
        if task.OUTPUT_TYPE != "generate_until":
            continue
        how = task.get_config("generation_kwargs") or {}
        most = longest_answer(how)
        if context_length is not None and most >= context_length:
            raise InputError(
                f"lm_eval: {name} has answers of up to {most:,} tokens, but the model's context is "
                f"{context_length:,}, prompt included; use another model, or lower max_gen_toks "
                "in the task (max_new_tokens in lm_eval.programs)"
            )
        if most < 1:
            raise InputError(
                f"lm_eval: {name} has answers of up to {most} tokens (max_gen_toks of its "
                "generation_kwargs), but they need at least 1; correct the task"
            )
        if how.get("do_sample") and not how.get("temperature"):
            raise InputError(
                f"lm_eval: {name} samples its answers (do_sample: true) without a temperature; "
                "give temperature in the task's generation_kwargs, or set do_sample to false"
            )


def _check_tasks(tasks: dict[str, Any], programs: dict[str, Any]) -> None:
    """Refuse tasks that would run code unprotected, and two of one name."""
    for task in tasks.values():
        if getattr(task, "UNSAFE_CODE", False):
            raise InputError(UNSAFE.format(task.config.task))
    twice = next((name for name in programs if name in tasks), None)
    if twice is not None:
        raise InputError(
            f"lm_eval.programs: got {twice!r}, which is one of lm_eval.tasks too; give it another "
            "name"
        )


def _load_programs(settings: EvaluationSettings, to_run: bool) -> dict[str, Any]:
    """Build the tasks whose answers are programs, if the user wants these to be run."""
    if not settings.programs:
        return {}
    if to_run and not settings.confirm_run_unsafe_code:
        raise InputError(
            "lm_eval.confirm_run_unsafe_code: got false, but lm_eval.programs runs programs that "
            "the model writes (in a sandbox; the README says what that protects); set it to true "
            "if you want that"
        )
    from mathneuro.programs.task import program_task

    if to_run:
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
