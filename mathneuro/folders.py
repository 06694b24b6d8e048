"""Folders that are complete or absent, for files whose names their writer chooses itself."""

import shutil
from collections.abc import Callable
from pathlib import Path

from mathneuro.errors import InputError
from mathneuro.files import unique


def replace_folder(
    path: Path, write: Callable[[Path], None], beside: Path, option: str = "folder"
) -> None:
    """Create or replace a folder in one step, with all that is in it.

    Args:
        path: The folder; missing folders on the way to it are made.
        write: Writes the whole content into the new, empty folder that it is given.
        beside: An existing folder on the same file system, outside of `path`'s parents that other
            programs watch; the content grows there.
        option: The option that gave the folder, for messages.

    Raises:
        InputError: If the folder cannot be written there.
    """
    from safetensors import SafetensorError

    name = f".{path.name}.{unique()}"
    unfinished, old = beside / f"{name}.unfinished", beside / f"{name}.old"
    try:
        try:
            unfinished.mkdir(parents=True)
            write(unfinished)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                path.rename(old)
            try:
                unfinished.rename(path)
            except OSError:
                if old.exists():
                    old.rename(path)
                raise
        finally:
            for each in (unfinished, old):
                if each.exists():
                    shutil.rmtree(each)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{option}: {path} cannot be written ({reason}); give a folder that you may write to "
            "and that has room"
        ) from error
