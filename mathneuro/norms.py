"""Norms of the inputs of linear layers, text by text, recorded during forward passes."""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError
from mathneuro.experts import listening
from mathneuro.text_norms import Padding, text_norms
from mathneuro.totals import Totals
from mathneuro.weights import Weight

NOT_ONCE = "its input does not hold every token of every text once"
TWICE = "it runs more than once in a forward pass"
NOT_RUN = "its module is not run in a forward pass"


@dataclass
class _Batch:
    """What is known about the batch that is going through the model.

    Attributes:
        padding: Where padding stands, on each device that was asked for. None: nowhere.
        real: Which of all tokens, texts after texts, belong to a text. None: all.
        shape: How many texts and tokens.
        norms: Norms, ``[texts, features]``, by the name of the parameter that reads the input;
            experts' one after the other.
        same_as: Parameters that read the same tensor as another one.
        squares: Sums of squares of experts that are running, ``[texts, experts, features]``.
        inputs: What was read, by its identity, so that it is recognised.
    """

    padding: dict[torch.device, Padding] | None
    real: Tensor | None
    shape: torch.Size
    norms: dict[str, Tensor] = field(default_factory=dict)
    same_as: dict[str, str] = field(default_factory=dict)
    squares: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[int, tuple[weakref.ref[Tensor], int, str]] = field(default_factory=dict)

    def padding_on(self, device: torch.device) -> Padding | None:
        """Return where padding stands, as indices on a device: inputs can be on several."""
        if self.padding is None:
            return None
        if device not in self.padding:
            known = next(iter(self.padding.values()))
            self.padding[device] = known.to(device)
        return self.padding[device]


