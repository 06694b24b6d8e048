"""Where the weights of a model go that does not fit on one device, as Accelerate places them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mathneuro.errors import InputError

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from transformers import PreTrainedModel

PLANS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Plans that transformers makes a device map by."""

KEEPING = ("32-true", "16-mixed", "bf16-mixed")
"""Precisions under which Lightning leaves weights as they are."""


@dataclass(frozen=True)
class Placement:
    """Where the weights of a model go.

    Attributes:
        device_map: ``auto``, ``balanced``, ``balanced_low_0`` or ``sequential``; or the device of
            every module by its name, where ``cpu`` is where weights wait that run on the other
            devices. None: all stay together.
        max_memory: How much of each device may be used, such as ``{"0": "20GiB", "cpu": "60GiB"}``.
            None: all.
    """

    device_map: Mapping[str, int | str] | str | None = None
    max_memory: Mapping[int | str, str] | None = None

    def __post_init__(self) -> None:
        """Refuse a map or a memory that makes no sense."""
        if isinstance(self.device_map, str):
            if self.device_map not in PLANS:
                raise InputError(
                    f"model.device_map: got {self.device_map!r}, but it must be one of "
                    f"{', '.join(PLANS)}, or name the device of every module; to keep the whole "
                    "model on one device, leave it out"
                )
        elif self.device_map is not None:
            for name, device in self.device_map.items():
                _check_device(name, device)
        if self.max_memory is not None:
            if not isinstance(self.device_map, str):
                raise InputError(
                    "model.max_memory: it is given, but only a device map that is made by a plan "
                    "follows it; set model.device_map to auto"
                )
            for place, memory in self.max_memory.items():
                _check_memory(place, memory)

    @property
    def is_fixed(self) -> bool:
        """Whether the weights stay where they were placed on loading."""
        return self.device_map is not None

    @property
    def names_modules(self) -> bool:
        """Whether the map names modules, rather than a plan."""
        return isinstance(self.device_map, Mapping)

    def check_trainer(self, trainer: "Trainer") -> None:
        """Refuse settings of the Trainer under which the weights could not stay.

        Raises:
            InputError: If there are several processes, or a precision that converts weights.
        """
        if not self.is_fixed:
            return
        if trainer.world_size > 1:
            raise InputError(
                f"model.device_map: got {_shown(self.device_map)}, but there are "
                f"{trainer.world_size} processes, each of which would place the whole model; set "
                "trainer.devices to 1, or leave model.device_map out"
            )
        if trainer.precision not in KEEPING:
            raise InputError(
                f"trainer.precision: got {trainer.precision}, but with model.device_map the "
                "weights stay as they were loaded; leave it out, and set model.dtype instead"
            )

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of ``from_pretrained``.

        Raises:
            InputError: If a device is named that is not there.
        """
        if self.device_map is None:
            return {}
        if isinstance(self.device_map, str):
            keywords: dict[str, Any] = {"device_map": self.device_map}
            if self.max_memory is not None:
                memory = {_number(name): each for name, each in self.max_memory.items()}
                for name in memory:
                    _check_there("model.max_memory", name)
                keywords["max_memory"] = memory
            return keywords
        devices = {name: _number(device) for name, device in self.device_map.items()}
        for device in devices.values():
            _check_there("model.device_map", device)
        return {"device_map": devices}

    def check_modules(self, model: nn.Module) -> None:
        """Refuse a map that names modules that are not there, or leaves weights out.

        Args:
            model: A model of the same modules; its weights do not matter.

        Raises:
            InputError: If so.
        """
        if not isinstance(self.device_map, Mapping):
            return
        modules = dict(model.named_modules())
        unknown = [name for name in self.device_map if name not in modules]
        if unknown:
            raise InputError(
                f"model.device_map: got a device for {unknown[0]!r}, but {type(model).__name__} "
                "has no module of that name; '' is the name of the whole model"
            )
        prefixes = tuple(f"{name}." if name else "" for name in self.device_map)
        missing = [name for name in model.state_dict() if not name.startswith(prefixes)]
        if missing:
            raise InputError(
                f"model.device_map: it names no device for {missing[0]}, but every weight needs "
                "one; add its module, or the whole model under the name ''"
            )

    def check_placed(self, model: "PreTrainedModel") -> None:
        """Refuse a model part of which did not fit anywhere but on the disk.

        Raises:
            InputError: If so.
        """
        devices: Mapping[str, int | str] = getattr(model, "hf_device_map", {})
        on_disk = [name for name, device in devices.items() if device == "disk"]
        if on_disk:
            first = on_disk[0] or "the model"
            more = f" (and {len(on_disk) - 1} more)" if len(on_disk) > 1 else ""
            raise InputError(
                f"model.device_map: got {_shown(self.device_map)}, which leaves {first}{more} on "
                "the disk, where an edit would have to change the checkpoint; raise "
                "model.max_memory (that of cpu, too), or use a machine with more memory"
            )


def _check_device(name: str, device: int | str) -> None:
    if device == "disk":
        raise InputError(
            f"model.device_map: got disk for {name!r}, but an edit would have to change the "
            "checkpoint there; give cpu or a device"
        )
    number = _number(device)
    try:
        known = torch.device(number).type if isinstance(number, str) else "number"
    except RuntimeError:
        known = ""
    if isinstance(number, int) and number < 0:
        known = ""
    if known in ("", "meta") or (known == "cpu" and device != "cpu"):
        raise InputError(
            f"model.device_map: got {device!r} for {name!r}, but it must be cpu, the number of an "
            "accelerator, or its name such as cuda:0; correct it"
        )


def _check_there(field: str, device: int | str) -> None:
    """Refuse an accelerator that this machine does not have."""
    there = torch.accelerator.device_count()
    number = device if isinstance(device, int) else torch.device(device).index
    if device != "cpu" and (number or 0) >= there:
        raise InputError(
            f"{field}: got {device}, but this machine has {there} accelerators, counted from 0; "
            "name one of them, or cpu"
        )


def _check_memory(name: int | str, memory: str) -> None:
    from accelerate.utils import convert_file_size_to_int

    if name != "cpu" and not str(name).isdecimal():
        raise InputError(
            f"model.max_memory: got {name!r}, but it must name cpu or the number of an "
            "accelerator; correct it"
        )
    try:
        is_size = convert_file_size_to_int(memory) >= 0
    except ValueError:
        is_size = False
    if not is_size:
        raise InputError(
            f"model.max_memory: got {memory!r} for {name!r}, but it must be a size; write it as "
            "20GiB"
        )


def _number(device: int | str) -> int | str:
    """Return the number of an accelerator as a number."""
    return int(device) if isinstance(device, str) and device.isdecimal() else device


def _shown(device_map: Mapping[str, int | str] | str | None) -> str:
    """Return a device map in a few words."""
    if not isinstance(device_map, Mapping):
        return str(device_map)
    counts = Counter(map(str, device_map.values()))
    return "a map to " + ", ".join(sorted(counts))
