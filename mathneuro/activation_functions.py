"""What makes a module an activation function, tried out on numbers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mathneuro.experts import expert_matrices
from mathneuro.storage import run_device

SAME = 0.01
"""Relative difference that rounding can explain."""


def is_activation(module: nn.Module, like: Tensor) -> bool:
    """Tell whether a module computes each number from one number, and not just a multiple of it.

    Args:
        module: The module; it gives tensors of the shape of its input.
        like: A tensor of the shape, type and device to try it with.

    Example:
        >>> like = torch.zeros(2, 4)
        >>> [is_activation(each, like) for each in (nn.SiLU(), nn.Identity(), nn.Softmax(-1))]
        [True, False, False]
    """
    # From -3 to 3, so that no function looks like a straight line.
    width = like.shape[-1]
    numbers = torch.linspace(-3, 3, width, device=like.device).to(like.dtype).expand(like.shape)
    every_other = torch.arange(width, device=like.device).remainder(2).eq(0).expand(like.shape)

    def give(inputs: Tensor) -> Tensor:
        output: Tensor = module.forward(inputs.clone())
        return output

    given = give(numbers)
    mixed = give(torch.where(every_other, numbers, torch.full_like(numbers, 5)))
    is_straight = same(give(2 * numbers), 2 * given) and same(give(-numbers), -given)
    return same(mixed[every_other], given[every_other]) and not is_straight


def experts_activation(experts: nn.Module) -> nn.Module | None:
    """Return the activation function of a module with experts, if their gate runs it by itself.

    Args:
        experts: The module, see `mathneuro.experts.is_experts`.

    Returns:
        The module whose output, times a gate or not, is what the second matrices read. None: the
        gate computes something else.
    """
    parts: Any = experts
    activation = getattr(experts, "act_fn", None)
    if not isinstance(activation, nn.Module):
        return None
    first: Tensor = getattr(experts, expert_matrices(experts)[0])
    width = first.shape[-1 if parts.is_transposed else -2]
    inner = torch.linspace(-3, 3, 4 * width, device=run_device(experts)).view(4, -1).to(first.dtype)
    outputs: list[Tensor] = []

    def multiply(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:  # noqa: ANN401
        outputs.append(output)
        return output * factors(output) if len(outputs) > 1 else output

    handle = activation.register_forward_hook(multiply)
    gate: Callable[[Tensor], Tensor] = parts._apply_gate if parts.has_gate else activation
    with torch.no_grad():
        try:
            plain, multiplied = gate(inner.clone()), gate(inner.clone())
        finally:
            handle.remove()
        fits = len(outputs) == 2 and outputs[0].shape == plain.shape
        fits = fits and same(multiplied, plain * factors(plain))
        return activation if fits and is_activation(activation, plain) else None


def factors(like: Tensor) -> Tensor:
    """Return factors that differ between neighbouring rows and columns: a half, one and two.

    They are powers of two, so that no multiplication with them is rounded.

    Args:
        like: A tensor of the shape, type and device that they are for; the last dimension counts
            as columns, all others together as rows.
    """
    width = like.shape[-1]
    rows = torch.arange(like.numel() // width, device=like.device)[:, None]
    columns = torch.arange(width, device=like.device)
    return (2.0 ** ((rows * rows + columns) % 3 - 1)).to(like.dtype).view(like.shape)


def same(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors differ by no more than rounding; NaN does."""
    scale = float(other.detach().double().norm())
    return float((one.detach().double() - other.detach().double()).norm()) <= SAME * scale
