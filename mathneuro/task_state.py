"""The state that the tasks of lm-eval draw from, so that every evaluation starts with the same."""

import copy
import functools
import random
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.utilities.seed import isolate_rng

LONGEST = 1000
"""A longer collection holds documents, not generators."""

LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
"""Where installed code lies."""


class TaskState:
    """What tasks change while they are evaluated, as it is now.

    lm-eval draws few-shot examples from generators that each evaluation leaves further on, so that
    the next one would ask other prompts.

    Args:
        tasks: The tasks by name, as they are when an evaluation begins. The global generators of
            Python, NumPy and torch are kept too.

    Example:
        >>> task = types.SimpleNamespace(sampler=types.SimpleNamespace(rnd=random.Random(1)))
        >>> state = TaskState({"sums": task})
        >>> def draw() -> tuple[int, int]:
        ...     with state.restored():
        ...         return task.sampler.rnd.randrange(100), random.randrange(100)
        >>> draw() == draw()
        True
    """

    def __init__(self, tasks: Mapping[str, Any]) -> None:
        reached = list(_reachable(tasks.values()))
        self._start_global = _global_generators()
        self._restore = [restore for each in reached if (restore := _generator(each))]
        self._restore += [
            _attributes(task.sampler) for task in tasks.values() if hasattr(task, "sampler")
        ]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Start from the kept state in this block, and put all generators back afterwards."""
        with isolate_rng():
            self._start_global()
            self._start_tasks()
            try:
                yield
            finally:
                self._start_tasks()

    def _start_tasks(self) -> None:
        for restore in self._restore:
            restore()


def _global_generators() -> Callable[[], None]:
    """Return what puts the global generators back to where they are now."""
    ours, numpys, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []

    def restore() -> None:
        random.setstate(ours)
        np.random.set_state(numpys)
        torch.set_rng_state(torchs)
        if devices:
            torch.cuda.set_rng_state_all(devices)

    return restore


def _generator(found: Any) -> Callable[[], object] | None:  # noqa: ANN401
    """Return what puts a generator back to where it is now. None: it is no generator."""
    if isinstance(found, random.Random):
        return functools.partial(found.setstate, found.getstate())
    if isinstance(found, np.random.RandomState):
        return functools.partial(found.set_state, found.get_state())
    if isinstance(found, torch.Generator):
        return functools.partial(found.set_state, found.get_state())
    if isinstance(found, np.random.Generator):
        state = copy.deepcopy(found.bit_generator.state)
        return functools.partial(setattr, found.bit_generator, "state", state)
    return None


def _attributes(found: Any) -> Callable[[], None]:  # noqa: ANN401
    """Return what puts an object's attributes back, containers with what they hold now."""
    kept = {name: _copied(value) for name, value in vars(found).items()}

    def restore() -> None:
        vars(found).clear()
        vars(found).update({name: _copied(value) for name, value in kept.items()})

    return restore


def _copied(value: Any) -> Any:  # noqa: ANN401
    return copy.copy(value) if isinstance(value, list | dict | set) else value


def _reachable(starts: Iterable[Any]) -> Iterator[Any]:
    """Yield all that tasks, their samplers, filters and functions hold; not their data."""
    seen: set[int] = set()
    waiting = list(starts)
    while waiting:
        found = waiting.pop()
        if id(found) not in seen and not isinstance(found, str | int | float | bytes | None):
            seen.add(id(found))
            yield found
            waiting += _parts(found)


def _parts(found: Any) -> list[Any]:  # noqa: ANN401
    """Return what an object holds that could draw."""
    if isinstance(found, types.ModuleType) or _is_data(found):
        return []
    if isinstance(found, list | tuple | set):
        return list(found) if len(found) <= LONGEST else []
    if isinstance(found, Mapping):
        return list(found.values()) if len(found) <= LONGEST else []
    if isinstance(found, functools.partial):
        return [found.func, *found.args, *found.keywords.values()]
    if isinstance(found, types.MethodType | staticmethod | classmethod):
        return [found.__func__, getattr(found, "__self__", None)]
    if isinstance(found, types.FunctionType):
        return _parts_of_function(found)
    held = list(getattr(found, "__dict__", {}).values())
    return held if isinstance(found, type) else [*held, type(found)]


def _parts_of_function(function: types.FunctionType) -> list[Any]:
    """Return a function's defaults, what it closes over, and what it names in its module.

    Modules that it names, such as `random`, draw from the global generators, which are kept anyway.
    """
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *cells]
    source = Path(function.__code__.co_filename)
    if any(source.is_relative_to(each) for each in LIBRARIES) and not _is_of_tasks(source):
        # Following what libraries name would lead through all of them.
        return values
    space = function.__globals__
    return [*values, *(space[name] for name in _names(function.__code__) if name in space)]


def _is_data(found: Any) -> bool:  # noqa: ANN401
    return str(type(found).__module__).startswith("datasets")


def _is_of_tasks(source: Path) -> bool:
    """Tell whether a file of lm-eval comes with one of its tasks."""
    return "lm_eval" in source.parts and "tasks" in source.parts


def _names(code: types.CodeType) -> set[str]:
    """Return the global names that code uses, those of its inner functions included."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
