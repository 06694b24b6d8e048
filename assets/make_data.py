"""Write the texts that users identify and test on: `python assets/make_data.py`."""

import json
from collections.abc import Iterator
from pathlib import Path

import texts
from jsonargparse import auto_cli

SKILLS = {"arithmetic": texts.arithmetic, "language": texts.language}
TRAIN_SEED = 2
TEST_SEED = 3


def distinct(items: Iterator[texts.Item], count: int) -> dict[str, texts.Item]:
    """Return the first `count` items whose texts differ, by their text."""
    found: dict[str, texts.Item] = {}
    while len(found) < count:
        item = next(items)
        found.setdefault(item.text(), item)
    return found


def write(path: Path, items: dict[str, texts.Item]) -> None:
    """Write one row a text: its prompt, its answer, and the whole."""
    rows = (
        {"question": item.prompt(), "answer": item.questions[0].answer, "qa": text}
        for text, item in items.items()
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_data(
    output: Path = Path(__file__).parent / "data", train_rows: int = 1750, test_rows: int = 300
) -> None:
    """Write the train and the test file of both skills.

    Args:
        output: the folder to write to.
        train_rows: how many texts a train file holds.
        test_rows: how many texts a test file holds.
    """
    output.mkdir(parents=True, exist_ok=True)
    for skill, source in SKILLS.items():
        train = distinct(source(TRAIN_SEED, testing=False), train_rows)
        test = distinct(source(TEST_SEED, testing=True), test_rows)
        write(output / f"{skill}_train.jsonl", train)
        write(output / f"{skill}_test.jsonl", test)


if __name__ == "__main__":
    auto_cli(make_data, as_positional=False)
