"""The data module: what a run draws, tells and records."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mathneuro.data import TextSet
from mathneuro.data.module import TextDataModule
from mathneuro.data.reading import read_texts
from mathneuro.errors import InputError
from tests.data.tiny import (
    CHAT_TEMPLATE,
    END,
    PAD,
    SPECIAL,
    WORDS,
    batches,
    make_data,
    make_tokenizer,
    only,
    save_model_folder,
    set_up,
    words,
    write_csv,
)


def test_all_sets_have_a_loader_in_the_order_of_the_names(
    math_file: str, other_file: str, plain_folder: Path
) -> None:
    """Each for identification and for perplexity."""
    data = make_data(math_file, other_file)
    set_up(data, plain_folder, ["predict", "validate"])
    assert data.names == ["math", "other"]
    for loaders in (data.predict_dataloader(), data.val_dataloader()):
        names = [batch["names"] for loader in loaders for batch in batches(loader)]
        assert all("of data.math" in name for name in names[0])
        assert all("of data.calibration.other" in name for name in names[-1])


@pytest.mark.parametrize("batch_size", [1, 4, 7, 100])
def test_batches_hold_each_drawn_text_once(
    math_file: str, plain_folder: Path, batch_size: int
) -> None:
    """With its count; the counts add up to the number of samples."""
    data = make_data(math_file, batch_size=batch_size)
    set_up(data, plain_folder)
    found: Counter[str] = Counter()
    for batch in batches(data.predict_dataloader()[0]):
        (counts,) = batch["counts"]
        found.update(dict(zip(batch["names"], counts, strict=True)))
    draw = only(data.drawn["math"])
    expected = {
        f"row {text.row} of data.math": n for text, n in zip(draw.texts, draw.counts, strict=True)
    }
    assert found == expected
    assert sum(found.values()) == 40


def test_no_number_of_samples_means_every_text_once(math_file: str, plain_folder: Path) -> None:
    """Apart from those that are held out."""
    data = make_data(math_file, num_samples=None)
    set_up(data, plain_folder)
    assert len(only(data.drawn["math"]).rows) == 25
    assert set(only(data.drawn["math"]).counts) == {1}


def test_the_padding_side_of_the_tokenizer_does_not_matter(math_file: str, tmp_path: Path) -> None:
    """Nor whether it pads with the end token, or has no token to pad with."""
    found = []
    for index, (side, pad) in enumerate([("right", "</s>"), ("left", "</s>"), ("left", None)]):
        folder = save_model_folder(tmp_path / str(index), make_tokenizer(pad=pad, side=side))
        data = make_data(math_file, num_samples=None)
        set_up(data, folder)
        found.append(batches(data.predict_dataloader()[0]))
    for batch in (batch for each in found for batch in each):
        rows = zip(batch["input_ids"], batch["attention_mask"], strict=True)
        batch["input_ids"] = [
            [token for token, real in zip(*row, strict=True) if real] for row in rows
        ]
        assert all(row[-1] == END for row in batch["input_ids"])
    assert found[0] == found[1] == found[2]


def test_a_pad_token_that_the_model_does_not_know_is_not_used(
    math_file: str, tmp_path: Path
) -> None:
    """As one that was added to the tokenizer, but not to the embedding."""
    tokenizer = make_tokenizer(pad=None)
    tokenizer.add_special_tokens({"pad_token": "<added>"})
    size = len(SPECIAL) + len(WORDS)
    assert tokenizer.pad_token_id == size
    data = make_data(math_file)
    set_up(data, save_model_folder(tmp_path / "model", tokenizer))
    ids = [row for batch in batches(data.predict_dataloader()[0]) for row in batch["input_ids"]]
    assert max(token for row in ids for token in row) < size


def test_a_pad_token_that_the_model_knows_is_used(math_file: str, plain_folder: Path) -> None:
    """After the text."""
    data = make_data(math_file)
    set_up(data, plain_folder)
    ids = [row for batch in batches(data.predict_dataloader()[0]) for row in batch["input_ids"]]
    assert any(row[-2:] == [END, PAD] for row in ids)


def test_a_tokenizer_of_another_model_is_refused(math_file: str, tmp_path: Path) -> None:
    """Before the embedding fails on its tokens."""
    folder = save_model_folder(tmp_path / "model", make_tokenizer(), vocabulary=6)
    with pytest.raises(InputError, match=r"^model\.tokenizer: row .* but the model knows only 6 t"):
        set_up(make_data(math_file), folder)


def test_the_seed_decides_all_draws(math_file: str, other_file: str) -> None:
    """The same seed gives the same texts, another one gives others."""
    first, same, another = (make_data(math_file, other_file, seed=seed) for seed in (3, 3, 4))
    assert first.drawn == same.drawn
    for name in first.names:
        assert only(first.drawn[name]).rows != only(another.drawn[name]).rows
        assert first.drawn[name].held_out != another.drawn[name].held_out


def test_a_draw_does_not_depend_on_other_sets(
    math_file: str, other_file: str, tmp_path: Path
) -> None:
    """So that importance can be measured once and used with any partner."""
    alone, together = make_data(math_file), make_data(math_file, other_file)
    assert alone.drawn["math"] == together.drawn["math"]
    third = write_csv(tmp_path / "third.csv", [f"c {text}" for text in words(20)])
    more = TextDataModule(
        TextSet(third),
        {"first": TextSet(math_file), "other": TextSet(other_file)},
        num_samples=40,
        held_out=5,
    )
    assert more.drawn["other"] == together.drawn["other"]


def test_two_sets_of_one_file_draw_differently(math_file: str) -> None:
    """Each has random numbers of its own."""
    data = make_data(math_file, math_file)
    assert only(data.drawn["math"]).rows != only(data.drawn["other"]).rows


def test_the_files_are_read_once(tmp_path: Path, plain_folder: Path) -> None:
    """However often Lightning sets the data up."""
    path = Path(write_csv(tmp_path / "math.csv", words(30)))
    data = make_data(str(path))
    set_up(data, plain_folder)
    before = data.tokenized
    path.unlink()
    set_up(data, plain_folder, ["validate", "predict"])
    assert data.tokenized is before


def test_a_missing_chat_template_is_told_before_the_model_loads(
    math_file: str, plain_folder: Path
) -> None:
    """By the set that asks for it."""
    data = make_data(math_file, TextSet(math_file, chat_template=True))
    with pytest.raises(InputError, match=r"^data\.calibration\.other\.chat_template: got true"):
        set_up(data, plain_folder)


def test_nothing_to_tell_makes_no_note(math_file: str, plain_folder: Path) -> None:
    """Also where the model does not say how long a text may be."""
    data = make_data(math_file)
    set_up(data, plain_folder)
    assert data.notes(100) == data.notes(None) == []


def test_notes_tell_of_empty_cut_long_and_dated_texts(tmp_path: Path) -> None:
    """With their numbers, set by set."""
    tokenizer = make_tokenizer()
    tokenizer.chat_template = CHAT_TEMPLATE + "{% if false %}{{ strftime_now('%d') }}{% endif %}"
    folder = save_model_folder(tmp_path / "model", tokenizer)
    math = write_csv(tmp_path / "math.csv", ["", *words(8)])
    other = write_csv(tmp_path / "other.csv", ["a", " ", "", "b b"])
    data = make_data(
        math, TextSet(other, chat_template=True), num_samples=None, max_length=9, held_out=1
    )
    set_up(data, folder)
    assert data.notes(8) == [
        "math: 1 empty row skipped",
        "math: 1 text cut to 9 tokens",
        "math: 2 texts longer than the model's context of 8 tokens (row 7 of data.math first); "
        "set data.max_length to cut",
        "other: 2 empty rows skipped",
        "other: the chat template writes the date of the run into every text, so runs of other "
        "days differ",
    ]


def test_fingerprints_are_the_same_for_the_same_config(
    math_file: str, other_file: str, plain_folder: Path
) -> None:
    """And can be kept as JSON."""
    both = [make_data(math_file, other_file) for _ in range(2)]
    for data in both:
        set_up(data, plain_folder)
    first, second = (data.fingerprints() for data in both)
    assert first == second == json.loads(json.dumps(first))
    assert list(first) == ["math", "other"]


def test_fingerprints_tell_how_to_draw_the_same_texts_again(
    math_file: str, plain_folder: Path
) -> None:
    """Rows of a file give the texts; hashes show that they are the same."""
    data = make_data(math_file, replacement=True, seed=5)
    set_up(data, plain_folder)
    found = data.fingerprints()["math"]
    rows = read_texts(TextSet(found["path"], columns=found["columns"]), "again").texts
    drawn = list(dict.fromkeys(rows[row].text for row in found["rows"]))
    assert found["sha256"] == hashlib.sha256("\0".join(drawn).encode()).hexdigest()
    held_out = [rows[row].text for row in found["held_out_rows"]]
    assert found["held_out_sha256"] == hashlib.sha256("\0".join(held_out).encode()).hexdigest()

    spec = TextSet(**{name: found[name] for name in vars(TextSet(math_file))})
    again = TextDataModule(
        spec,
        {},
        num_samples=found["num_samples"],
        replacement=found["replacement"],
        seed=found["seed"],
        max_length=found["max_length"],
        held_out=found["held_out"],
    )
    set_up(again, plain_folder)
    assert again.fingerprints()["math"] == found


def test_fingerprints_count_texts_and_tokens(math_file: str, plain_folder: Path) -> None:
    """As often as they were drawn."""
    data = make_data(math_file)
    set_up(data, plain_folder)
    found = data.fingerprints()["math"]
    draw = only(data.drawn["math"])
    assert (found["texts"], found["distinct_texts"]) == (40, len(draw.texts))
    lengths = [len(text.text.split()) + 2 for text in draw.texts]
    assert found["tokens"] == sum(n * c for n, c in zip(lengths, draw.counts, strict=True))


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"max_length": 3}, {"tokens_sha256", "held_out_tokens_sha256"}),
        ({"seed": 1}, {"sha256", "held_out_sha256"}),
        ({"held_out": 6}, {"sha256", "held_out_sha256"}),
        ({"num_samples": 39}, {"rows"}),
    ],
)
def test_what_changes_a_result_changes_the_fingerprint(
    math_file: str, plain_folder: Path, change: dict[str, Any], changed: set[str]
) -> None:
    """And is itself in it."""
    before, after = make_data(math_file), make_data(math_file, None, **change)
    for data in (before, after):
        set_up(data, plain_folder)
    first, second = before.fingerprints()["math"], after.fingerprints()["math"]
    assert {name for name in first if first[name] != second[name]} >= {*change, *changed}


def test_another_tokenizer_changes_the_fingerprint(math_file: str, tmp_path: Path) -> None:
    """Of the tokens, not of the texts."""
    found = []
    for index, template in enumerate(["$A", "<s> $A"]):
        data = make_data(math_file)
        set_up(data, save_model_folder(tmp_path / str(index), make_tokenizer(template)))
        found.append(data.fingerprints()["math"])
    assert found[0]["sha256"] == found[1]["sha256"]
    assert found[0]["tokens_sha256"] != found[1]["tokens_sha256"]


def test_the_batch_size_does_not_change_the_fingerprint(math_file: str, plain_folder: Path) -> None:
    """It changes the speed, not the texts."""
    found = []
    for batch_size in (1, 8):
        data = make_data(math_file, batch_size=batch_size)
        set_up(data, plain_folder)
        found.append(data.fingerprints())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["math", "", " ", "a/b", 1, 913264.0])
def test_names_that_cannot_be_used_are_refused(math_file: str, name: str) -> None:
    """Also those that YAML read as numbers."""
    with pytest.raises(InputError, match=r"^data\.calibration: the name .* cannot be used; choose"):
        TextDataModule(TextSet(math_file), {name: TextSet(math_file)})


@pytest.mark.parametrize(
    ("label", "value"),
    [("num_samples", 0), ("batch_size", 0), ("max_length", 0), ("held_out", -1), ("seed", -1)],
)
def test_numbers_that_make_no_sense_are_refused(math_file: str, label: str, value: int) -> None:
    """Before anything is read."""
    with pytest.raises(InputError, match=rf"^data\.{label}: got {value}, but it m"):
        make_data(math_file, None, **{label: value})


def test_a_missing_file_is_told_before_anything_is_read(math_file: str) -> None:
    """By the set that it belongs to."""
    with pytest.raises(InputError, match=r"^data\.calibration\.other\.path: the file nowhere\.csv"):
        make_data(math_file, "nowhere.csv")


def test_there_can_be_many_calibration_sets_or_none(math_file: str, plain_folder: Path) -> None:
    """Each has a name."""
    sets = {name: TextSet(math_file) for name in ("race", "mmlu", "code")}
    for calibration in ({}, sets):
        data = TextDataModule(TextSet(math_file), calibration, num_samples=3, held_out=1)
        set_up(data, plain_folder)
        assert data.names == ["math", *calibration]
        assert len(data.predict_dataloader()) == len(data.names)
