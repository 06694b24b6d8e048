"""Where the texts of a set come from."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mathneuro.errors import InputError

MATH = "math"
"""Name of the math set among all sets."""

FILE_KINDS = (".csv", ".jsonl", ".json", ".parquet")


@dataclass
class TextSet:
    """One set of texts: a file or a data set of the Hugging Face hub.

    Attributes:
        path: A CSV, JSONL, JSON or Parquet file, or the id of a data set on the hub, or a folder
            that holds a copy of one.
        name: Configuration of a hub data set, such as ``main``.
        split: Split of a hub data set.
        revision: Revision of a hub data set.
        columns: One column that holds the whole text, or two: question and solution, joined as
            ``Question: ...``, an empty line, ``Answer: ...``.
        template: A Jinja template over the columns that gives the text, instead of `columns`.
        chat_template: Whether the tokenizer's chat template is applied: to the text as the user's
            turn, or to question and solution as the user's and the assistant's turns.
        chat_template_args: What the chat template is given besides, such as ``enable_thinking``.
        held_out_path: Another file for the held-out texts, of the same columns.
        held_out_split: Another split for the held-out texts.
    """

    path: str
    name: str | None = None
    split: str = "train"
    revision: str | None = None
    columns: list[str] = field(default_factory=lambda: ["qa"])
    template: str | None = None
    chat_template: bool = False
    chat_template_args: dict[str, Any] = field(default_factory=dict)
    held_out_path: str | None = None
    held_out_split: str | None = None

    @property
    def has_own_held_out(self) -> bool:
        """Whether the held-out texts have a file or a split of their own."""
        return self.held_out_path is not None or self.held_out_split is not None

    @property
    def chat(self) -> dict[str, Any] | None:
        """What the chat template is given besides the turns. None: none is applied."""
        return self.chat_template_args if self.chat_template else None

    def held_out(self) -> "TextSet":
        """Return the set that the held-out texts are read from."""
        # Name, split and revision belong to the data set that they were given for.
        same = self.held_out_path is None
        return TextSet(
            path=self.held_out_path or self.path,
            name=self.name if same else None,
            split=self.held_out_split or (self.split if same else "train"),
            revision=self.revision if same else None,
            columns=self.columns,
            template=self.template,
            chat_template=self.chat_template,
            chat_template_args=self.chat_template_args,
        )

    def check(self, where: str) -> None:
        """Refuse what can be seen to be wrong without reading the texts.

        Args:
            where: Where the user gave the set, such as ``data.math``.

        Raises:
            InputError: If a file is missing, a file has fields that only the hub knows, or the
                columns make no sense.
        """
        for label in ("path", "split", "columns", "chat_template_args"):
            # A set within the calibration sets can get here with null for anything.
            if getattr(self, label) is None:
                raise InputError(
                    f"{where}.{label}: got null, but it must have a value; leave it out for the "
                    "default, or set it"
                )
        _check_path(self.path, f"{where}.path")
        if self.held_out_path is not None:
            _check_path(self.held_out_path, f"{where}.held_out_path")
        of_hub = {"name": self.name, "revision": self.revision}
        of_hub["split"] = None if self.split == "train" else self.split
        given = {label: value for label, value in of_hub.items() if value and is_file(self.path)}
        if self.held_out_split is not None and is_file(self.held_out_path or self.path):
            given["held_out_split"] = self.held_out_split
        for label, value in given.items():
            raise InputError(
                f"{where}.{label}: got {value!r}, but a file has none, only a data set of the hub; "
                "remove it (held_out_path names a file of held-out texts)"
            )
        if self.chat_template_args and not self.chat_template:
            raise InputError(
                f"{where}.chat_template_args: got {self.chat_template_args}, but chat_template is "
                "false, so that nothing takes them; set it to true, or leave them out"
            )
        if self.template is None and len(self.columns) not in (1, 2):
            raise InputError(
                f"{where}.columns: got {self.columns}, but it must name one column (the whole "
                "text) or two (question and solution); use a template for anything else"
            )


def is_file(path: str) -> bool:
    """Tell whether a path means a file rather than a data set of the hub or a folder of one."""
    given = Path(path)
    return not given.is_dir() and (given.suffix.lower() in FILE_KINDS or given.is_file())


def _check_path(path: str, label: str) -> None:
    """Refuse a file that is missing or of an unknown kind."""
    given = Path(path)
    # The id of a data set has at most one slash.
    is_local = is_file(path) or given.is_absolute() or path.startswith((".", "~"))
    if not path.strip() or (not given.exists() and (is_local or path.count("/") > 1)):
        raise InputError(
            f"{label}: the file {path or '(empty)'} does not exist (looked from {Path.cwd()}); "
            "give the path of a CSV, JSONL or Parquet file, or the id of a data set on the hub"
        )
    if given.is_file() and given.suffix.lower() not in FILE_KINDS:
        raise InputError(
            f"{label}: {path} is of no kind that can be read; give a file that ends in "
            f"{', '.join(FILE_KINDS)}"
        )
