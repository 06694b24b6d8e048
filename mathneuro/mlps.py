"""MLPs of a model, found by what their parts do rather than by what they are called."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from mathneuro.activation_functions import factors, is_activation, same
from mathneuro.experts import is_experts
from mathneuro.storage import present

TWICE = "its activation function runs more than once in a forward pass"
OTHER = "multiplying its activations is not multiplying what an output projection reads"
OWN_EXPERTS = "its experts are computed in a way of the family's own"


@dataclass(frozen=True)
class MLP:
    """An activation function and the projection that reads what it gives.

    Attributes:
        activation: Name of the activation function.
        module: The activation function.
        neurons: How many neurons there are.
        projection: Name of the output projection's weight. None: there is none.
        reason: Why its neurons cannot be used. None: they can.
    """

    activation: str
    module: nn.Module
    neurons: int
    projection: str | None = None
    reason: str | None = None


@dataclass
class _Event:
    """What a module read, and what it gave if it is no linear layer."""

    module: nn.Module
    inputs: Tensor
    output: Tensor | None = None


@dataclass
class _Rerun:
    """How a part of a model runs again.

    Attributes:
        moved: Linear layers that read their tokens in another order.
        activation: The activation function whose output is multiplied.
        seen: What linear layers read.
    """

    moved: set[nn.Module]
    activation: nn.Module
    seen: dict[nn.Module, Tensor] = field(default_factory=dict)


def find_mlps(model: nn.Module, run: Callable[[], object]) -> list[MLP]:
    """Find activation functions whose output is what an output projection beside them reads.

    That is tried out on every module that has activation functions and linear layers among its
    own parts: it runs a second time, with tokens in another order and the activations multiplied
    by factors, and what the output projection reads must have moved and grown in the same way. So
    neither a gate of an attention, which mixes tokens, nor a norm after the activation passes.
    Experts that `mathneuro.experts` knows are not looked at.

    Args:
        model: The model.
        run: Runs it on a few tokens, none of them padding.
    """
    search = _Search(model)
    with search.watching():
        run()
    return search.found


class _Search:
    """Looks at the parts of a model while it runs."""

    def __init__(self, model: nn.Module) -> None:
        from transformers.pytorch_utils import Conv1D

        self._linear = (nn.Linear, Conv1D)
        self._names = {module: name for name, module in model.named_modules()}
        self._events: dict[nn.Module, list[_Event]] = {}
        self._done: set[nn.Module] = set()
        self._rerun: _Rerun | None = None
        self.found: list[MLP] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep hooks on all modules that matter in this block."""
        handles = []
        for module in self._names:
            if isinstance(module, self._linear):
                handles.append(module.register_forward_pre_hook(self._read, with_kwargs=True))
            elif self._could_activate(module):
                handles.append(module.register_forward_hook(self._gave))
            elif any(map(self._could_activate, module.children())) and not is_experts(module):
                handles.append(module.register_forward_pre_hook(self._begin))
                handles.append(module.register_forward_hook(self._end, with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _could_activate(self, module: nn.Module) -> bool:
        is_leaf = next(module.children(), None) is None
        return is_leaf and not isinstance(module, (*self._linear, nn.Embedding))

    def _begin(self, part: nn.Module, _args: tuple[Any, ...]) -> None:
        if self._rerun is None:
            self._events[part] = []

    def _read(
        self, module: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, ...] | None:
        """Note what a linear layer reads; in a rerun, move its tokens if that is asked."""
        inputs = next(iter((*args, *keywords.values())))
        if self._rerun is None:
            for events in self._events.values():
                events.append(_Event(module, inputs))
            return None
        self._rerun.seen[module] = inputs
        if module not in self._rerun.moved:
            return None
        moved = _rows(inputs).roll(1, 0).view(inputs.shape)
        return ((moved, *args[1:]), keywords) if args else ((moved,), {})

    def _gave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Tensor | None:  # noqa: ANN401
        """Note what another layer gives; in a rerun, multiply it if that is asked."""
        tensors = len(args) == 1 and isinstance(args[0], Tensor) and isinstance(output, Tensor)
        if not tensors or not output.is_floating_point() or output.shape != args[0].shape:
            return None
        if self._rerun is None:
            for events in self._events.values():
                events.append(_Event(module, args[0], output))
        elif module is self._rerun.activation:
            multiplied: Tensor = output * factors(output)
            return multiplied
        return None

    def _end(self, part: nn.Module, args: tuple[Any, ...], keywords: Any, _output: Any) -> None:  # noqa: ANN401
        """Look at all that happened in a part of the model, when it has run for the first time."""
        if self._rerun is not None:
            return
        events = self._events.pop(part)
        if part in self._done:
            return
        self._done.add(part)
        own = set(part.children())
        with present(part):
            for place, event in enumerate(events):
                if event.output is not None and event.module in own:
                    found = self._look(part, events, place, lambda: part.forward(*args, **keywords))
                    self.found += [found] if found is not None else []

    def _look(
        self, part: nn.Module, events: list[_Event], place: int, again: Callable[[], object]
    ) -> MLP | None:
        """Look at what may be the activation function of a part, and at what follows it."""
        event = events[place]
        width = event.inputs.shape[-1]
        stacks = [each for each in part.parameters(recurse=False) if each.dim() == 3]
        read_before = [each for each in events[:place] if each.output is None]
        moved = {
            each.module
            for each in events
            if each.output is None and read_before and each.inputs is read_before[-1].inputs
        }
        own = set(part.children()) - moved
        after = [
            each
            for each in events[place + 1 :]
            if each.output is None and each.module in own and each.inputs.shape[-1] == width
        ]
        if not stacks and not (after and read_before):
            return None
        if not is_activation(event.module, event.inputs):
            return None
        name = self._names[event.module]
        if stacks:
            return MLP(name, event.module, len(stacks[0]) * width, reason=OWN_EXPERTS)
        if sum(each.module is event.module for each in events) > 1:
            is_first = all(each.module is not event.module for each in events[:place])
            return MLP(name, event.module, width, reason=TWICE) if is_first else None
        projection = self._projection(_Rerun(moved, event.module), after, again)
        if projection is None:
            return MLP(name, event.module, width, reason=OTHER)
        return MLP(name, event.module, width, f"{self._names[projection]}.weight")

    def _projection(
        self, rerun: _Rerun, candidates: list[_Event], again: Callable[[], object]
    ) -> nn.Module | None:
        """Return the linear layer that reads what the activation function gives, times anything."""
        self._rerun = rerun
        try:
            again()
        finally:
            self._rerun = None
        for each in candidates:
            before, seen = _rows(each.inputs), _rows(rerun.seen[each.module])
            if before.shape == seen.shape and same(seen, before.roll(1, 0) * factors(before)):
                return each.module
        return None


def _rows(tensor: Tensor) -> Tensor:
    """Put all dimensions but the last into one."""
    return tensor.reshape(-1, tensor.shape[-1])
