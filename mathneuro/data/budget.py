"""How many tokens a batch may hold: as many as fit on the device."""

from collections.abc import Callable

from lightning.pytorch.utilities.memory import garbage_collection_cuda, is_oom_error

from mathneuro.errors import InputError

MOST = {"cpu": 2**12}
"""Tokens of a batch that is tried first, by type of device; more are no faster."""

MOST_ELSEWHERE = 2**15
"""The same for devices that are not named."""


def fits_in_memory(run: Callable[[], object]) -> bool:
    """Tell whether something runs without using up the device's memory, by running it.

    Example:
        >>> fits_in_memory(lambda: 1 + 1)
        True
    """
    try:
        run()
    except RuntimeError as error:
        if not is_oom_error(error):
            raise
        garbage_collection_cuda()
        return False
    return True


def find_budget(fits: Callable[[int], bool], most: int, longest: int, option: str) -> int:
    """Find how many tokens a batch may hold, by halves.

    Args:
        fits: Tells whether the largest batch of so many tokens fits.
        most: What to try first.
        longest: Tokens of the longest text, which is a batch of its own if the budget is smaller.
        option: The option that cuts texts, for the message.

    Raises:
        InputError: If the longest text does not fit by itself.

    Example:
        >>> find_budget(lambda tokens: tokens <= 3000, most=4096, longest=700, option="max_length")
        2048
    """
    budget = most
    while not fits(budget):
        if budget < 2 * longest:
            raise InputError(
                f"{option}: the longest text has {longest} tokens, which do not fit on the device "
                "even by themselves; set it to fewer, or spread the model over several devices"
            )
        budget //= 2
    return budget
