"""What modules with a weight of their own multiply it with, seen from inside a forward pass."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from typing_extensions import override


@contextmanager
def linear_reads(modules: Mapping[str, nn.Module]) -> Iterator[set[str]]:
    """Find out which modules multiply their input, as it is, with their weight.

    A module that is no ``nn.Linear`` may do anything with its weight; in this block the calls of
    ``torch.nn.functional.linear`` are looked at while each module runs.

    Args:
        modules: Modules with a two-dimensional parameter ``weight``, by name.

    Yields:
        The names of those that do; filled in as they run.

    Example:
        >>> linear = nn.Linear(2, 2)
        >>> with linear_reads({"weight": linear}) as confirmed:
        ...     _ = linear(torch.ones(1, 2))
        >>> confirmed
        {'weight'}
    """
    calls = _LinearCalls()
    with ExitStack() as stack:
        for name, module in modules.items():
            stack.callback(module.register_forward_pre_hook(calls.begin(name)).remove)
            stack.callback(module.register_forward_hook(calls.end).remove)
        stack.enter_context(calls)
        yield calls.confirmed


class _LinearCalls(TorchFunctionMode):
    """Looks at the calls that a running module makes."""

    def __init__(self) -> None:
        super().__init__()
        self._running: tuple[str, Tensor, nn.Module] | None = None
        self.confirmed: set[str] = set()

    def begin(self, name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        """Return a hook that notes which module runs, on what."""

        def begin(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            self._running = (name, inputs[0], module) if inputs else None

        return begin

    def end(self, _module: nn.Module, _inputs: tuple[Any, ...], _output: Any) -> None:  # noqa: ANN401
        """Note that no module runs."""
        self._running = None

    @override
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Look at a call of one of torch's functions, and do it."""
        if func is functional.linear and self._running is not None:
            name, inputs, module = self._running
            # An offloaded module has its weight only while it runs.
            weight: Any = module.weight
            read = [*args, *(kwargs or {}).values()]
            if _same(read[1], weight) and _same(read[0], inputs):
                self.confirmed.add(name)
        return func(*args, **(kwargs or {}))


def _same(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors hold the same numbers, whatever their types and leading shapes."""
    if one.shape[-1] != other.shape[-1] or one.numel() != other.numel():
        return False
    both = (one, other.to(one.device))
    rows = [each.detach().reshape(-1, each.shape[-1]).float() for each in both]
    return bool(torch.equal(*rows))