class InputNorms:
    """Adds up the norms of the inputs of linear layers over texts, in float64.

    One vector of as many numbers as the layer has inputs is kept for each distinct input, never a
    buffer of the weight's size. Layers that read the same tensor (query, key and value; gate and
    up) share the work. What an expert reads of a text are the tokens that were routed to it; the
    norm is 0 where there are none.

    Args:
        weights: The weights whose inputs are watched, by name.
        draws: For how many draws of texts at once. None: for one, whose sums have no dimension for
            draws.

    Example:
        >>> linear = nn.Linear(2, 3)
        >>> norms = InputNorms({"weight": Weight("weight", linear)})
        >>> with norms.recording(), norms.batch(torch.tensor([[1, 1, 0]]), ["a text"]):
        ...     _ = linear(torch.tensor([[[3.0, 1.0], [4.0, 0.0], [7.0, 7.0]]]))
        >>> norms.sums()["weight"]
        tensor([5., 1.], dtype=torch.float64)
    """

    def __init__(self, weights: Mapping[str, Weight], draws: int | None = None) -> None:
        self._weights = dict(weights)
        self._leading = () if draws is None else (draws,)
        # The experts of a parameter are watched together, under the parameter's name.
        self._watched = {
            (name if each.expert is None else each.parameter_name): each
            for name, each in self._weights.items()
        }
        self._experts = {
            (each.module, each.attribute): name
            for name, each in self._watched.items()
            if each.expert is not None
        }
        self._totals = Totals(self._leading)
        self._batch: _Batch | None = None
        self.texts = torch.zeros(self._leading, dtype=torch.int64)
        self.forwarded = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep hooks on the modules; they are gone afterwards, also after an exception."""
        with ExitStack() as stack:
            stack.enter_context(listening({module: self for module, _ in self._experts}))
            for name, weight in self._watched.items():
                if weight.expert is None:
                    handle = weight.module.register_forward_pre_hook(
                        self._hook(name), with_kwargs=True
                    )
                    stack.callback(handle.remove)
            try:
                yield
            finally:
                self._batch = None

    @contextmanager
    def batch(
        self, attention_mask: Tensor, names: Sequence[str], counts: Tensor | None = None
    ) -> Iterator[None]:
        """Tell which texts go through the model in this block, and add up their norms at its end.

        Args:
            attention_mask: 1 where a token belongs to a text, 0 at padding, ``[texts, tokens]``.
            names: How to name each text to the user if its activations are not finite.
            counts: How often each text was drawn, ``[texts]``, or ``[draws, texts]`` if there are
                several draws. None: once.

        Raises:
            InputError: If an input holds NaN or Inf at a token of a text.
        """
        padding, shape = Padding.find(attention_mask), attention_mask.shape
        if padding is not None:
            where, real = {attention_mask.device: padding}, (attention_mask != 0).flatten()
            self._batch = _Batch(where, real, shape)
        else:
            self._batch = _Batch(None, None, shape)
        try:
            yield
            self._totals.add(self._batch.norms, self._batch.same_as, names, counts)
        finally:
            self._batch = None
        self.texts += len(names) if counts is None else counts.sum(dim=-1).cpu()
        self.forwarded += len(names)

    def observe(self, name: str, inputs: Tensor) -> None:
        """Record a tensor as the input of a module, or of one that is not itself run.

        Args:
            name: Name of the module's weight.
            inputs: The input that it would read, ``[texts, tokens, features]``; some models put
                texts and tokens in one dimension, or a dimension of one between them.

        Raises:
            InputError: If it has another shape, or the module ran before in this batch.
        """
        batch = self._batch
        if batch is None:
            return
        flat = inputs.dim() == 2 and inputs.shape[0] == batch.shape.numel()
        if not flat and _sizes(inputs.shape[:-1]) != _sizes(batch.shape):
            self.fail(name, NOT_ONCE)
            return
        shaped = inputs.reshape(*batch.shape, -1)
        if shaped.shape[-1] != self._watched[name].in_features:
            self.fail(name, NOT_ONCE)
            return
        if name in batch.norms or name in batch.same_as:
            self.fail(name, TWICE)
            return
        # Tensors of inference mode do not count their changes, so that sameness cannot be told.
        version = -1 if inputs.is_inference() else inputs._version
        seen = batch.inputs.get(id(inputs))
        if seen is not None and seen[0]() is inputs and seen[1] == version >= 0:
            batch.same_as[name] = seen[2]
            return
        batch.inputs[id(inputs)] = (weakref.ref(inputs), version, name)
        batch.norms[name] = text_norms(shaped, batch.padding_on(shaped.device))

    def begin(self, module: nn.Module, tokens: int) -> None:
        """Hear that a module with experts runs (`mathneuro.experts.ExpertsListener`)."""
        for name, weight in self._of(module):
            batch = self._batch
            if batch is None:
                return
            if tokens != batch.shape.numel():
                self.fail(name, NOT_ONCE)
            elif name in batch.norms:
                self.fail(name, TWICE)
            else:
                # In float64 the order in which a GPU adds rows up does not show.
                size = batch.shape[0], len(weight.parameter), weight.in_features
                device = weight.parameter.device
                batch.squares[name] = torch.zeros(size, dtype=torch.float64, device=device)

    def routed(
        self, module: nn.Module, attribute: str, expert: int, tokens: Tensor, inputs: Tensor
    ) -> None:
        """Hear what one matrix of one expert reads."""
        batch, name = self._batch, self._experts.get((module, attribute))
        if batch is None or name is None or name not in batch.squares:
            return
        if batch.real is not None:
            kept = batch.real.to(tokens.device)[tokens]
            tokens, inputs = tokens[kept], inputs[kept]
        squares = inputs.to(torch.float64).square()
        batch.squares[name][:, expert].index_add_(0, tokens // batch.shape[1], squares)

    def end(self, module: nn.Module) -> None:
        """Hear that a module with experts has run."""
        for name, _ in self._of(module):
            if self._batch is not None and name in self._batch.squares:
                squares = self._batch.squares.pop(name)
                self._batch.norms[name] = squares.sqrt().to(torch.float32).flatten(1)

    def fail(self, name: str, reason: str) -> None:
        """Refuse a model one of whose inputs cannot be measured.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"model: the input of {name} cannot be measured, since {reason}; leave it out with "
            f"model.exclude: [{name}*]"
        )

    def measured(self) -> dict[str, Tensor]:
        """Return what `sums` returns, but for weights whose module never ran."""
        totals = self._totals.by_name()
        sums = {}
        for name, weight in self._weights.items():
            if weight.expert is None and name in totals:
                sums[name] = totals[name]
            elif weight.parameter_name in totals:
                shape = (len(weight.parameter), weight.in_features)
                each = totals[weight.parameter_name].unflatten(-1, shape)
                sums[name] = each[..., weight.expert, :]
        return sums

    def sums(self) -> dict[str, Tensor]:
        """Return the sums so far, by the name of the weight.

        Float64 of shape ``[features]``, or ``[draws, features]`` if there are several draws:
        ``a[d, j] = sum_s counts[d, s] * ||X_s[:, j]||_2``.

        Raises:
            InputError: If a module that takes part never ran.
        """
        if not self.forwarded:
            return {
                name: torch.zeros((*self._leading, each.in_features), dtype=torch.float64)
                for name, each in self._weights.items()
            }
        sums = self.measured()
        for name in self._weights:
            if name not in sums:
                self.fail(name, NOT_RUN)
        return sums

    def _of(self, module: nn.Module) -> list[tuple[str, Weight]]:
        """Return the watched parameters of a module with experts."""
        return [
            (name, self._watched[name])
            for (each, _), name in self._experts.items()
            if each is module
        ]

    def _hook(self, name: str) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
        def record(_module: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            self.observe(name, next(iter((*args, *keywords.values()))))

        return record


def _sizes(shape: torch.Size) -> list[int]:
    return [size for size in shape if size != 1]
