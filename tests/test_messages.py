"""What the config library says about a mistake, in one sentence."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import callbacks
from mathneuro.cli import CommandLine
from mathneuro.messages import HELP, shorten

SET = "{path: a.csv}"
GIVEN = ["--model.source=m", "--data.math.path=a.csv", f"--data.calibration={{c: {SET}}}"]
WITHOUT_SETS = GIVEN[:2]

Refusal = Callable[..., str]


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """Parse arguments that must be refused, and return the one line that is printed."""

    def refuse(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["main.py", *arguments])
        with pytest.raises(SystemExit) as caught:
            CommandLine(
                {"selection": callbacks.SelectParameters, "lm_eval": callbacks.LMEval},
                (),
                callbacks.SaveRunConfig,
                callbacks.TransientProgressBar,
            )
        assert caught.value.code == 2
        printed = capsys.readouterr().err
        assert printed.startswith("error: ")
        assert printed.count("\n") == 1
        return printed.removeprefix("error: ").rstrip()

    return refuse


@pytest.mark.parametrize(
    ("option", "value", "shown", "expected"),
    [
        ("data.batch_size", "x", "'x'", "a whole number or null"),
        ("data.held_out", "x", "'x'", "a whole number"),
        ("data.held_out", "null", "null", "a whole number"),
        ("data.num_samples", "1.5", "1.5", "a whole number or null"),
        ("data.replacement", "maybe", "'maybe'", "true or false"),
        ("selection.proportion", "x", "'x'", "a number"),
        ("data.math.columns", "qa", "'qa'", "a list, such as [qa]"),
        ("data.math.columns", "[[a]]", "['a']", "a text"),
        ("data.math.columns", "[1]", "1", "a text (write it in quotes)"),
        ("model.dtype", "int8", "'int8'", "one of auto, float32, bfloat16, float16"),
        ("lm_eval.tasks", "a", "'a'", "a list, such as [a] or null"),
        ("trainer.callbacks", "No", "'No'", "a list or a Callback or null"),
    ],
)
def test_a_value_of_the_wrong_type(
    refusal: Refusal, option: str, value: str, shown: str, expected: str
) -> None:
    """Which field, what it held, what is expected."""
    sentence = refusal("predict", *GIVEN, f"--{option}={value}")
    assert sentence == f"{option}: got {shown}, but it must be {expected}"


@pytest.mark.parametrize(
    ("field", "value", "shown", "expected"),
    [
        ("columns", "qa", "'qa'", "a list, such as [qa]"),
        ("chat_template", "2", "2", "true or false"),
        ("template", "[a]", "['a']", "a text or null"),
    ],
)
def test_a_value_of_the_wrong_type_in_a_calibration_set(
    refusal: Refusal, field: str, value: str, shown: str, expected: str
) -> None:
    """The library does not tell in which."""
    sentence = refusal("predict", *GIVEN, f"--data.calibration.c.{field}={value}")
    assert sentence == f"data.calibration.*.{field}: got {shown}, but it must be {expected}"


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--data.num_sampels", "did you mean data.num_samples?"),
        ("--dta.num_samples", "did you mean data.num_samples?"),
        ("--num_samples", "did you mean data.num_samples?"),
        ("--data.math.pth", "did you mean data.math.path?"),
        ("--zzz", HELP),
        ("extra", HELP),
    ],
)
def test_an_option_that_is_not_there(refusal: Refusal, option: str, hint: str) -> None:
    """With what was meant, if anything is close to it."""
    value = "=3" if option.startswith("--") else ""
    sentence = refusal("predict", *GIVEN, option + value)
    assert sentence == f"{option}: there is no such option; {hint}"


def test_an_option_that_a_calibration_set_has_not(refusal: Refusal) -> None:
    """The library does not tell in which."""
    sentence = refusal("predict", *GIVEN, "--data.calibration.c.pth=a")
    assert sentence == "data.calibration.*.pth: there is no such option; did you mean path?"


def test_a_section_is_never_what_was_meant(refusal: Refusal) -> None:
    """It is no option."""
    sentence = refusal("predict", *GIVEN, "--trainer.foo=1")
    assert sentence.startswith("--trainer.foo: there is no such option")
    assert "did you mean trainer?" not in sentence


def test_an_option_of_a_callback_is_not_laid_to_a_set(refusal: Refusal) -> None:
    """The library tells neither."""
    callback = "--trainer.callbacks+=LMEval"
    sentence = refusal("predict", *GIVEN, callback, "--trainer.callbacks.nolimit=5")
    assert sentence.startswith("nolimit: there is no such option")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("a.csv", "data.calibration: got 'a.csv', but it must be a mapping of names to sets"),
        ("[1]", "data.calibration: got [1], but it must be a mapping of names to sets"),
        ("null", "data.calibration: got null, but it must be a mapping of names to sets"),
        ("{c: a.csv}", "data.calibration: got 'a.csv' as a set, but each set must be a mapping"),
        ("{c: null}", "data.calibration: got {c: null} as a set, but each set must be a mapping"),
        ("{c: {columns: [a]}}", "data.calibration.*.path: not given, but needed"),
        ("{c: {path: a, colums: [a]}}", "data.calibration.*.colums: there is no such option; did"),
    ],
)
def test_calibration_sets_that_are_none(refusal: Refusal, value: str, sentence: str) -> None:
    """In place of a mapping from names to sets."""
    found = refusal("predict", *WITHOUT_SETS, f"--data.calibration={value}")
    assert found.startswith(sentence)


def test_a_file_in_place_of_the_math_set(refusal: Refusal, tmp_path: Path) -> None:
    """Whether it is there or not."""
    (tmp_path / "a.csv").write_text("qa\na\n")
    for path in ("a.csv", str(tmp_path / "a.csv")):
        sentence = refusal("predict", *GIVEN, f"--data.math={path}")
        assert sentence.startswith(f"data.math: got '{path[:60]}")
        assert sentence.endswith(f"but it must be a mapping; write --data.math.path={path}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["predict"],
            "model.source, data.math.path, data.calibration: not given, but needed; give",
        ),
        (["predict", *GIVEN[1:]], "model.source: not given, but needed; give a config that holds"),
        (
            ["predict", *GIVEN, "--data.num_samples"],
            "--data.num_samples: got nothing, but it needs",
        ),
        (["predict", "--config"], "--config: got nothing, but it needs a value"),
        (["predict", "--config="], "--config: the file is empty, but it must hold options"),
        (["predict", "--config=/"], "--config: / is no file; give a YAML file"),
        ([], "command: got nothing, but it must be one of operate, predict, validate, sweep,"),
        (["opperate"], "command: got 'opperate', but it must be one of 'operate', 'predict', 'v"),
    ],
)
def test_something_is_missing(refusal: Refusal, arguments: list[str], sentence: str) -> None:
    """With what to do about it."""
    assert refusal(*arguments).startswith(sentence)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("model: [\n", "--config: it is no valid YAML (while parsing a flow node did not find"),
        ("model:\n\tsource: a\n", "--config: it is no valid YAML (while scanning for the next"),
        ("hello\n", "--config: the file holds 'hello', but it must hold options as YAML"),
        ("- a\n", "--config: the file holds '- a', but it must hold options as YAML"),
        ("", "--config: the file is empty, but it must hold options as YAML"),
        (
            "modl:\n  source: a\n",
            "modl.source: there is no such option; did you mean model.source?",
        ),
        (
            "model:\n  sorce: a\n",
            "model.sorce: there is no such option; did you mean model.source?",
        ),
        ("folder: 1e2\n", "folder: got 100.0, but it must be a text (write it in quotes)"),
        (
            f"model:\n  source: a\ndata:\n  math: {SET}\n  calibration: {{c: a.csv}}\n",
            "data.calibration: got 'a.csv' as a set, but each set must be a mapping",
        ),
    ],
)
def test_a_config_that_is_wrong(
    refusal: Refusal, tmp_path: Path, config: str, sentence: str
) -> None:
    """In its syntax or in what it holds."""
    (tmp_path / "config.yaml").write_text(config)
    found = refusal("predict", f"--config={tmp_path / 'config.yaml'}")
    assert found.startswith(sentence)
    assert "unicode string" not in found


def test_a_config_that_is_not_there(refusal: Refusal) -> None:
    """With where it was looked for."""
    sentence = refusal("predict", "--config=nowhere.yaml")
    assert sentence == (
        f"--config: the file {Path.cwd() / 'nowhere.yaml'} does not exist; give an existing one"
    )


def test_a_config_before_the_command(refusal: Refusal, tmp_path: Path) -> None:
    """Its options are right, only their place is not."""
    (tmp_path / "config.yaml").write_text("model:\n  source: a\n")
    sentence = refusal(f"--config={tmp_path / 'config.yaml'}", "predict")
    assert sentence.startswith("model.source: got it before the command, but options come after")
    assert sentence.endswith("write `python main.py predict --config ...`")


def test_long_values_are_shown_by_their_beginning() -> None:
    """The sentence stays readable."""
    message = f"Parser key \"a\":\n  Expected a <class 'int'>. Got value: {'x' * 500}"
    assert shorten(message, []) == f"a: got '{'x' * 60}...', but it must be a whole number"


def test_a_message_of_an_unknown_kind_comes_back_on_one_line() -> None:
    """Nothing of it is lost."""
    assert shorten("Something\n  else:\n\n - happened", ["a"]) == "Something else: - happened"
