"""Models whose weights stay in files and are read one by one, edited as they are read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

from mathneuro.edit import TIED, Edit, check_shape
from mathneuro.errors import InputError
from mathneuro.storage import Rows, Stored, placing_hooks
from mathneuro.weights import find_stored

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EditedReads(Mapping[str, Tensor]):
    """The weights of one module as files hold them, with an edit applied to what is read.

    Args:
        files: The weights, by their names in the module.
        prefix: What those names begin with in the model.
        edit: The edit.
        parts: Names of the weights of the edit, by the name of the parameter that holds them.
    """

    def __init__(
        self, files: Mapping[str, Tensor], prefix: str, edit: Edit, parts: Mapping[str, list[str]]
    ) -> None:
        self._files = files
        self._prefix = prefix
        self._edit = edit
        self._parts = parts

    def __getitem__(self, name: str) -> Tensor:
        """Read a weight, and multiply what is selected of it."""
        tensor = self._files[name]
        names = self._parts.get(f"{self._prefix}{name}", [])
        if not names:
            return tensor
        tensor = tensor.clone()
        whole = {f"{self._prefix}{name}": Stored(tensor.shape, (Rows(tensor),))}
        for each in names:
            stored = find_stored(whole, each)
            if stored is None:
                raise RuntimeError(f"Expected {each} within {self._prefix}{name}.")
            positions = self._edit.selection.positions[each]
            values = stored.take(positions) * self._edit.factor_of(each)
            if not bool(values.isfinite().all()):
                raise InputError(
                    f"edit: {each} times the factor {self._edit.factor_of(each):g} is more than "
                    f"{tensor.dtype} can hold; use a smaller factor or another model.dtype"
                )
            stored.put(positions, values)
        return tensor

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._files)

    def __len__(self) -> int:
        """Return how many weights there are."""
        return len(self._files)


@contextmanager
def edited_on_reading(model: "PreTrainedModel", edit: Edit) -> Iterator[None]:
    """Apply an edit to all that is read of a model on the disk in this block.

    Args:
        model: A model of which every weight of the edit is offloaded to the disk.
        edit: The edit.

    Raises:
        InputError: If the model has no such weight, one of another shape, or one that is tied to
            another weight, which the edit would tear apart.
    """
    parts = _parts(model, edit)
    hooks = [
        (f"{name}." if name else "", hook)
        for name, module in model.named_modules()
        for hook in placing_hooks(module)
        if hook.weights_map is not None
    ]
    before = [hook.weights_map for _, hook in hooks]
    try:
        for prefix, hook in hooks:
            hook.weights_map = EditedReads(hook.weights_map, prefix, edit, parts)
        yield
    finally:
        for (_, hook), files in zip(hooks, before, strict=True):
            hook.weights_map = files


def _parts(model: nn.Module, edit: Edit) -> dict[str, list[str]]:
    """Find the parameter that holds each selected weight."""
    shapes = {name: Stored(each.shape, ()) for name, each in model.state_dict().items()}
    tied: Mapping[str, str] = getattr(model, "all_tied_weights_keys", {})
    shared = {*tied, *tied.values()}
    parts: dict[str, list[str]] = {}
    for name, shape in edit.selection.shapes.items():
        found = find_stored(shapes, name)
        check_shape(name, shape, None if found is None else found.shape)
        if not edit.selection.positions[name].numel():
            continue
        if name in shared:
            raise InputError(TIED.format(name=name))
        parameter = name if name in shapes else name.rpartition(".")[0]
        parts.setdefault(parameter, []).append(name)
    return parts
