"""Perplexity against a naive computation."""

import math

import pytest
import torch
from transformers import PreTrainedModel

from mathneuro import blocks
from mathneuro.perplexity import TokenPerplexity, token_losses
from tests.test_norms import TEXTS, padded


def naive_losses(model: PreTrainedModel, text: list[int]) -> list[float]:
    """Negative log-likelihood of each token, one text at a time."""
    with torch.no_grad():
        probabilities = model(input_ids=torch.tensor([text])).logits[0].double().softmax(-1)
    return [-math.log(float(probabilities[i, text[i + 1]])) for i in range(len(text) - 1)]


def test_perplexity_equals_the_naive_one(phi: PreTrainedModel) -> None:
    """In two batches with padding, texts of one token included."""
    metric = TokenPerplexity()
    for texts in (TEXTS[:2], TEXTS[2:]):
        ids, mask = padded(texts, "right")
        with torch.no_grad():
            logits = phi(input_ids=ids, attention_mask=mask).logits
        metric.update(token_losses(logits, ids, mask), mask[:, 1:])
    found = metric.compute()
    losses = [naive_losses(phi, text) for text in TEXTS]
    tokens = sum(map(len, losses))
    mean = sum(map(sum, losses)) / tokens
    assert float(found["perplexity"]) == pytest.approx(math.exp(mean), rel=1e-5)
    assert found["tokens"].tolist() == list(map(len, losses))
    assert found["losses"].tolist() == pytest.approx(list(map(sum, losses)), rel=1e-5)
    spread = sum((sum(each) - mean * len(each)) ** 2 for each in losses)
    error = math.sqrt(spread * len(TEXTS) / (len(TEXTS) - 1)) / tokens
    assert float(found["standard_error"]) == pytest.approx(math.exp(mean) * error, rel=1e-5)


@pytest.mark.parametrize("block", [1, 60, 2**17])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_losses_are_those_of_a_softmax(
    dtype: torch.dtype, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tokens are looked at together, to the bit; nothing at padding."""
    logits, ids = 5 * torch.randn(3, 7, 20).to(dtype), torch.randint(0, 20, (3, 7))
    mask = torch.ones(3, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    whole = token_losses(logits, ids, mask)
    monkeypatch.setattr(blocks, "BLOCK", block)
    found = token_losses(logits, ids, mask)
    assert torch.equal(found, whole)
    expected = torch.zeros(3, 6, dtype=torch.float64)
    for text, token in ((text, token) for text in range(3) for token in range(6)):
        if mask[text, token + 1]:
            probabilities = logits[text, token].double().softmax(-1)
            expected[text, token] = -probabilities[ids[text, token + 1]].log()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


def test_losses_of_a_large_vocabulary_keep_their_small_terms() -> None:
    """As of Qwen2.5, next to one large logit, where `cross_entropy` is 1e-5 too low."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(1, 9, 151_936, generator=generator)
    logits[..., 7] += 14
    ids = torch.randint(0, 151_936, (1, 9), generator=generator)
    found = token_losses(logits, ids, torch.ones_like(ids)).double()[0]
    exact = -logits[0, :-1].double().log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
    torch.testing.assert_close(found, exact, rtol=5e-7, atol=0.0)


def test_the_standard_error_is_that_of_repeated_experiments() -> None:
    """The spread of many measured perplexities is what one measurement says of itself."""
    generator = torch.Generator().manual_seed(0)
    values, errors = [], []
    for _ in range(300):
        metric = TokenPerplexity()
        losses = (
            1 + torch.rand(200, 1, generator=generator) + torch.rand(200, 6, generator=generator)
        )
        predicted = (torch.arange(6) < torch.randint(1, 7, (200, 1), generator=generator)).long()
        metric.update(losses * predicted, predicted)
        found = metric.compute()
        values.append(float(found["perplexity"]))
        errors.append(float(found["standard_error"]))
    spread = float(torch.tensor(values).std())
    assert sum(errors) / len(errors) == pytest.approx(spread, rel=0.15)


def test_nothing_is_known_about_the_error_of_one_text() -> None:
    """Not that it is zero."""
    metric = TokenPerplexity()
    metric.update(torch.ones(1, 3), torch.ones(1, 3))
    assert math.isnan(float(metric.compute()["standard_error"]))
