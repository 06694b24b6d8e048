"""The data sets that people use with this method, and local copies of them as CSV files."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mathneuro.data.reading import template_maker
from mathneuro.data.rows import load_rows
from mathneuro.data.spec import TextSet, is_file
from mathneuro.errors import InputError
from mathneuro.files import write_text


@dataclass(frozen=True)
class Published:
    """A data set, and how its rows become those of a CSV file.

    Attributes:
        path: Its id on the hub.
        columns: A Jinja template over the data set's columns for each column of the CSV file:
            ``question`` and ``solution`` (and ``answer``), or ``qa``, the whole text.
        splits: The splits that are copied.
        names: Its configurations, which are put together.
    """

    path: str
    columns: Mapping[str, str]
    splits: tuple[str, ...] = ("train", "test")
    names: tuple[str | None, ...] = (None,)


KINDS_OF_MATH = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory",
    "prealgebra", "precalculus",
)  # fmt: skip
"""The configurations of MATH."""

LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
"""Those of MGSM."""

PUBLISHED: dict[str, Published] = {
    "gsm8k": Published(
        "openai/gsm8k",
        {"question": "{{ question }}", "solution": "{{ answer }}",
         "answer": "{{ answer.split('####')[-1] | trim }}"},
        names=("main",),
    ),
    "math": Published(
        "EleutherAI/hendrycks_math",
        {"question": "{{ problem }}", "solution": "{{ solution }}"},
        names=KINDS_OF_MATH,
    ),
    "sgsm": Published(
        "bryanchrist/SGSM",
        {name: f"{{{{ {name} }}}}" for name in ("question", "solution", "answer", "subset")},
        splits=("train",),
    ),
    **{
        f"mgsm_{language}": Published(
            "juletxara/mgsm",
            {"question": "{{ question }}", "solution": "{{ answer or answer_number }}",
             "answer": "{{ answer_number }}"},
            names=(language,),
        )
        for language in LANGUAGES
    },
    "race": Published(
        "ehovy/race",
        {"qa": "{{ article }}\n\nQuestion: {{ question }}\n\nAnswer: "
               "{{ options['ABCD'.index(answer)] }}"},
        names=("all",),
    ),
    "mmlu": Published(
        "cais/mmlu",
        {"qa": "Question: {{ question }}\n\nChoices: {{ choices }}\n\nAnswer: "
               "{{ choices[answer] }}"},
        splits=("validation", "test"),
        names=("all",),
    ),
    "codealpaca": Published(
        "sahil2801/CodeAlpaca-20k",
        {"question": "{{ instruction }}{% if input %}\n\n{{ input }}{% endif %}",
         "solution": "{{ output }}"},
        splits=("train",),
    ),
}  # fmt: skip
"""The data sets by the names that `prepare` knows."""


def prepare(name: str, output: Path, source: str | None = None) -> dict[Path, int]:
    """Copy a data set into CSV files, one a split.

    Args:
        name: One of `PUBLISHED`.
        output: The folder that the files go into, as ``NAME_SPLIT.csv``.
        source: Another copy: an id on the hub, a folder, or one file (which is ``NAME.csv``).

    Returns:
        How many rows each file has.

    Raises:
        InputError: If there is no such data set, it cannot be read, or a file is there already.
    """
    if name not in PUBLISHED:
        raise InputError(f"data: got {name!r}, but it must be one of {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    path = source or published.path
    targets = {split: output / f"{name}_{split}.csv" for split in published.splits}
    if is_file(path):
        targets = {"train": output / f"{name}.csv"}
    for target in targets.values():
        if target.exists():
            raise InputError(f"output: {target} is there already; remove it, or name another one")
    contents = {}
    for split, target in targets.items():
        names = (None,) if is_file(path) else _names(path, published.names)
        text = "".join(published.columns.values())
        sets = [TextSet(path, each, split, template=text) for each in names]
        contents[target] = [row for each in sets for row in _rows(each, published.columns)]
    for target, rows in contents.items():
        write_text(target, _csv(list(published.columns), rows))
    return {target: len(rows) for target, rows in contents.items()}


def _names(path: str, names: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return the configurations that are read; a folder of files mostly has but one, unnamed."""
    if not Path(path).is_dir():
        return names
    from datasets import get_dataset_config_names

    try:
        there = get_dataset_config_names(path)
    # Whatever a foreign folder can raise is told where its rows are read.
    except Exception:
        return names
    return names if set(names) & set(there) else (None,)


def _rows(spec: TextSet, columns: Mapping[str, str]) -> list[list[str]]:
    """Read one split of one configuration, as the cells of the CSV file."""
    where = "source"
    spec.check(where)
    table = load_rows(spec, where)
    makers = [template_maker(each, table.columns, where) for each in columns.values()]
    rows = []
    for index, row in enumerate(table.rows):
        cells = {column: row.get(column) for column in table.columns}
        rows.append([make(index, cells)[0][1] for make in makers])
    return rows


def _csv(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()
