"""Find the parameters of a language model that matter for one skill, edit them, measure it.

The pieces work without Lightning, on any ``nn.Module``: `find_linear_weights`, `InputNorms`,
`Importance`, `select`, `Selection` and `Edit`; a `Weight` is one matrix that takes part. Methods
that choose neurons need `find_neurons` and `ActivationCounts` besides.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mathneuro.activations import ActivationCounts
    from mathneuro.edit import Edit
    from mathneuro.errors import InputError
    from mathneuro.importance import Importance
    from mathneuro.layers import find_linear_weights
    from mathneuro.methods import select
    from mathneuro.neurons import find_neurons
    from mathneuro.norms import InputNorms
    from mathneuro.selection import Selection
    from mathneuro.weights import Weight

__all__ = [
    "ActivationCounts",
    "Edit",
    "Importance",
    "InputError",
    "InputNorms",
    "Selection",
    "Weight",
    "find_linear_weights",
    "find_neurons",
    "select",
]

_HOMES = {
    "ActivationCounts": "activations",
    "Edit": "edit",
    "Importance": "importance",
    "InputError": "errors",
    "InputNorms": "norms",
    "Selection": "selection",
    "Weight": "weights",
    "find_linear_weights": "layers",
    "find_neurons": "neurons",
    "select": "methods",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mathneuro' has no attribute {name!r}")
    return getattr(import_module(f"mathneuro.{_HOMES[name]}"), name)
