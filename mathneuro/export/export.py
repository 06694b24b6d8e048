"""Writing an edited model: weights shard by shard, and all that a folder needs to be served."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mathneuro.disk import edited_on_reading
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.export.card import model_card
from mathneuro.export.generation import load_generation_config
from mathneuro.export.measured import Measured
from mathneuro.export.source_files import copy_model_files, copy_tokenizer
from mathneuro.files import write_json, write_text
from mathneuro.folders import replace_folder
from mathneuro.layers import find_linear_weights
from mathneuro.loading import ModelSource, load_config, load_model, weight_hash
from mathneuro.terminal import saving_quietly
from mathneuro.tokenizer import LoadedTokenizer, load_tokenizer

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel

SIZE = re.compile(r"\d+(\.\d+)?(KB|MB|GB|KIB|MIB|GIB)", re.IGNORECASE)
"""How sizes of shards are written."""

RECORD = "mathneuro.json"
"""What tells programs how the model was made."""


def left_behind(folder: Path) -> list[Path]:
    """List what exports to a folder left that were killed."""
    return sorted(folder.resolve().parent.glob(f".{escape(folder.resolve().name)}.*.unfinished"))


@dataclass(frozen=True)
class Export:
    """How an edited model is written.

    Attributes:
        folder: Where it goes; the name of the folder is the model's name on its card.
        max_shard_size: The largest file of weights, such as ``5GB``; what is in memory at once is
            about that much.
        generation_config: Values to set in the generation config, by name.
        overwrite: Whether a folder that an export wrote is replaced.
        verify: Whether the written weights are read again and compared with the edited ones.
        keep: Files and folders that are read, and so may not be replaced.
    """

    folder: Path
    max_shard_size: str = "5GB"
    generation_config: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    verify: bool = True
    keep: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be written."""
        if not SIZE.fullmatch(self.max_shard_size):
            raise InputError(
                f"max_shard_size: got {self.max_shard_size!r}, but it must be a size such as 5GB "
                "or 500MB"
            )
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"output: {self.folder} is a file, but a folder is needed; name one")
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return
        target = self.folder.resolve()
        for kept in (Path.cwd(), *self.keep):
            if kept.resolve().is_relative_to(target):
                what = "is itself" if kept.resolve() == target else f"holds {kept}, which is"
                raise InputError(
                    f"output: {self.folder} {what} needed, so it is not replaced; give another "
                    "folder"
                )
        if not (self.folder / RECORD).is_file():
            raise InputError(
                f"output: {self.folder} is not empty and holds no model that was exported before "
                f"(there is no {RECORD}), so it is not replaced; give another folder"
            )
        if not self.overwrite:
            raise InputError(
                f"output: {self.folder} is not empty; give another folder, or --overwrite true to "
                "replace all of it"
            )


def export_model(
    source: ModelSource, edit: Edit, export: Export, measured: Measured | str
) -> list[Path]:
    """Write an edited model as a Hugging Face folder, whole or not at all.

    Weights of a checkpoint are read from its files, edited and written shard by shard; those of a
    GGUF file are in memory.

    Args:
        source: The model.
        edit: The edit, which must be made for the model.
        export: How it is written.
        measured: Scores for the model card, or why there are none.

    Returns:
        The files of the folder.

    Raises:
        InputError: If the model cannot be loaded or is another one, transformers refuses its
            generation config, an edited parameter is not finite, or the folder cannot be written.
    """
    load_config(source)
    generation = load_generation_config(source, export.generation_config)
    tokenizer = load_tokenizer(source)

    def write(folder: Path) -> None:
        with TemporaryDirectory(prefix=".spare", dir=folder) as spare:
            _write(folder, Path(spare), source, edit, export, generation, measured, tokenizer)
        _let_others_read(folder)

    with saving_quietly():
        # A link stays, and what it leads to is replaced.
        target = export.folder.resolve()
        replace_folder(target, write, target.parent, "output")
    return sorted(path for path in export.folder.rglob("*") if path.is_file())


