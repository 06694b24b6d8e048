"""The Hugging Face hub, when it cannot be reached."""

from collections.abc import Iterator
from contextlib import contextmanager

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


def _answers(address: str) -> bool:
    from huggingface_hub import get_session

    try:
        get_session().head(address, timeout=REACH_SECONDS)
    # Whatever keeps the network from working; the caller says what that means.
    except Exception:
        return False
    return True
