"""Where the numbers of a model's parameters are, for those who read, compare or change them.

A module holds its parameters itself, or Accelerate has offloaded them: outside of a forward pass
the module then holds parameters without numbers, and a hook on it knows the real ones. Or they are
spread over processes (FSDP2): outside of a forward pass each process holds some rows of each.
What reads spread numbers, all processes have to call, in the same order.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from mathneuro.errors import InputError

User = tuple[str, nn.Module, str]
"""One use of a parameter: its name there, the module and the module's attribute."""


def numbers(module: nn.Module, attribute: str, row: int | None = None) -> Tensor:
    """Return the real numbers of a parameter or buffer: the tensor itself, not a copy.

    Only what is spread over processes is copied together.

    Args:
        module: The module.
        attribute: Its name for the parameter or buffer.
        row: Which slice along the first dimension. None: all.

    Raises:
        InputError: If they are nowhere to be found.

    Example:
        >>> from accelerate import cpu_offload
        >>> linear = cpu_offload(nn.Linear(1, 1, bias=False), torch.device("cpu"))
        >>> linear.weight.device, numbers(linear, "weight").device
        (device(type='meta'), device(type='cpu'))
    """
    tensor = _find(module, attribute)
    _in_memory(tensor, module, attribute)
    if isinstance(tensor, DTensor):
        return whole(tensor) if row is None else _whole_row(tensor, row)
    return tensor if row is None else tensor[row]


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor itself, or copied together if it is spread over processes."""
    if not isinstance(tensor, DTensor):
        return tensor
    together: Tensor = tensor.full_tensor()
    return together.detach()


def is_spread(tensor: Tensor) -> bool:
    """Tell whether a tensor is spread over processes."""
    return isinstance(tensor, DTensor)


def saved_numbers(model: nn.Module) -> dict[str, Callable[[], Tensor]]:
    """Return functions that give the real numbers of all parameters and buffers that are saved.

    Numbers that are on the disk are read when they are asked for, and again each time.

    Returns:
        By name; see `whole` for what is spread over processes.
    """
    state: Mapping[str, Tensor] = model.state_dict()
    return {
        name: partial(_named, model, name) if tensor.is_meta else partial(_itself, tensor)
        for name, tensor in state.items()
    }


def users(model: nn.Module) -> list[list[User]]:
    """Group all parameters by storage: every name, module and attribute that uses it."""
    grouped: dict[object, list[User]] = {}
    for module_name, module in model.named_modules():
        for attribute, parameter in module.named_parameters(recurse=False):
            name = f"{module_name}.{attribute}" if module_name else attribute
            tensor = _here(_copies(module, attribute)[-1])
            address = tensor.data_ptr() or id(parameter)
            key = (tensor.device, address, parameter.numel())
            grouped.setdefault(key, []).append((name, module, attribute))
    return list(grouped.values())


def versions(model: nn.Module) -> dict[str, int]:
    """Return how often the numbers of each parameter were changed in place."""
    found: dict[str, int] = {}
    for group in users(model):
        name, module, attribute = group[0]
        tensor = _find(module, attribute)
        if not tensor.is_inference():
            found[name] = tensor._version
    return found


def run_device(module: nn.Module) -> torch.device:
    """Return the device that a module with parameters of its own, or in its parts, runs on."""
    for each in module.modules():
        for hook in placing_hooks(each):
            if hook.offload and hook.execution_device is not None:
                return torch.device(hook.execution_device)
        parameter = next(each.parameters(recurse=False), None)
        if parameter is not None:
            return parameter.device
    raise ValueError(f"Expected a module with parameters but got {type(module).__name__}.")


def storage_devices(model: nn.Module) -> list[str]:
    """Return the names of the devices that hold a model's parameters here, in rising order."""
    return sorted({str(_find(*group[0][1:]).device) for group in users(model)})


@contextmanager
def present(module: nn.Module) -> Iterator[None]:
    """Let a module itself hold its parameters in this block, as it does in its forward pass."""
    from accelerate.utils import align_module_device

    if isinstance(module, FSDPModule):
        module.unshard()
        try:
            yield
        finally:
            module.reshard()
    else:
        with align_module_device(module):
            yield


