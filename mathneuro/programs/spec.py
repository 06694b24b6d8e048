"""Where the questions of a program-of-thought task come from."""

import re
from dataclasses import dataclass

from mathneuro.data.rows import load_rows
from mathneuro.data.spec import TextSet
from mathneuro.errors import InputError
from mathneuro.numerals import parse_number
from mathneuro.sandbox import Limits

MARK = "####"
"""What stands before the answer in solutions that end with it, as GSM8K's do."""


LEFT_OUT = "rows_left_out"
"""Where the metadata of a task tell how many rows state no number as the answer."""

NAME = re.compile(r"[\w-][\w.-]*")
"""What a task may be called: files have its name."""


@dataclass
class ProgramSet:
    """Questions whose answers are numbers: a file or a data set of the Hugging Face hub.

    SGSM's columns are the defaults; GSM8K's files work as they are.

    Attributes:
        path: A CSV, JSONL, JSON or Parquet file, or the id of a data set on the hub.
        name: Configuration of a hub data set.
        split: Split of a hub data set.
        revision: Revision of a hub data set.
        question: The column with the questions.
        answer: The column with the answers: a number, or a text that ends with ``####`` and one.
        subset: Only rows whose column ``subset`` holds this. None: all.
        max_new_tokens: Tokens of an answer; a longer program is cut, and mostly does not run.
        seconds: Time on a processor that each program may take.
        memory: Bytes of memory that each program may take.
    """

    path: str
    name: str | None = None
    split: str = "train"
    revision: str | None = None
    question: str = "question"
    answer: str = "answer"
    subset: str | None = None
    max_new_tokens: int = 300
    seconds: float = 5.0
    memory: int = 2**30

    def limits(self) -> Limits:
        """Return what each program may use.

        Raises:
            InputError: If that makes no sense.
        """
        return Limits(self.seconds, self.memory)


@dataclass(frozen=True)
class Problems:
    """Questions with numbers as answers.

    Attributes:
        rows: Each with its ``row`` in the data, ``question`` and ``answer``.
        left_out: How many rows state no number as the answer.
    """

    rows: list[dict[str, object]]
    left_out: int


def read_problems(spec: ProgramSet, where: str) -> Problems:
    """Read the questions.

    Args:
        spec: Where they come from.
        where: Where the user gave that, such as ``lm_eval.programs.sgsm``.

    Returns:
        Those whose answer is a number.

    Raises:
        InputError: If the data cannot be read, lack a column, or hold no such question.
    """
    spec.limits()
    name = where.removeprefix("lm_eval.programs.")
    if not NAME.fullmatch(name):
        raise InputError(
            f"lm_eval.programs: got {name!r} as a name, but files are called that, so it must be "
            "letters, digits, dots, - and _; give it another name"
        )
    if spec.max_new_tokens < 1:
        raise InputError(
            f"{where}.max_new_tokens: got {spec.max_new_tokens}, but it must be at least 1"
        )
    # With a template all columns are read, of which there can be more than two here.
    template = f"{{{{ {spec.question} }}}} {{{{ {spec.answer} }}}}"
    texts = TextSet(spec.path, spec.name, spec.split, spec.revision, template=template)
    texts.check(where)
    table = load_rows(texts, f"{where}.path")
    needed = {"question": spec.question, "answer": spec.answer}
    needed |= {"subset": "subset"} if spec.subset is not None else {}
    for field, column in needed.items():
        if column not in table.columns:
            raise InputError(
                f"{where}.{field}: {spec.path} has no column {column!r}; name one of "
                f"{', '.join(table.columns)}"
            )
    rows: list[dict[str, object]] = []
    left_out = 0
    for number, row in enumerate(table.rows):
        if spec.subset is not None and str(row.get("subset")) != spec.subset:
            continue
        question, answer = row.get(spec.question), row.get(spec.answer)
        stated = "" if answer is None else str(answer).rpartition(MARK)[2].strip()
        if not isinstance(question, str) or not question.strip() or parse_number(stated) is None:
            left_out += 1
            continue
        rows.append({"row": number, "question": question.strip(), "answer": stated})
    if not rows:
        raise InputError(
            f"{where}.path: {spec.path} holds no question whose answer is a number (of "
            f"{left_out:,} rows looked at); check the columns, and the subset"
        )
    return Problems(rows, left_out)
