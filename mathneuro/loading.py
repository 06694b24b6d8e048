"""Loading of causal language models."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from mathneuro.errors import InputError
from mathneuro.hub import load_pretrained
from mathneuro.json_files import check_json_file, check_json_files
from mathneuro.placement import Placement
from mathneuro.storage import is_spread, saved_numbers, whole

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

DataType = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from.

    Attributes:
        path: Id on the Hugging Face hub, local folder, or local GGUF file.
        revision: Branch, tag or commit on the hub.
        tokenizer: Id or folder of the tokenizer. None: the model's own.
        gguf_file: A GGUF file within the hub repository or folder.
        dtype: Type of the weights. ``auto``: that of the checkpoint (GGUF: float32).
        attention_implementation: ``eager``, ``sdpa``, ``flash_attention_2``... None: the default.
        trust_remote_code: Whether code that comes with the model may run.
        placement: Where the weights go. By default they stay on the CPU.
    """

    path: str
    revision: str | None = None
    tokenizer: str | None = None
    gguf_file: str | None = None
    dtype: DataType = "auto"
    attention_implementation: str | None = None
    trust_remote_code: bool = False
    placement: Placement = field(default_factory=Placement)

    def __post_init__(self) -> None:
        """Refuse a local path that does not hold a model."""
        path = Path(self.path)
        if path.suffix == ".gguf" and not path.is_file():
            raise InputError(
                f"model.source: the file {path} does not exist (looked from {Path.cwd()}); give a "
                "GGUF file, a folder, or an id on the hub"
            )
        looks_local = path.is_absolute() or self.path.startswith(".") or len(path.parts) > 2
        if looks_local and not path.exists():
            raise InputError(
                f"model.source: the folder {path} does not exist (looked from {Path.cwd()}); give "
                "a folder with config.json, a GGUF file, or an id on the hub"
            )
        if (path / "adapter_config.json").is_file():
            raise InputError(
                f"model.source: the folder {path} holds an adapter (LoRA, for one), but a whole "
                "model is needed; merge it into its base model (merge_and_unload) and give that"
            )
        has_config = (path / "config.json").is_file() or self.gguf_file is not None
        if path.is_dir() and not has_config:
            raise InputError(
                f"model.source: the folder {path} holds no config.json; give the folder of a "
                "Hugging Face model, or name its gguf_file"
            )

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """Return the name and the keyword arguments that every ``from_pretrained`` shares."""
        keywords: dict[str, Any] = {"trust_remote_code": self.trust_remote_code}
        if self.revision is not None:
            keywords["revision"] = self.revision
        path = Path(self.path)
        if path.suffix == ".gguf":
            return str(path.parent), {**keywords, "gguf_file": path.name}
        if self.gguf_file is not None:
            keywords["gguf_file"] = self.gguf_file
        return self.path, keywords


def load_config(source: ModelSource) -> "PreTrainedConfig":
    """Load a model's config and refuse models that cannot be treated.

    Raises:
        InputError: If there is no such model, or it is an encoder-decoder or quantised.
    """
    from transformers import AutoConfig

    name, keywords = source.arguments()
    # Beside a GGUF file, which holds all of it, stand others' files.
    for each in (None if "gguf_file" in keywords else name, source.tokenizer):
        if each is not None and Path(each).is_dir():
            check_json_files(Path(each))
    config: PreTrainedConfig = load_pretrained(
        AutoConfig.from_pretrained, name, keywords, "model.source"
    )
    if "gguf_file" not in keywords and not Path(name).is_dir():
        _check_generation_config(name, source.revision)
    parts = _parts(config)
    # An encoder of pictures or sounds may say so of itself; that does not matter.
    if any(getattr(part, "is_encoder_decoder", False) for part in parts[:2]):
        raise InputError(
            f"model.source: {name} is an encoder-decoder model ({config.model_type}), but a causal "
            "language model is needed; choose a decoder-only one"
        )
    marks = [_quantisation(part) for part in parts]
    if any(marks) and "gguf_file" not in keywords:
        raise InputError(
            f"model.source: {name} is a quantised checkpoint ({next(filter(None, marks))}), whose "
            "packed weights cannot be edited; load the unquantised checkpoint, or a GGUF file (it "
            "is dequantised)"
        )
    return config


def _check_generation_config(name: str, revision: str | None) -> None:
    """Refuse a model of the hub with a damaged generation config, which transformers passes over.

    Raises:
        InputError: If it cannot be read.
    """
    from transformers.utils.hub import cached_file

    where = {
        "filename": "generation_config.json",
        "revision": revision,
        "_raise_exceptions_for_missing_entries": False,
        "_raise_exceptions_for_connection_errors": False,
    }
    path = load_pretrained(cached_file, name, where, "model.source")
    if path is not None:
        check_json_file(Path(path))


def _parts(config: "PreTrainedConfig") -> list[Any]:
    """Return a config and those of its parts, such as the language model's."""
    parts = [getattr(config, name, None) for name in config.sub_configs]
    return [config, config.get_text_config(), *(part for part in parts if part is not None)]


