"""One sentence out of what the config library says about a mistake."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import fields

from mathneuro.commands import ALONE, NEED_MODEL
from mathneuro.data.spec import TextSet

TYPES = {
    "<class 'int'>": "a whole number",
    "<class 'mathneuro.whole_number.WholeNumber'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'str'>": "a text",
    "<class 'bool'>": "true or false",
    "<class 'NoneType'>": "null",
    "<class 'list'>": "a list",
    "<class 'dict'>": "a mapping",
    "<class 'pathlib.Path'>": "a path",
}

SETS = "data.calibration"

EXAMPLE_SETS = "{language: {path: texts.csv}}"

SET_FIELDS = {field.name for field in fields(TextSet)}

HELP = "`python main.py COMMAND --help` lists all options"

NUMBER = r"-?[\d.]+(e[+-]?\d+)?"

LONGEST_VALUE = 60
"""Characters of a value that a sentence shows."""


def shorten(message: str, options: Iterable[str]) -> str:
    r"""Turn a message of jsonargparse into one sentence.

    Args:
        message: The message.
        options: All options that there are, for a guess at what was meant.

    Returns:
        Which field, what it held, what was expected and what to do. A message of an unknown kind
        comes back on one line.

    Example:
        >>> shorten('Parser key "a.n":\n  Expected a <class \'int\'>. Got value: x', [])
        "a.n: got 'x', but it must be a whole number"
        >>> shorten("unrecognized arguments: --model.sorce x", ["model.source"])
        '--model.sorce: there is no such option; did you mean model.source?'
    """
    line = re.sub(r"\s+", " ", message).strip()
    known = tuple(options)
    for pattern, sentence in _SENTENCES:
        found = re.search(pattern, line)
        if found:
            return sentence(found, known)
    return line


def _unknown(found: re.Match[str], options: tuple[str, ...]) -> str:
    given = found["name"]
    # A section, such as `trainer` for `trainer.foo`, is no option that can have been meant.
    others = [option for option in options if not given.strip("-").startswith(f"{option}.")]
    name = given.strip("-")
    same = [option for option in others if option.rpartition(".")[2] == name]
    close = same or difflib.get_close_matches(name, others, n=1, cutoff=0.6)
    if not close:
        last = name.rpartition(".")[2]
        close = [option for option in others if option.rpartition(".")[2] == last]
    hint = f"did you mean {close[0]}?" if close else HELP
    return f"{given}: there is no such option; {hint}"


def _unknown_inside(found: re.Match[str], _options: tuple[str, ...]) -> str:
    """Name an option inside of a section; the message does not tell which."""
    close = difflib.get_close_matches(found["name"], sorted(SET_FIELDS), n=1, cutoff=0.6)
    if close:
        return f"{SETS}.*.{found['name']}: there is no such option; did you mean {close[0]}?"
    return f"{found['name']}: there is no such option; {HELP}"


def _before_command(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return (
        f"{found['name']}: got it before the command, but options come after it; write `python "
        f"main.py {found['command']} --config ...`"
    )


def _wrong_type(found: re.Match[str], _options: tuple[str, ...]) -> str:
    name, value = _place(found["name"]), found["value"]
    kinds = [_type(kind, value) for kind in re.split(r", (?![^\[]*\])", found["types"])]
    if name == SETS:
        kinds = [f"a mapping of names to sets, such as {EXAMPLE_SETS}"]
    return f"{name}: got {_shown(value)}, but it must be {' or '.join(dict.fromkeys(kinds))}"


def _no_set(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return (
        f"{SETS}: got {_shown(found['value'])} as a set, but each set must be a mapping that has a "
        f"path, such as {EXAMPLE_SETS}"
    )


def _no_section(found: re.Match[str], _options: tuple[str, ...]) -> str:
    name, value = found["name"], found["value"]
    example = f"--{name}.path={value}" if name == "data.math" else f"--{name}.OPTION=VALUE"
    return f"{name}: got {_shown(value)}, but it must be a mapping; write {example}"


def _missing(found: re.Match[str], _options: tuple[str, ...]) -> str:
    command = rf"^({'|'.join((*NEED_MODEL, *ALONE))})\."
    names = [re.sub(command, "", name) for name in found["names"].split(", ")]
    if "." not in names[0]:
        given = ", ".join(map(_place, names))
        return f"{given}: not given, but needed; give it in the config, or as --{names[0]} VALUE"
    return (
        f"{', '.join(names)}: not given, but needed; give a config that holds it (--config "
        f"configs/quickstart.yaml) or set it on the command line (--{names[0]} ...)"
    )


def _no_value(found: re.Match[str], _options: tuple[str, ...]) -> str:
    name = found["name"].rpartition("/")[2]
    return f"{name}: got nothing, but it needs a value; write {name}=VALUE"


def _command(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"command: got {found['value']}, but it must be one of {found['choices']}"


def _no_command(found: re.Match[str], _options: tuple[str, ...]) -> str:
    choices = found["choices"].replace(",", ", ")
    return (
        f"command: got nothing, but it must be one of {choices}; write `python main.py operate "
        "--config configs/quickstart.yaml`"
    )


def _no_file(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"--{found['name']}: the file {found['value']} does not exist; give an existing one"


def _folder(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"--{found['name']}: {found['value']} is no file; give a YAML file"


def _no_options(found: re.Match[str], _options: tuple[str, ...]) -> str:
    held = f"holds {_shown(found['value'])}" if found["value"] else "is empty"
    return f"--config: the file {held}, but it must hold options as YAML, see configs/*.yaml"


def _yaml(found: re.Match[str], _options: tuple[str, ...]) -> str:
    reason = found["reason"].replace('in "<unicode string>", ', "at ")
    return f"--config: it is no valid YAML ({reason}); check its indentation"


def _place(name: str) -> str:
    """Return where a field is that the message names without its place: in a set of texts."""
    return f"{SETS}.*.{name}" if name in SET_FIELDS else name


def _shown(value: str) -> str:
    """Write a value as YAML does: only a text in quotes."""
    if value in ("None", "True", "False"):
        return value.replace("None", "null").lower()
    short = value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}..."
    return short if re.match(rf"[\[{{]|{NUMBER}$", value) else repr(short)


def _type(kind: str, value: str) -> str:
    """Name a Python type as users call it."""
    literal = re.fullmatch(r"typing\.Literal\[(.*)\]", kind)
    if literal:
        return "one of " + literal[1].replace("'", "")
    if re.match(r"<class 'list'>|list\[|collections\.abc\.Iterable", kind):
        is_plain = re.fullmatch(r"[\w./-]+", value) and "Callback" not in kind
        return f"a list, such as [{value}]" if is_plain and value != "None" else "a list"
    if kind == "<class 'str'>" and re.fullmatch(NUMBER, value):
        return "a text (write it in quotes)"
    of_class = re.fullmatch(r"<class '[\w.]+\.([A-Z]\w*)'>", kind)
    return TYPES.get(kind, f"a {of_class[1]}" if of_class else kind)


_SENTENCES: list[tuple[str, Callable[[re.Match[str], tuple[str, ...]], str]]] = [
    (r"unrecognized arguments: (?P<name>[^\s=]+)", _unknown),
    (r"does not accept option '(?P<name>[^']+)'", _unknown),
    (
        r"Option '(?P<name>[^']+)' is not accepted before subcommand '(?P<command>\w+)'",
        _before_command,
    ),
    (r"Option '(?P<name>[^']+)' is not accepted", _unknown_inside),
    (
        r'Parser key "data\.calibration": (- Expected a path but (?P<value>.*) either not '
        r"accessible or invalid - )?(Expected a dot import path|Not a valid subclass of TextSet)",
        _no_set,
    ),
    (
        r'Parser key "data\.calibration": .*Problem with given class_path \'(?P<value>[^\']*)\'',
        _no_set,
    ),
    (
        r'Parser key "(?P<name>[^"]+)": .*Subtypes: \[(?P<types>.*)\] Errors: .*'
        r"Given value: (?P<value>.*)",
        _wrong_type,
    ),
    (
        r'Parser key "(?P<name>[^"]+)": (- Expected a path but .* - |Not of type \w+: )?'
        r"Expected a (?P<types>.*)\. Got value: (?P<value>.*)",
        _wrong_type,
    ),
    (r'Parser key "(?P<name>[^"]+)": Unable to load config \'(?P<value>[^\']*)\'', _no_section),
    (r"arguments? (are|is) required: (?P<names>.*)", _missing),
    (r"argument (?P<name>\S+): expected one argument", _no_value),
    (r"subcommand: invalid choice: (?P<value>.*) \(choose from (?P<choices>.*)\)", _command),
    (r'"subcommand" to be one of {(?P<choices>.*)}', _no_command),
    (r'Parser key "(?P<name>config)": File does not exist: \'?(?P<value>[^\']*)\'?', _no_file),
    (r'Parser key "(?P<name>config)": Path is not a file: \'?(?P<value>[^\']*)\'?', _folder),
    (r"Unexpected config:\s*(?P<value>.*)", _no_options),
    (r"Problems parsing config: (?P<reason>.*)", _yaml),
]
