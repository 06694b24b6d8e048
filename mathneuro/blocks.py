"""Large tensors in blocks of rows, so that what is computed of one stays in a core's cache."""

from collections.abc import Iterator

from torch import Tensor

BLOCK = 2**17
"""About how many numbers a block has on the CPU."""

TIMES = 32
"""How many times as many on an accelerator, where the number of operations counts."""


def row_blocks(tensor: Tensor) -> Iterator[slice]:
    """Divide the rows of a tensor into blocks.

    Args:
        tensor: Of shape ``[rows, ...]``.

    Yields:
        The rows of each block, in their order.

    Example:
        >>> import torch
        >>> list(row_blocks(torch.empty(5, 2**16)))
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows = len(tensor)
    size = BLOCK if tensor.device.type == "cpu" else BLOCK * TIMES
    step = max(1, size * rows // max(1, tensor.numel()))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
