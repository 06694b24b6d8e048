"""Which scores stand for math and which for the rest."""

from pathlib import Path

import pytest

from mathneuro.errors import InputError
from mathneuro.report.cells import cells
from mathneuro.report.reading import Study, read_study
from mathneuro.report.roles import find_roles
from mathneuro.report.summary import summary
from tests.report.sweeps import Sweep, change

STRICT, FLEXIBLE = "gsm8k_cot exact_match,strict-match", "gsm8k_cot exact_match,flexible-extract"


def small(tmp_path: Path, tasks: tuple[str, ...], perplexities: tuple[str, ...]) -> Path:
    """Write a sweep of one setting with some scores."""
    sweep = Sweep(methods=("mathneuro",), sets=("race",), repeats=1, proportions=(0.01,),
                  tasks=tasks, perplexities=perplexities)  # fmt: skip
    return sweep.write(tmp_path / "sweep")


def roles(
    study: Study, math: list[str] | None = None, others: list[str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find which scores stand for math and which for the rest."""
    found = find_roles(study, math, others)
    return found.math, found.others


@pytest.mark.parametrize(
    ("tasks", "perplexities", "math", "others"),
    [
        ((STRICT, FLEXIBLE, "race acc", "race f1", "mmlu acc"), ("math", "race"),
         (STRICT,), ("race acc", "mmlu acc")),
        ((STRICT, FLEXIBLE), ("math", "race"), (STRICT,), ("perplexity race",)),
        ((), ("race", "math", "mmlu"), ("perplexity math",),
         ("perplexity race", "perplexity mmlu")),
        ((STRICT,), (), (STRICT,), ()),
    ],
)  # fmt: skip
def test_by_default_the_first_task_is_math(
    tmp_path: Path,
    tasks: tuple[str, ...],
    perplexities: tuple[str, ...],
    math: tuple[str, ...],
    others: tuple[str, ...],
) -> None:
    """Or the perplexity of the math set; the rest is what is left of the same kind."""
    study = read_study(small(tmp_path, tasks, perplexities))
    assert roles(study) == (math, others)


def test_names_of_tasks_labels_and_perplexities_are_understood(tmp_path: Path) -> None:
    """What is given comes before what the sweep says, each of the two by itself."""
    folder = small(tmp_path, (STRICT, FLEXIBLE, "race acc", "mmlu acc"), ("math", "race"))
    study = read_study(folder)
    assert roles(study, [FLEXIBLE]) == ((FLEXIBLE,), ("race acc", "mmlu acc"))
    assert roles(study, ["race"]) == (("race acc",), (STRICT, "mmlu acc"))
    assert roles(study, None, ["gsm8k_cot"]) == (("race acc",), (STRICT,))
    assert roles(study, ["perplexity math"]) == (("perplexity math",), ("perplexity race",))
    assert roles(study, ["race", "race acc"], []) == (("race acc",), ())
    change(folder / "study.json", grid__math=["mmlu"], grid__others=["race"])
    study = read_study(folder)
    assert roles(study) == (("mmlu acc",), ("race acc",))
    assert roles(study, ["gsm8k_cot"]) == ((STRICT,), ("race acc",))


def test_a_guess_is_one_and_no_perplexity_is_lost(tmp_path: Path) -> None:
    """Whatever stands for what, the perplexities of all held-out texts are shown."""
    folder = small(tmp_path, (STRICT, "race acc"), ("math", "race"))
    study = read_study(folder)
    both = ("perplexity math", "perplexity race")
    guessed = find_roles(study)
    assert (guessed.is_guessed, guessed.perplexities) == (True, both)
    told = find_roles(study, ["race"])
    assert (told.is_guessed, told.perplexities) == (False, both)
    told = find_roles(study, ["perplexity math"])
    assert (told.is_guessed, told.perplexities) == (False, ())
    page = summary(study, cells(study), guessed, ())
    assert f"\n- `math` stands for: {STRICT}, as the first task; --math names another\n" in page
    assert f" | math: {STRICT} | change of math | others: race acc | change of others |" in page
    assert " | change of perplexity math | change of perplexity race |" in page


@pytest.mark.parametrize(
    ("math", "others", "message"),
    [
        (["gsm9k"], None, rf"^math: got 'gsm9k', but no score.*: {STRICT}; race acc; perplexity m"),
        (None, ["perplexity"], r"^others: got 'perplexity', but no score has that label"),
        (["race"], ["race acc"], r"^others: 'race acc' stands for math too"),
        ([], None, r"^math: no score stands for it, but one must; give one of gsm8k_cot"),
        (None, ["race", "perplexity race"], r"^others: got .* no common mean; give one kind"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path, math: list[str] | None, others: list[str] | None, message: str
) -> None:
    """With the labels that there are."""
    study = read_study(small(tmp_path, (STRICT, "race acc"), ("math", "race")))
    with pytest.raises(InputError, match=message):
        find_roles(study, math, others)
