"""Which scores stand for math, and which for everything else."""

from collections.abc import Sequence
from dataclasses import dataclass

from mathneuro.data.spec import MATH
from mathneuro.errors import InputError
from mathneuro.report.reading import Study
from mathneuro.scores import is_perplexity

MATH_PERPLEXITY = f"perplexity {MATH}"


@dataclass(frozen=True)
class Roles:
    """Labels of scores by what they stand for.

    Attributes:
        math: For math, at least one.
        others: For everything else; may be empty.
        perplexities: Those of held-out texts that stand for neither.
        is_guessed: Whether the first task stands for math since nobody says what does.
    """

    math: tuple[str, ...]
    others: tuple[str, ...]
    perplexities: tuple[str, ...] = ()
    is_guessed: bool = False

    def of(self, label: str) -> str:
        """Return ``math``, ``other``, or nothing.

        Example:
            >>> roles = Roles(("a acc",), ("b acc",))
            >>> [roles.of(label) for label in ("a acc", "b acc", "c acc")]
            ['math', 'other', '']
        """
        return "math" if label in self.math else "other" if label in self.others else ""


def find_roles(
    study: Study, math: Sequence[str] | None = None, others: Sequence[str] | None = None
) -> Roles:
    """Find the scores for math and for the rest.

    What is given here comes first, then what the plan of the sweep says. Otherwise the first metric
    of the first task is math, and the first metric of every other task the rest; without other
    tasks, the perplexities of the other sets are the rest, without any task the perplexity of the
    set ``math`` is math.

    Args:
        study: The sweep.
        math: Labels of scores, or names of tasks for their first metric. None: see above.
        others: The same.

    Raises:
        InputError: If there is no such score, one stands for both, or perplexities and other scores
            would be averaged.
    """
    tasks, labels = all_tasks(study), all_labels(study)
    math = study.math if math is None else math
    others = study.others if others is None else others
    rest = () if others is None else _resolve("others", others, tasks, labels)
    main = _resolve("math", _default_math(tasks, labels, rest) if math is None else math,
                    tasks, labels)  # fmt: skip
    if others is None:
        rest = _default_others(tasks, labels, main)
    if not main:
        raise InputError(
            f"math: no score stands for it, but one must; give one of {', '.join(labels)}"
        )
    both = [label for label in main if label in rest]
    if both:
        raise InputError(
            f"others: {both[0]!r} stands for math too, but a score can stand for one of them; name "
            "it once"
        )
    for name, chosen in (("math", main), ("others", rest)):
        if len({is_perplexity(label) for label in chosen}) > 1:
            raise InputError(
                f"{name}: got {', '.join(chosen)}, but perplexities and other scores have no "
                "common mean; give one kind"
            )
    held_out = tuple(label for label in labels if is_perplexity(label))
    return Roles(
        math=main,
        others=rest,
        perplexities=tuple(label for label in held_out if label not in (*main, *rest)),
        is_guessed=math is None and bool(tasks) and not is_perplexity(main[0]),
    )


def all_labels(study: Study) -> list[str]:
    """List the labels of all scores of a study, tasks first, in the order of their first use."""
    found = dict.fromkeys(
        label for result in study.results.values() for label in result.scores.rows()
    )
    return sorted(found, key=is_perplexity)


def all_tasks(study: Study) -> dict[str, str]:
    """Return the label of the first metric of every task, by the task's name."""
    firsts: dict[str, str] = {}
    for result in study.results.values():
        for task, metrics in result.scores.tasks.items():
            for metric in metrics:
                firsts.setdefault(task, f"{task} {metric}")
    return firsts


def _resolve(
    name: str, entries: Sequence[str], tasks: dict[str, str], labels: list[str]
) -> tuple[str, ...]:
    """Turn labels and names of tasks into labels."""
    for entry in entries:
        if entry not in tasks and entry not in labels:
            raise InputError(
                f"{name}: got {entry!r}, but no score has that label; give names of tasks or some "
                f"of these: {'; '.join(labels)}"
            )
    return tuple(dict.fromkeys(tasks.get(entry, entry) for entry in entries))


def _default_math(
    tasks: dict[str, str], labels: list[str], taken: tuple[str, ...]
) -> tuple[str, ...]:
    """Choose the first task that does not stand for the rest, or the perplexity of math."""
    free = [task for task, label in tasks.items() if label not in taken]
    if free:
        return (free[0],)
    return tuple(label for label in (MATH_PERPLEXITY,) if label in labels)


def _default_others(
    tasks: dict[str, str], labels: list[str], main: tuple[str, ...]
) -> tuple[str, ...]:
    """Choose every task that does not stand for math, or the perplexities of the other sets."""
    names = {task for task in tasks if any(label.startswith(f"{task} ") for label in main)}
    rest = tuple(label for task, label in tasks.items() if task not in names)
    if rest and not all(map(is_perplexity, main)):
        return rest
    mine = (*main, MATH_PERPLEXITY)
    return tuple(label for label in labels if is_perplexity(label) and label not in mine)
