"""How often each neuron of the MLPs is active, counted during forward passes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError
from mathneuro.experts import expert_matrices, listening
from mathneuro.neurons import Neurons

Hook = Callable[[nn.Module, Any, Tensor], None]
"""A hook that is called after a module has run."""


@dataclass
class _Batch:
    """What is known about the batch that is going through the model.

    Attributes:
        real: Which tokens belong to a text, ``[texts, tokens]``.
        weights: How often each text counts, float64 of shape ``[texts]`` or ``[draws, texts]``.
        ran: What was counted, by name.
    """

    real: Tensor
    weights: Tensor
    ran: set[str] = field(default_factory=set)


class ActivationCounts:
    """Counts, neuron by neuron, the tokens of texts at which its activation is above 0.

    The numerator of LAPE's probabilities (METHOD.md, "LAPE"; Tang et al. 2024): of the activation
    function's output, before any product with a gate. What stands at padding never counts. A text
    that was drawn several times counts as often. A neuron of an expert is active at those of the
    tokens that were routed to the expert; at the others it gives nothing, so that it is not active
    there, and its probability too is a share of all tokens.

    Args:
        neurons: The neurons, by the name of their output projection's weight, from
            `mathneuro.neurons.find_neurons`.
        draws: For how many draws of texts at once. None: for one, whose counts have no dimension
            for draws.

    Example:
        >>> from mathneuro.weights import Weight
        >>> relu, linear = nn.ReLU(), nn.Linear(2, 3)
        >>> counts = ActivationCounts({"weight": Neurons(relu, Weight("weight", linear))})
        >>> with counts.recording(), counts.batch(torch.tensor([[1, 1, 0]])):
        ...     _ = linear(relu(torch.tensor([[[3.0, -1.0], [4.0, 0.0], [7.0, 7.0]]])))
        >>> counts.counts()["weight"], counts.tokens
        (tensor([2, 0]), tensor(2))
    """

    def __init__(self, neurons: Mapping[str, Neurons], draws: int | None = None) -> None:
        self._neurons = dict(neurons)
        self._leading = () if draws is None else (draws,)
        self._experts: dict[nn.Module, dict[int, str]] = {}
        for name, each in self._neurons.items():
            if each.projection.expert is not None:
                experts = self._experts.setdefault(each.projection.module, {})
                experts[each.projection.expert] = name
        self._sums: dict[str, Tensor] = {}
        self._batch: _Batch | None = None
        self._routed: tuple[str, Tensor] | None = None
        self.tokens = torch.zeros(self._leading, dtype=torch.int64)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep hooks on the modules; they are gone afterwards, also after an exception."""
        with ExitStack() as stack:
            stack.enter_context(listening(dict.fromkeys(self._experts, self)))
            shared = {
                self._neurons[name].activation
                for experts in self._experts.values()
                for name in experts.values()
            }
            hooks: dict[nn.Module, Hook] = dict.fromkeys(shared, self._routed_hook)
            for name, each in self._neurons.items():
                if each.projection.expert is None:
                    hooks[each.activation] = self._hook(name)
            for activation, hook in hooks.items():
                stack.callback(activation.register_forward_hook(hook).remove)
            try:
                yield
            finally:
                self._batch = None

    @contextmanager
    def batch(self, attention_mask: Tensor, counts: Tensor | None = None) -> Iterator[None]:
        """Tell which texts go through the model in this block.

        Args:
            attention_mask: 1 where a token belongs to a text, 0 at padding, ``[texts, tokens]``.
            counts: How often each text was drawn, ``[texts]``, or ``[draws, texts]`` if there are
                several draws. None: once.

        Raises:
            InputError: If an MLP does not run once on every token.
        """
        real = attention_mask != 0
        drawn = torch.ones((*self._leading, len(real)), dtype=torch.int64)
        drawn = drawn if counts is None else counts.cpu()
        self._batch = _Batch(real, drawn.to(real.device, torch.float64))
        try:
            yield
            for name, each in self._neurons.items():
                ran = name if each.projection.expert is None else each.projection.parameter_name
                if ran not in self._batch.ran:
                    self._fail(name, "it does not run in a forward pass")
        finally:
            self._batch, self._routed = None, None
        self.tokens += drawn @ real.sum(dim=1).cpu()

    def counts(self) -> dict[str, Tensor]:
        """Return the counts so far, by the name of the output projection's weight.

        Int64 of shape ``[neurons]``, or ``[draws, neurons]`` if there are several draws, on the
        CPU. They are added up in float64, which holds every whole number up to 2 to the power of
        53.
        """
        nothing = {
            name: torch.zeros((*self._leading, each.count))
            for name, each in self._neurons.items()
            if name not in self._sums
        }
        sums = self._sums | nothing
        return {name: sums[name].to(torch.int64).cpu() for name in self._neurons}

    def begin(self, module: nn.Module, tokens: int) -> None:
        """Hear that a module with experts runs (`mathneuro.experts.ExpertsListener`)."""
        if self._batch is not None:
            name = next(iter(self._experts[module].values()))
            self._run(self._neurons[name].projection.parameter_name, tokens)

    def routed(
        self, module: nn.Module, attribute: str, expert: int, tokens: Tensor, inputs: Tensor
    ) -> None:
        """Hear which tokens the first matrix of an expert reads; its activation runs next."""
        name = self._experts[module].get(expert)
        is_first = attribute == expert_matrices(module)[0]
        self._routed = (name, tokens) if is_first and name is not None else None

    def end(self, module: nn.Module) -> None:
        """Hear that a module with experts has run."""
        self._routed = None

    def _routed_hook(self, _module: nn.Module, _inputs: Any, output: Tensor) -> None:  # noqa: ANN401
        """Count what an expert gives at the tokens that were routed to it."""
        if self._batch is None or self._routed is None:
            return
        name, tokens = self._routed
        real = self._batch.real.to(output.device)
        active = (output > 0) & real.flatten()[tokens][:, None]
        weights = self._batch.weights.to(output.device)
        self._add(name, weights[..., tokens // real.shape[1]], active)

    def _hook(self, name: str) -> Hook:
        def count(_module: nn.Module, _inputs: Any, output: Tensor) -> None:  # noqa: ANN401
            if self._batch is None:
                return
            real = self._batch.real.to(output.device)
            self._run(name, output.numel() // output.shape[-1])
            active = (output > 0).reshape(*real.shape, -1) & real[..., None]
            self._add(name, self._batch.weights.to(output.device), active.sum(dim=1))

        return count

    def _add(self, name: str, weights: Tensor, active: Tensor) -> None:
        """Add counts of texts or tokens, ``[rows, neurons]``, each as often as it counts."""
        counted = weights @ active.to(torch.float64)
        self._sums[name] = self._sums[name] + counted if name in self._sums else counted

    def _run(self, name: str, tokens: int) -> None:
        """Note that something runs, and refuse it if that is not once on every token."""
        if self._batch is None:
            return
        if name in self._batch.ran:
            self._fail(name, "it runs more than once in a forward pass")
        if tokens != self._batch.real.numel():
            self._fail(name, "it does not run on every token of every text once")
        self._batch.ran.add(name)

    def _fail(self, name: str, reason: str) -> None:
        raise InputError(
            f"model: the activations before {name} cannot be counted, since {reason}; leave it out "
            f"with model.exclude: [{name}*]"
        )