def _quantisation(config: Any) -> str | None:  # noqa: ANN401
    """Return how a config says that weights are packed; None if it does not."""
    for name in ("quantization_config", "compression_config"):
        mark = getattr(config, name, None)
        if mark:
            values = mark if isinstance(mark, dict) else mark.to_dict()
            return str(values.get("quant_method") or name)
    return None


def load_model(source: ModelSource, offload_folder: Path | None = None) -> "PreTrainedModel":
    """Load a causal language model: frozen, in evaluation mode, on the CPU or where it is placed.

    Args:
        source: Where it comes from.
        offload_folder: Leaves all weights on the disk, to be read when they are needed; those that
            the checkpoint's files hold in another form than the model go into this folder. A GGUF
            file is dequantised into memory all the same. None: as the source's placement says.

    Raises:
        InputError: If there is no such model, or it cannot be built.
    """
    name, keywords = source.arguments()
    is_gguf = "gguf_file" in keywords
    config = load_config(source)
    loader = _loader(config)
    on_disk = offload_folder is not None and not is_gguf
    if source.placement.names_modules and not on_disk:
        source.placement.check_modules(empty_model(config, source.trust_remote_code))
    keywords["dtype"] = source.dtype if source.dtype == "auto" else getattr(torch, source.dtype)
    if is_gguf and source.dtype == "auto":
        keywords["dtype"] = torch.float32
    if source.attention_implementation is not None:
        keywords["attn_implementation"] = source.attention_implementation
    if on_disk:
        keywords |= {"device_map": {"": "disk"}, "offload_folder": str(offload_folder)}
    else:
        keywords |= source.placement.arguments()
    keywords["output_loading_info"] = True
    model: PreTrainedModel
    model, loaded = load_pretrained(loader.from_pretrained, name, keywords, "model.source")
    if on_disk:
        _untie(model)
    else:
        source.placement.check_placed(model)
    _check_complete(name, loaded)
    if is_gguf:
        _drop_quantization_marks(model)
    model.requires_grad_(False)
    model.train(False)
    return model


def _untie(model: "PreTrainedModel") -> None:
    """Take weights apart that a config calls tied while the checkpoint holds different ones.

    transformers does so with models in memory, and not with those on the disk.
    """
    numbers, tied = saved_numbers(model), model.all_tied_weights_keys
    model.all_tied_weights_keys = {
        name: other
        for name, other in tied.items()
        if torch.equal(numbers[name](), numbers[other]())
    }


def empty_model(config: "PreTrainedConfig", trust_remote_code: bool = False) -> "PreTrainedModel":
    """Build a model that has the shapes of a config, and no numbers."""
    with torch.device("meta"):
        model: PreTrainedModel = _loader(config).from_config(
            config, trust_remote_code=trust_remote_code
        )
    return model


def _loader(config: "PreTrainedConfig") -> Any:  # noqa: ANN401
    """Return the class that loads a model: some families with pictures have one of their own."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    )

    known = type(config)
    plain = (
        known in MODEL_FOR_CAUSAL_LM_MAPPING or known not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    )
    return AutoModelForCausalLM if plain else AutoModelForImageTextToText


def weight_hash(model: nn.Module) -> str:
    """Hash all parameters and buffers that are saved: names, types, shapes and bytes.

    Returns:
        The first 32 hexadecimal digits of a SHA-256.

    Example:
        >>> model = nn.Linear(1, 1)
        >>> before = weight_hash(model)
        >>> _ = nn.init.constant_(model.weight, 7.0)
        >>> before == weight_hash(model)
        False
    """
    tensors = saved_numbers(model)

    def one(name: str) -> bytes:
        tensor = whole(tensors[name]()).detach().cpu().contiguous()
        digest = hashlib.sha256(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
        return digest.digest()

    # hashlib lets go of the interpreter lock, so that threads hash several tensors at once. But
    # tensors that are spread over processes are copied together in the same order in each.
    threads = 1 if any(map(is_spread, model.parameters())) else None
    with ThreadPoolExecutor(threads) as pool:
        return hashlib.sha256(b"".join(pool.map(one, sorted(tensors)))).hexdigest()[:32]


def _check_complete(name: str, loaded: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that lacks weights: transformers fills them in with random numbers."""
    missing = sorted(loaded["missing_keys"])
    if missing:
        raise InputError(
            f"model.source: the checkpoint {name} lacks {len(missing)} weights, {missing[0]} "
            "first, but all are needed; get the whole checkpoint"
        )


def _drop_quantization_marks(model: "PreTrainedModel") -> None:
    """Forget that a model came from GGUF: its weights are ordinary numbers by now.

    transformers refuses to save or convert a model while it carries these marks.
    """
    for holder, attribute in ((model, "hf_quantizer"), (model.config, "quantization_config")):
        if hasattr(holder, attribute):
            delattr(holder, attribute)
    for attribute in ("is_quantized", "quantization_method"):
        if attribute in model.__dict__:
            delattr(model, attribute)
