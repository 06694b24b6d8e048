"""Memory of identification: the same however many batches there are, and whatever the context."""

from pathlib import Path

import pytest
import torch

from benchmarks.growth import Size, identification
from benchmarks.measuring import peak_bytes
from mathneuro.decoder import run_decoder
from mathneuro.layers import find_linear_weights
from mathneuro.norms import InputNorms
from tests.conftest import make_llama

SMALL = Size(parameters=1_000_000, words=20)


def test_memory_stays_flat_over_batches(tmp_path: Path) -> None:
    """A whole predict epoch, of 4 batches and of 32."""
    peaks = []
    for texts in (32, 256):
        folder = tmp_path / str(texts)
        folder.mkdir()
        work, _ = identification(Size(SMALL.parameters, texts, SMALL.words), folder)
        work()
        peaks.append(peak_bytes(work))
    assert peaks[0] > 0
    assert peaks[1] <= 1.02 * peaks[0]


def test_memory_does_not_depend_on_the_context() -> None:
    """A model that could read longer texts takes no more for the same ones."""
    peaks = [peak_of_norms(context) for context in (64, 2**17)]
    assert peaks[0] > 0
    assert peaks[1] == peaks[0]


def peak_of_norms(context: int) -> int:
    """Measure a batch of a model that was made for so many tokens."""
    model = make_llama(tied=True, max_position_embeddings=context)
    norms = InputNorms(find_linear_weights(model).weights)
    mask = torch.ones(4, 16, dtype=torch.int64)

    def work() -> None:
        with torch.no_grad(), norms.recording(), norms.batch(mask, ["text"] * 4):
            run_decoder(model, mask, mask)

    work()
    return peak_bytes(work)


@pytest.mark.parametrize("numbers", [1, 1000, 10**6])
def test_peaks_are_those_of_tensors(numbers: int) -> None:
    """What is freed before more is taken does not count twice."""

    def work() -> None:
        for _ in range(3):
            torch.zeros(numbers, dtype=torch.float64).sum()

    assert 8 * numbers <= peak_bytes(work) <= 8 * numbers + 100
