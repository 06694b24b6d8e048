"""Fixtures of the data tests."""

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from tests.data.tiny import make_tokenizer, save_model_folder, words, write_csv


@pytest.fixture(scope="session")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without weights, whose tokenizer adds one token at the beginning and at the end."""
    return save_model_folder(tmp_path_factory.mktemp("model"), make_tokenizer())


@pytest.fixture
def both_ends() -> PreTrainedTokenizerFast:
    """A tokenizer that adds tokens for the beginning and the end."""
    return make_tokenizer()


@pytest.fixture
def math_file(tmp_path: Path) -> str:
    """Thirty different texts."""
    return write_csv(tmp_path / "math.csv", words(30))


@pytest.fixture
def other_file(tmp_path: Path) -> str:
    """Thirty other texts."""
    return write_csv(tmp_path / "other.csv", [f"e {text}" for text in words(30)])
