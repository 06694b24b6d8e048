"""What is told when the processes of a run cannot meet, before there are several."""

import errno
import re
from functools import partial
from pathlib import Path

import pytest
from torch.distributed import DistNetworkError

from mathneuro.failure import tell_once, what_went_wrong


def test_errors_of_meeting_are_sentences() -> None:
    """Of torch's store, and of gloo; others stay what they are."""
    refused = DistNetworkError("connection refused\nframe 0: 0x1")
    closed = RuntimeError("[third_party/gloo/gloo/transport/tcp/pair.cc:5] Connection closed")
    for error in (refused, closed):
        sentence = what_went_wrong(error)
        assert sentence is not None
        assert sentence.startswith("trainer: the processes of this run did not find one another (")
        assert "frame" not in sentence
    assert what_went_wrong(RuntimeError("a fault")) is None


def test_a_full_disk_is_a_sentence_whatever_wrote() -> None:
    """Events and caches are written by libraries."""
    with pytest.raises(OSError, match="No space") as caught, Path("/dev/full").open("w") as full:
        full.write("a" * 10**6)
    sentence = what_went_wrong(caught.value)
    assert sentence is not None
    assert re.match(r"folder: .* cannot be written \(No space left on device\); give", sentence)
    assert what_went_wrong(FileNotFoundError(2, "no such file", "a")) is None


def test_a_file_that_may_not_be_read_is_not_told_as_one_to_write() -> None:
    """The error does not say which of the two was tried."""
    sentence = what_went_wrong(PermissionError(errno.EACCES, "Permission denied", "a.bin"))
    assert sentence is not None
    assert sentence.startswith("trainer: a.bin may not be used (Permission denied); change its")


@pytest.mark.parametrize("key", ["LOCAL_RANK", "SLURM_LOCALID"])
def test_the_first_of_a_machine_tells(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """As long as processes do not know of one another."""
    told: list[str] = []
    for rank in ("1", "0"):
        monkeypatch.setenv(key, rank)
        tell_once(partial(told.append, rank))
    assert told == ["0"]