def _write(
    folder: Path,
    spare: Path,
    source: ModelSource,
    edit: Edit,
    export: Export,
    generation: "GenerationConfig | None",
    measured: Measured | str,
    tokenizer: LoadedTokenizer,
) -> None:
    """Write all files into an empty folder; what loading a model leaves goes into a spare one."""
    model = load_model(source, spare / "source")
    edit.check_model(weight_hash(model))
    if generation is not None:
        model.generation_config = generation
    with _edited(model, edit):
        model.save_pretrained(folder, max_shard_size=export.max_shard_size)
        expected = weight_hash(model) if export.verify else None
    if not copy_tokenizer(source, folder):
        tokenizer.tokenizer.save_pretrained(folder)
    base = copy_model_files(source, folder)
    if generation is not None and export.generation_config:
        generation.save_pretrained(folder)
    _state_type(folder / "config.json", str(model.dtype).removeprefix("torch."))
    can_be_tied = model._tied_weights_keys and model.config.tie_word_embeddings
    if can_be_tied and not model.all_tied_weights_keys:
        _state_untied(folder / "config.json")
    name = export.folder.resolve().name
    write_text(folder / "README.md", model_card(edit, name, measured, base, tokenizer.note))
    write_json(folder / RECORD, _record(edit))
    if expected is not None:
        _verify(folder, source, spare, expected)


@contextmanager
def _edited(model: "PreTrainedModel", edit: Edit) -> Iterator[None]:
    """Let an edit be on the model in this block, wherever its weights are."""
    if "disk" in getattr(model, "hf_device_map", {}).values():
        with edited_on_reading(model, edit):
            yield
    else:
        edit.check_factors(find_linear_weights(model).weights)
        with edit.applied(model, check_hash=False):
            yield


def _let_others_read(folder: Path) -> None:
    """Give all files the permissions of a new one: some libraries make them the owner's alone."""
    mode = (folder / "README.md").stat().st_mode
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)


def _state_type(config: Path, dtype: str) -> None:
    """Let a config state the type that the weights have, in its own words and everywhere."""
    content = json.loads(config.read_text(encoding="utf-8"))
    parts = [content, *(part for part in content.values() if isinstance(part, dict))]
    for part in parts:
        for key in ("dtype", "torch_dtype"):
            if isinstance(part.get(key), str):
                part[key] = dtype
    if not {"dtype", "torch_dtype"} & content.keys():
        content["dtype"] = dtype
    write_json(config, content)


def _state_untied(config: Path) -> None:
    """Let a config say that the head is a weight of its own, where it said otherwise."""
    content = json.loads(config.read_text(encoding="utf-8"))
    for part in (content, *(part for part in content.values() if isinstance(part, dict))):
        if part is content or "tie_word_embeddings" in part:
            part["tie_word_embeddings"] = False
    write_json(config, content)


def _record(edit: Edit) -> dict[str, Any]:
    """Return how the model was made; the texts' own hashes would be most of it."""
    return {
        "format": "mathneuro-export-1",
        "model": edit.model,
        "factor": edit.factor,
        "factors": edit.factors,
        "origin": edit.selection.origin,
        "parameters": edit.selection.count,
        "selection_sha256": edit.selection.sha256(),
        "data": {
            name: {key: value for key, value in each.items() if key not in ("text_hashes", "rows")}
            for name, each in edit.data.items()
        },
    }


def _verify(folder: Path, source: ModelSource, spare: Path, expected: str) -> None:
    """Read what was written as others will, and compare it with the edited weights."""
    written = ModelSource(str(folder), trust_remote_code=source.trust_remote_code)
    found = weight_hash(load_model(written, spare / "written"))
    if found != expected:
        raise InputError(
            f"output: the written weights have the hash {found}, but the edited model has "
            f"{expected}: transformers saves this kind of model otherwise than it loads it; "
            "nothing was written"
        )