def let_go(model: nn.Module) -> None:
    """Let each process hold its own rows alone, as between forward passes.

    A forward pass that an exception ends leaves the weights of a block together.
    """
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


@dataclass(frozen=True)
class Rows:
    """Rows of a parameter that this process holds; changing them changes the model.

    Attributes:
        tensor: The numbers.
        first: Which row of the parameter is the first of them.
    """

    tensor: Tensor
    first: int = 0

    def take(self, positions: Tensor, shape: torch.Size) -> Tensor:
        """Return a copy of the numbers at those flat positions that are held here.

        Args:
            positions: Positions in the whole parameter.
            shape: The shape of the whole parameter.
        """
        if self.tensor.is_contiguous():
            return self.tensor.view(-1).index_select(0, self._held(positions, shape))
        return self.tensor[self._index(positions, shape)]

    def put(self, positions: Tensor, shape: torch.Size, values: Tensor) -> None:
        """Write numbers to those flat positions that are held here.

        Args:
            positions: Positions in the whole parameter.
            shape: The shape of the whole parameter.
            values: As many numbers as `take` gives.
        """
        values = values.to(self.tensor.device)
        if self.tensor.is_contiguous():
            self.tensor.view(-1).index_copy_(0, self._held(positions, shape), values)
        else:
            self.tensor[self._index(positions, shape)] = values

    def _held(self, positions: Tensor, shape: torch.Size) -> Tensor:
        """Turn flat positions in the whole parameter into those in what is held here."""
        positions = positions.to(self.tensor.device)
        if self.tensor.shape == shape:
            return positions
        positions = positions - self.first * shape[1:].numel()
        return positions[(positions >= 0) & (positions < self.tensor.numel())]

    def _index(self, positions: Tensor, shape: torch.Size) -> tuple[Tensor, ...]:
        """Turn flat positions in the whole parameter into one index a dimension."""
        held = self._held(positions, shape)
        return torch.unravel_index(held, self.tensor.shape)


@dataclass(frozen=True)
class Stored:
    """A parameter of a model, or one slice of one, whose numbers can be changed.

    Attributes:
        parameter_shape: The shape of the whole parameter.
        copies: What this process holds of it, as often as that is kept; a change reaches each.
        row: Which slice along the first dimension. None: all.

    Example:
        >>> weight = nn.Parameter(torch.tensor([[1.0, 2.0]]))
        >>> stored = Stored(weight.shape, (Rows(weight.detach()),))
        >>> stored.put(torch.tensor([1]), stored.take(torch.tensor([1])) * 3)
        >>> weight.data
        tensor([[1., 6.]])
    """

    parameter_shape: torch.Size
    copies: tuple[Rows, ...]
    row: int | None = None

    @property
    def shape(self) -> torch.Size:
        """The shape of the parameter or slice."""
        return self.parameter_shape if self.row is None else self.parameter_shape[1:]

    def part(self, row: int) -> "Stored":
        """Return a slice: one index of the first dimension."""
        return Stored(self.parameter_shape, self.copies, row)

    def take(self, positions: Tensor) -> Tensor:
        """Return a copy of the numbers at flat positions, of those that this process holds."""
        return self.copies[0].take(self._positions(positions), self.parameter_shape)

    def put(self, positions: Tensor, values: Tensor) -> None:
        """Write numbers that `take` gave, or as many others, to flat positions."""
        for rows in self.copies:
            rows.put(self._positions(positions), self.parameter_shape, values)

    def _positions(self, positions: Tensor) -> Tensor:
        """Return flat positions in the whole parameter."""
        return positions if self.row is None else positions + self.row * self.shape.numel()


def stored_parameters(model: nn.Module) -> dict[str, Stored]:
    """Return all parameters of a model by every name that they have.

    Raises:
        InputError: If the numbers of one of them are offloaded to the disk, or nowhere.
    """
    found: dict[str, Stored] = {}
    for group in users(model):
        copies: dict[int, Rows] = {}
        for _, module, attribute in group:
            _in_memory(_find(module, attribute), module, attribute)
            for tensor in _copies(module, attribute):
                here = _here(tensor).detach()
                copies[here.data_ptr()] = Rows(here, _first_row(tensor))
        stored = Stored(getattr(*group[0][1:]).shape, tuple(copies.values()))
        found |= dict.fromkeys([name for name, _, _ in group], stored)
    return found


