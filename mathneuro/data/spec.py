"""Where the texts of a set come from."""

from dataclasses import dataclass, field
from pathlib import Path

from mathneuro.errors import InputError

FILE_KINDS = {".csv": "csv", ".jsonl": "json", ".json": "json", ".parquet": "parquet"}


@dataclass
class TextSet:
    """One set of texts: a file or a data set of the Hugging Face hub.

    Attributes:
        path: A CSV, JSONL, JSON or Parquet file, or the id of a data set on the hub.
        name: Configuration of a hub data set, such as ``main``.
        split: Split of a hub data set.
        revision: Revision of a hub data set.
        columns: One column that holds the whole text, or two: question and solution, joined as
            ``Question: ...``, an empty line, ``Answer: ...``.
        template: A Jinja template over the columns that gives the text, instead of `columns`.
        chat_template: Whether the tokenizer's chat template is applied: to the text as the user's
            turn, or to question and solution as the user's and the assistant's turns.
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
    held_out_path: str | None = None
    held_out_split: str | None = None

    @property
    def has_own_held_out(self) -> bool:
        """Whether the held-out texts have a file or a split of their own."""
        return self.held_out_path is not None or self.held_out_split is not None

    def held_out(self) -> "TextSet":
        """Return the set that the held-out texts are read from."""
        return TextSet(
            path=self.held_out_path or self.path,
            name=self.name,
            split=self.held_out_split or self.split,
            revision=self.revision,
            columns=self.columns,
            template=self.template,
            chat_template=self.chat_template,
        )

    def check(self, where: str) -> None:
        """Refuse what can be seen to be wrong without reading the texts.

        Args:
            where: Where the user gave the set, such as ``data.math``.

        Raises:
            InputError: If a file is missing or the columns make no sense.
        """
        for label, path in (("path", self.path), ("held_out_path", self.held_out_path)):
            if path is not None and is_file(path) and not Path(path).is_file():
                raise InputError(
                    f"{where}.{label}: the file {path} does not exist (looked from "
                    f"{Path.cwd()}); give the path of a CSV, JSONL or Parquet file, or a hub id"
                )
        if self.template is None and len(self.columns) not in (1, 2):
            raise InputError(
                f"{where}.columns: got {self.columns}, but it must name one column (the whole "
                "text) or two (question and solution); use a template for anything else"
            )


def is_file(path: str) -> bool:
    """Tell whether a path means a local file rather than a data set of the hub."""
    return Path(path).suffix.lower() in FILE_KINDS or Path(path).exists()
