"""The generation config of an exported model, checked before its weights are touched."""

import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mathneuro.errors import InputError
from mathneuro.loading import ModelSource

if TYPE_CHECKING:
    from transformers import GenerationConfig


def load_generation_config(
    source: ModelSource, changes: Mapping[str, Any]
) -> "GenerationConfig | None":
    """Load a model's generation config, with changes, as transformers will save it.

    Args:
        source: The model.
        changes: Values to set, by name; None takes a value back.

    Returns:
        The config. None: the model has none of its own, and nothing is to be changed.

    Raises:
        InputError: If transformers refuses to save it, or has no value of such a name.
    """
    from transformers import GenerationConfig

    name, keywords = source.arguments()
    keywords = {key: value for key, value in keywords.items() if key == "revision"}
    config: GenerationConfig
    try:
        config = GenerationConfig.from_pretrained(name, **keywords)
    except (OSError, ValueError):
        # Models without one, GGUF files among them.
        if not changes:
            return None
        config = GenerationConfig()
    for key, value in changes.items():
        if not hasattr(config, key):
            raise InputError(
                f"generation_config: got {key!r}, but transformers knows no such value of a "
                "generation config; correct its name"
            )
        setattr(config, key, value)
    try:
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split()).rstrip(".:")[:300]
        raise InputError(
            f"generation_config: transformers refuses to save that of {name} ({reason}); set "
            "other values, as in --generation_config '{do_sample: true}'"
        ) from error
    return config
