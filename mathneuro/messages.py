"""One sentence out of what the config library says about a mistake."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import fields

from mathneuro.data.spec import TextSet

TYPES = {
    "<class 'int'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'str'>": "a text",
    "<class 'bool'>": "true or false",
    "<class 'NoneType'>": "null",
    "<class 'list'>": "a list",
    "<class 'dict'>": "a mapping",
    "<class 'pathlib.Path'>": "a path",
}

SET_FIELDS = {field.name for field in fields(TextSet)}

HELP = "`python main.py COMMAND --help` lists all options"


def shorten(message: str, options: Iterable[str]) -> str:
    r"""Turn a message of jsonargparse into one sentence.

    Args:
        message: The message.
        options: All options that there are, for a guess at what was meant.

    Returns:
        Which field, what it held, what was expected and what to do. A message of an unknown kind
        comes back on one line.

    Example:
        >>> shorten('Parser key "a.n":\n  Expected a <class 'int'>. Got value: x', [])
        "a.n: got 'x', but it must be a whole number"
        >>> shorten("unrecognized arguments: --model.sorce x", ["model.source"])
        '--model.sorce: there is no such option; did you mean model.source?'
    """
    line = re.sub(r"\s+", " ", message).strip()
    known = tuple(options)
    for pattern, sentence in _SENTENCES:
        found = re.search(pattern, line)
        if found:
            return _inside_sets(found) + sentence(found, known)
    return line


def _inside_sets(found: re.Match[str]) -> str:
    """Return where a field is that the message names without its place: in a set of texts."""
    name = found.groupdict().get("name")
    is_refused = found.re.pattern.startswith("Option")
    return "data.calibration.*." if is_refused or name in SET_FIELDS else ""


def _unknown(found: re.Match[str], options: tuple[str, ...]) -> str:
    given = found["name"]
    close = difflib.get_close_matches(given.strip("-"), options, n=1, cutoff=0.6) or [
        option for option in options if option.rpartition(".")[2] == given.rpartition(".")[2]
    ]
    hint = f"did you mean {close[0]}?" if close else HELP
    return f"{given}: there is no such option; {hint}"


def _union(found: re.Match[str], _options: tuple[str, ...]) -> str:
    kinds = [_type(kind) for kind in re.split(r", (?![^\[]*\])", found["types"])]
    return f"{found['name']}: got {found['value']!r}, but it must be {' or '.join(kinds)}"


def _wrong_type(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"{found['name']}: got {found['value']!r}, but it must be {_type(found['type'])}"


def _missing(found: re.Match[str], _options: tuple[str, ...]) -> str:
    names = [re.sub(r"^(operate|predict|validate)\.", "", n) for n in found["names"].split(", ")]
    return (
        f"{', '.join(names)}: not given, but needed; give a config that holds it (--config "
        f"configs/quickstart.yaml) or set it on the command line (--{names[0]} ...)"
    )


def _command(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"command: got {found['value']}, but it must be one of {found['choices']}"


def _no_file(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"--{found['name']}: the file {found['value']} does not exist; give an existing one"


def _yaml(found: re.Match[str], _options: tuple[str, ...]) -> str:
    return f"--config: it is no valid YAML ({found['reason']}); check its indentation"


def _type(kind: str) -> str:
    """Name a Python type as users call it."""
    literal = re.fullmatch(r"typing\.Literal\[(.*)\]", kind)
    if literal:
        return "one of " + literal[1].replace("'", "")
    if kind.startswith("list["):
        return "a list"
    return TYPES.get(kind, kind)


_SENTENCES: list[tuple[str, Callable[[re.Match[str], tuple[str, ...]], str]]] = [
    (r"unrecognized arguments: (?P<name>[^\s=]+)", _unknown),
    (r"does not accept option '(?P<name>[^']+)'", _unknown),
    (r"Option '(?P<name>[^']+)' is not accepted", _unknown),
    (
        r'Parser key "(?P<name>[^"]+)": .*Subtypes: \[(?P<types>.*)\] Errors: .*'
        r"Given value: (?P<value>.*)",
        _union,
    ),
    (
        r'Parser key "(?P<name>[^"]+)": Expected a (?P<type>.*)\. Got value: (?P<value>.*)',
        _wrong_type,
    ),
    (r"arguments? (are|is) required: (?P<names>.*)", _missing),
    (r"subcommand: invalid choice: (?P<value>.*) \(choose from (?P<choices>.*)\)", _command),
    (r"Parser key \"(?P<name>config)\": File does not exist: '?(?P<value>[^']*)'?", _no_file),
    (r"Problems parsing config: (?P<reason>.*)", _yaml),
]
