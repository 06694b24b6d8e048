"""Where the numbers of a model's parameters are, for those who read, compare or change them.

A module holds its parameters itself, or Accelerate has offloaded them: outside of a forward pass
the module then holds parameters without numbers, and a hook on it knows the real ones.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError

User = tuple[str, nn.Module, str]
"""One use of a parameter: its name there, the module and the module's attribute."""


def numbers(module: nn.Module, attribute: str) -> Tensor:
    """Return the real numbers of a parameter or buffer: the tensor itself, not a copy.

    Raises:
        InputError: If they are nowhere to be found.

    Example:
        >>> from accelerate import cpu_offload
        >>> linear = cpu_offload(nn.Linear(1, 1, bias=False), torch.device("cpu"))
        >>> linear.weight.device, numbers(linear, "weight").device
        (device(type='meta'), device(type='cpu'))
    """
    tensor = _find(module, attribute)
    if tensor.is_meta:
        raise InputError(
            f"model: the numbers of {attribute} of a {type(module).__name__} are not in memory "
            "(its device is meta), but they are needed; load the weights, and offload without "
            "preload_module_classes"
        )
    return tensor


def saved_numbers(model: nn.Module) -> dict[str, Tensor]:
    """Return the real numbers of all parameters and buffers that are saved, by name."""
    state: Mapping[str, Tensor] = model.state_dict()
    return {
        name: _named(model, name) if tensor.is_meta else tensor for name, tensor in state.items()
    }


def users(model: nn.Module) -> list[list[User]]:
    """Group all parameters by storage: every name, module and attribute that uses it."""
    grouped: dict[object, list[User]] = {}
    for module_name, module in model.named_modules():
        for attribute, parameter in module.named_parameters(recurse=False):
            name = f"{module_name}.{attribute}" if module_name else attribute
            tensor = _copies(module, attribute)[-1]
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
        for hook in _hooks(each):
            if hook.offload and hook.execution_device is not None:
                return torch.device(hook.execution_device)
        parameter = next(each.parameters(recurse=False), None)
        if parameter is not None:
            return parameter.device
    raise ValueError(f"Expected a module with parameters but got {type(module).__name__}.")


def storage_devices(model: nn.Module) -> list[str]:
    """Return the names of the devices that hold a model's parameters, in rising order."""
    return sorted({str(_find(*group[0][1:]).device) for group in users(model)})


def present(module: nn.Module) -> AbstractContextManager[Any]:
    """Let a module itself hold its parameters in this block, as it does in its forward pass."""
    from accelerate.utils import align_module_device

    held: AbstractContextManager[Any] = align_module_device(module)
    return held


@dataclass(frozen=True)
class Stored:
    """A parameter of a model, or one slice of one, whose numbers can be changed.

    Attributes:
        tensors: The numbers, as often as they are kept; a change reaches each of them.

    Example:
        >>> weight = nn.Parameter(torch.tensor([[1.0, 2.0]]))
        >>> stored = Stored((weight.detach(),))
        >>> stored.put(torch.tensor([1]), stored.take(torch.tensor([1])) * 3)
        >>> weight.data
        tensor([[1., 6.]])
    """

    tensors: tuple[Tensor, ...]

    @property
    def shape(self) -> torch.Size:
        """The shape of the whole parameter or slice."""
        return self.tensors[0].shape

    def part(self, row: int) -> "Stored":
        """Return a slice: one index of the first dimension."""
        return Stored(tuple(tensor[row] for tensor in self.tensors))

    def take(self, positions: Tensor) -> Tensor:
        """Return a copy of the numbers at flat positions."""
        tensor = self.tensors[0]
        return tensor[_place(tensor, positions)].clone()

    def put(self, positions: Tensor, values: Tensor) -> None:
        """Write numbers that `take` gave, or as many others, to flat positions."""
        for tensor in self.tensors:
            tensor[_place(tensor, positions)] = values.to(tensor.device)


def stored_parameters(model: nn.Module) -> dict[str, Stored]:
    """Return all parameters of a model by every name that they have.

    Raises:
        InputError: If the numbers of one of them are not in memory.
    """
    found: dict[str, Stored] = {}
    for group in users(model):
        tensors: dict[int, Tensor] = {}
        for _, module, attribute in group:
            for tensor in _copies(module, attribute):
                tensors[id(tensor) if tensor.is_meta else tensor.data_ptr()] = tensor.detach()
        found |= dict.fromkeys([name for name, _, _ in group], Stored(tuple(tensors.values())))
    return found


def _find(module: nn.Module, attribute: str) -> Tensor:
    """Return a parameter or buffer where its numbers are kept, or what stands for them."""
    for hook in _hooks(module):
        offloaded = hook.offload and (hook.offload_buffers or attribute in module._parameters)
        if offloaded and attribute in hook.weights_map:
            return _lasting(hook.weights_map, module, attribute)
    own: Tensor = getattr(module, attribute)
    return own


def _copies(module: nn.Module, attribute: str) -> list[Tensor]:
    """Return the numbers where they are kept, and copies for what is tied to them on devices."""
    tensor = _find(module, attribute)
    tied = [hook.tied_params_map or {} for hook in _hooks(module) if hook.offload]
    return [tensor, *(copy for each in tied for copy in each.get(tensor.data_ptr(), {}).values())]


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
    path, _, attribute = name.rpartition(".")
    return numbers(model.get_submodule(path), attribute)


def _hooks(module: nn.Module) -> Iterator[Any]:
    """Go through Accelerate's hooks on a module that place its parameters."""
    hook = getattr(module, "_hf_hook", None)
    if hook is None:
        return
    from accelerate.hooks import AlignDevicesHook, SequentialHook

    for each in hook.hooks if isinstance(hook, SequentialHook) else (hook,):
        if isinstance(each, AlignDevicesHook):
            yield each


def _place(tensor: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
    """Turn flat positions into one index a dimension, since a tensor need not be contiguous."""
    return torch.unravel_index(positions.to(tensor.device), tensor.shape)
