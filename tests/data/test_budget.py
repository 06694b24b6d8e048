"""As many tokens as fit, found by trying."""

import pytest

from mathneuro.data.budget import find_budget
from mathneuro.errors import InputError


@pytest.mark.parametrize("limit", [1, 99, 100, 777, 4095, 4096, 10_000])
def test_the_budget_fits_and_twice_as_much_does_not(limit: int) -> None:
    """Unless it is what was tried first."""
    budget = find_budget(lambda tokens: tokens <= limit, 4096, 1, "option")
    assert budget <= limit
    assert budget == 4096 or 2 * budget > limit


def test_a_text_that_does_not_fit_is_refused() -> None:
    """Once it would be a batch of its own."""
    tried: list[int] = []

    def fits(tokens: int) -> bool:
        tried.append(tokens)
        return False

    with pytest.raises(InputError, match=r"option: the longest text has 600 tokens, which do not"):
        find_budget(fits, 4096, 600, "option")
    assert tried == [4096, 2048, 1024]
