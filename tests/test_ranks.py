"""What each process takes: everything once, and batches as lm-eval makes them."""

import random
from typing import Any

import pytest
from lm_eval.models.utils import Collator

from mathneuro.ranks import Ranks
from mathneuro.request_batches import TokenRequest, generation_batches, likelihood_batches

WORDS = "abc"


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("length", [0, 1, 5, 7, 100])
def test_every_item_is_taken_once(count: int, length: int) -> None:
    """Whatever the numbers; neighbours stay together in parts."""
    items = list(range(length))
    ranks = [Ranks(rank, count) for rank in range(count)]
    assert sorted(item for each in ranks for item in each.share(items)) == items
    assert [item for each in ranks for item in each.part(items)] == items
    for taken in (Ranks.share, Ranks.part):
        sizes = [len(taken(each, items)) for each in ranks]
        assert max(sizes) - min(sizes) <= 1


def test_in_lockstep_every_process_takes_everything() -> None:
    """One model is spread over them."""
    ranks = Ranks(1, 2, in_lockstep=True)
    assert ranks.share([1, 2, 3]) == ranks.part([1, 2, 3]) == [1, 2, 3]


def text(generator: random.Random) -> list[int]:
    """Draw tokens; few kinds, so that many texts are alike."""
    return [generator.randrange(3) for _ in range(generator.randrange(1, 4))]


def named(requests: list[Any], batches: list[list[int]]) -> list[list[Any]]:
    """Return the requests of each batch."""
    return [[requests[position] for position in batch] for batch in batches]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_likelihoods_are_batched_as_lm_eval_does(size: int) -> None:
    """Against lm-eval's own class; a batch is known by the requests that it runs."""
    generator = random.Random(0)
    requests: list[TokenRequest] = [
        (str(position), text(generator), text(generator)) for position in range(60)
    ]

    def order(request: TokenRequest) -> tuple[int, tuple[int, ...]]:
        tokens = request[1] + request[2]
        return -len(tokens), tuple(tokens)

    own = Collator(
        requests, order, group_by="contexts", group_fn=lambda each: each[1] + each[2][:-1]
    )
    mine = likelihood_batches(requests, size)
    assert sorted(position for batch in mine for position in batch) == list(range(60))
    for batch, theirs in zip(named(requests, mine), own.get_batched(n=size), strict=True):
        assert all(each in batch for each in theirs)
        assert len({tuple(each[1] + each[2][:-1]) for each in batch}) == len(theirs) <= size


@pytest.mark.parametrize("size", [1, 3, 8])
def test_generations_are_batched_as_lm_eval_does(size: int) -> None:
    """Against lm-eval's own class; never two settings in a batch."""
    generator = random.Random(0)
    contexts = [" ".join(map(str, text(generator))) for _ in range(60)]
    settings = [{"until": [generator.choice(WORDS)]} for _ in contexts]
    lengths = [len(context.split()) for context in contexts]
    requests = list(zip(contexts, settings, strict=True))

    own = Collator(
        requests,
        lambda each: (-len(each[0].split()), each[0]),
        group_by="gen_kwargs",
        group_fn=lambda each: each[1],
    )
    mine = generation_batches(contexts, settings, lengths, size)
    assert sorted(position for batch in mine for position in batch) == list(range(60))
    assert named(requests, mine) == list(own.get_batched(n=size))
