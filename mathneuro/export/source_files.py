"""Files of the base model that belong to the edited one as they are: tokenizer, code, licence.

Byte for byte they are what every program that serves the base model reads; written anew by a
library they are what that library's version reads.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from mathneuro.errors import InputError
from mathneuro.hub import offline_if_unreachable
from mathneuro.loading import ModelSource

TOKENIZER = (
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt",
    "*.tiktoken", "*.model", "chat_template*", "additional_chat_templates/*",
)  # fmt: skip
"""Patterns of a tokenizer's files."""

MODEL = (
    "config.json", "generation_config.json", "*.py", "*processor_config.json", "LICENSE*",
    "LICENCE*", "NOTICE*", "USE_POLICY*", "README.md",
)  # fmt: skip
"""Patterns of a model's other files."""

ELSEWHERE = "--"
"""What stands between a repository and a module, where a config names code of another one."""


def source_folder(path: str, revision: str | None, patterns: Iterable[str]) -> Path:
    """Return a folder that holds such files of a model.

    Args:
        path: A local folder, a file in it, or an id on the hub.
        revision: Branch, tag or commit on the hub.
        patterns: Which files.

    Raises:
        InputError: If they cannot be fetched.
    """
    local = Path(path)
    if local.exists():
        return local if local.is_dir() else local.parent
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        with offline_if_unreachable():
            found = snapshot_download(path, revision=revision, allow_patterns=list(patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise InputError(
            f"model.source: the files of {path} beside its weights cannot be fetched "
            f"({str(error).strip().splitlines()[0]}); give an id on the hub that you may read, or "
            "a folder"
        ) from error
    return Path(found)


def copy_tokenizer(source: ModelSource, target: Path) -> bool:
    """Copy a tokenizer's files.

    Returns:
        Whether there are any that work alone; a GGUF file holds its tokenizer itself.
    """
    name, keywords = source.arguments()
    if "gguf_file" in keywords and source.tokenizer is None:
        return False
    revision = source.revision if source.tokenizer is None else None
    folder = source_folder(source.tokenizer or name, revision, (*TOKENIZER, "*.py"))
    found = _matching(folder, TOKENIZER)
    if not found or names_code_elsewhere(folder / "tokenizer_config.json"):
        return False
    # Code that the tokenizer brings lies beside it.
    _copy(folder, [*found, *_matching(folder, ("*.py",))], target)
    return True


def copy_model_files(source: ModelSource, target: Path) -> Path | None:
    """Copy what belongs to a model beside weights and tokenizer, over what is there.

    Returns:
        The folder of the base model. None: it is a GGUF file, which has none.
    """
    name, keywords = source.arguments()
    if "gguf_file" in keywords:
        return None
    folder = source_folder(name, source.revision, MODEL)
    skipped = {"README.md"}
    if names_code_elsewhere(folder / "config.json"):
        # The library has fetched that code, and written a config that names it here.
        skipped |= {"config.json"}
    files = [path for path in _matching(folder, MODEL) if path.name not in skipped]
    _copy(folder, files, target)
    return folder


def names_code_elsewhere(config: Path) -> bool:
    """Tell whether a config names code of another repository."""
    if not config.is_file():
        return False
    names = json.loads(config.read_text(encoding="utf-8")).get("auto_map", {})
    return ELSEWHERE in json.dumps(names)


def _matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """List files, each once."""
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)))
    return list(dict.fromkeys(path for path in found if path.is_file()))


def _copy(folder: Path, files: Iterable[Path], target: Path) -> None:
    for path in files:
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
