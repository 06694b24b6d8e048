"""JSON files that a model's folder brings, checked before any work."""

import json
from pathlib import Path

from mathneuro.errors import InputError

PATTERNS = (
    "config.json", "generation_config.json", "tokenizer*.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "chat_template*.json", "*processor_config.json",
    "*.index.json",
)  # fmt: skip
"""Files that transformers reads, and that an export copies."""


def check_json_files(folder: Path) -> None:
    """Refuse a folder with a JSON file that cannot be read.

    transformers passes over some of them as if they were not there, so that answers end elsewhere
    than the model's makers meant.

    Args:
        folder: The folder of a model or a tokenizer.

    Raises:
        InputError: If a file is damaged or holds no object.
    """
    for path in sorted({path for pattern in PATTERNS for path in folder.glob(pattern)}):
        check_json_file(path)


def check_json_file(path: Path) -> None:
    """Refuse a JSON file that cannot be read.

    Raises:
        InputError: If it is damaged or holds no object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"model.source: {path} cannot be read ({reason}), but it must be JSON; get the file "
            "again, or mend it"
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"model.source: {path} holds a {type(content).__name__}, but it must be a JSON object; "
            "get the file again, or mend it"
        )