def _here(tensor: Tensor) -> Tensor:
    """Return what this process holds of a tensor."""
    if not isinstance(tensor, DTensor):
        return tensor
    rows: Tensor = tensor.to_local()
    return rows.detach()


def _rows_each(tensor: DTensor) -> int:
    """Return how many rows of a spread tensor each process holds; the last ones hold fewer."""
    if tensor.device_mesh.ndim != 1 or not tensor.placements[0].is_shard(0):
        raise InputError(
            f"model: a weight is spread over processes as {tensor.placements}, but only rows of it "
            "may be; use ModelParallelStrategy as it is, or fully_shard along the first dimension"
        )
    return -(-tensor.shape[0] // tensor.device_mesh.size())


def _first_row(tensor: Tensor) -> int:
    """Return which row is the first that this process holds."""
    if not isinstance(tensor, DTensor):
        return 0
    return _rows_each(tensor) * tensor.device_mesh.get_local_rank()


def _whole_row(tensor: DTensor, row: int) -> Tensor:
    """Return one row of a spread tensor in every process, without the others."""
    owner, place = divmod(row, _rows_each(tensor))
    group = tensor.device_mesh.get_group()
    if tensor.device_mesh.get_local_rank() == owner:
        found = _here(tensor)[place].clone()
    else:
        found = torch.empty(tensor.shape[1:], dtype=tensor.dtype, device=tensor.device)
    distributed.broadcast(found, group=group, group_src=owner)
    return found


def _find(module: nn.Module, attribute: str) -> Tensor:
    """Return a parameter or buffer where its numbers are kept, or what stands for them."""
    kept = _kept(module, attribute)
    if kept is not None:
        return _lasting(kept, module, attribute)
    own: Tensor = getattr(module, attribute)
    return own


def _kept(module: nn.Module, attribute: str) -> Mapping[str, Tensor] | None:
    """Return where an offloaded parameter or buffer is kept; None if it is not offloaded."""
    for hook in placing_hooks(module):
        offloaded = hook.offload and (hook.offload_buffers or attribute in module._parameters)
        if offloaded and attribute in hook.weights_map:
            found: Mapping[str, Tensor] = hook.weights_map
            return found
    return None


def _copies(module: nn.Module, attribute: str) -> list[Tensor]:
    """Return the numbers where they are kept, and copies for what is tied to them on devices."""
    tensor = _find(module, attribute)
    tied = [hook.tied_params_map or {} for hook in placing_hooks(module) if hook.offload]
    return [tensor, *(copy for each in tied for copy in each.get(tensor.data_ptr(), {}).values())]


def _in_memory(tensor: Tensor, module: nn.Module, attribute: str) -> None:
    """Refuse a tensor without numbers."""
    if tensor.is_meta:
        raise InputError(
            f"model: the numbers of {attribute} of a {type(module).__name__} are not in memory "
            "(its device is meta), but they are needed; load the weights, and offload without "
            "preload_module_classes"
        )


def _lasting(kept: Mapping[str, Tensor], module: nn.Module, attribute: str) -> Tensor:
    """Return an offloaded tensor; refuse one that is read from a file whenever it is needed."""
    tensor, again = kept[attribute], kept[attribute]
    if tensor.data_ptr() != again.data_ptr():
        raise InputError(
            f"model: the numbers of {attribute} of a {type(module).__name__} are offloaded to the "
            "disk, but an edit would have to change files there; offload to the CPU instead"
        )
    return tensor


def _named(model: nn.Module, name: str) -> Tensor:
    """Return the numbers of a parameter by its name, from the disk if they are there."""
    path, _, attribute = name.rpartition(".")
    module = model.get_submodule(path)
    kept = _kept(module, attribute)
    return numbers(module, attribute) if kept is None else kept[attribute]


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def placing_hooks(module: nn.Module) -> Iterator[Any]:
    """Go through Accelerate's hooks on a module that place its parameters."""
    hook = getattr(module, "_hf_hook", None)
    if hook is None:
        return
    from accelerate.hooks import AlignDevicesHook, SequentialHook

    for each in hook.hooks if isinstance(hook, SequentialHook) else (hook,):
        if isinstance(each, AlignDevicesHook):
            yield each
