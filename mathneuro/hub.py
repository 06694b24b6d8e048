"""Loading from the Hugging Face hub or a folder, also when the hub cannot be reached."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from mathneuro.errors import InputError

REACH_SECONDS = 5.0


@contextmanager
def offline_if_unreachable() -> Iterator[None]:
    """Let the hub's clients use their cache alone in this block if the hub does not answer.

    They try for half a minute a file otherwise, and tell of each try.
    """
    import datasets
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    is_offline = any(before) or not _answers(constants.ENDPOINT)
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = is_offline
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def load_pretrained(function: Any, name: str, keywords: dict[str, Any], field: str) -> Any:  # noqa: ANN401
    """Call a ``from_pretrained`` and turn its refusals into one sentence.

    Args:
        function: The ``from_pretrained`` of a class of transformers.
        name: Id on the hub, or a folder.
        keywords: Its keyword arguments.
        field: The option that named it, for the message.

    Raises:
        InputError: If nothing can be loaded.
    """
    from safetensors import SafetensorError

    try:
        with nullcontext() if Path(name).exists() else offline_if_unreachable():
            return function(name, **keywords)
    except (
        OSError, ValueError, ImportError, KeyError, TypeError, RuntimeError, SafetensorError
    ) as error:  # fmt: skip
        reason = str(error).strip().splitlines() or [type(error).__name__]
        if "trust_remote_code" in str(error) and not keywords.get("trust_remote_code"):
            raise InputError(
                f"model.trust_remote_code: got false, but {name} brings code of its own; read that "
                "code, and set it to true if you trust it"
            ) from error
        needed = "a tokenizer" if field == "model.tokenizer" else "config.json and weights"
        raise InputError(
            f"{field}: {name} cannot be loaded ({reason[0]}); give an id on the hub that you may "
            f"read, a folder with {needed}, or a GGUF file"
        ) from error


def _answers(address: str) -> bool:
    from huggingface_hub import get_session

    try:
        get_session().head(address, timeout=REACH_SECONDS)
    # Whatever keeps the network from working; the caller says what that means.
    except Exception:
        return False
    return True
