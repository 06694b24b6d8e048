"""Norms of the inputs of linear layers, text by text, recorded during forward passes."""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from mathneuro.errors import InputError


def text_norms(inputs: Tensor, padding: tuple[Tensor, ...] | None = None) -> Tensor:
    """Euclidean norm of every input feature over the tokens of each text.

    ``norm[s, j] = ||X_s[:, j]||_2`` (METHOD.md, "Importance"), computed in float32 whatever the
    type of the inputs.

    Args:
        inputs: Inputs of a linear layer, of shape ``[texts, tokens, features]``.
        padding: Where padding stands, as one vector of texts and one of tokens. What stands there
            never enters a norm, not even a NaN. None: there is no padding.

    Returns:
        Norms of shape ``[texts, features]``, float32.

    Example:
        >>> inputs = torch.tensor([[[3.0, 1.0], [4.0, 0.0], [float("nan"), 9.0]]])
        >>> text_norms(inputs, (torch.tensor([0]), torch.tensor([2])))
        tensor([[5., 1.]])
    """
    # Squares and a sum: torch's vector_norm over a middle dimension is many times slower on CPUs.
    squares = inputs.to(torch.float32).square()
    if padding is not None:
        squares[padding] = 0
    return squares.sum(dim=1).sqrt()


@dataclass
class _Batch:
    """What is known about the batch that is going through the model."""

    padding: tuple[Tensor, ...] | None
    shape: torch.Size
    norms: dict[str, Tensor] = field(default_factory=dict)
    same_as: dict[str, str] = field(default_factory=dict)
    inputs: dict[int, tuple[weakref.ref[Tensor], int, str]] = field(default_factory=dict)


class InputNorms:
    """Adds up the norms of the inputs of linear layers over texts, in float64.

    One vector of as many numbers as the layer has inputs is kept for each distinct input, never a
    buffer of the weight's size. Layers that read the same tensor (query, key and value; gate and
    up) share the work.

    Args:
        linears: The linear modules to watch, by the name of their weight.
        draws: For how many draws of texts at once. None: for one, whose sums have no dimension for
            draws.

    Example:
        >>> linear = nn.Linear(2, 3)
        >>> norms = InputNorms({"weight": linear})
        >>> with norms.recording(), norms.batch(torch.tensor([[1, 1, 0]]), ["a text"]):
        ...     _ = linear(torch.tensor([[[3.0, 1.0], [4.0, 0.0], [7.0, 7.0]]]))
        >>> norms.sums()["weight"]
        tensor([5., 1.], dtype=torch.float64)
    """

    def __init__(self, linears: Mapping[str, nn.Linear], draws: int | None = None) -> None:
        self._linears = dict(linears)
        self._leading = () if draws is None else (draws,)
        self._widths: dict[str, int] = {}
        self._same_as: dict[str, str] = {}
        self._total: Tensor | None = None
        self._batch: _Batch | None = None
        self.texts = torch.zeros(self._leading, dtype=torch.int64)
        self.forwarded = 0
        self.tokens = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep hooks on the modules; they are gone afterwards, also after an exception."""
        handles = [
            linear.register_forward_pre_hook(self._hook(name))
            for name, linear in self._linears.items()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
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
        padding = (attention_mask == 0).nonzero(as_tuple=True)
        self._batch = _Batch(padding if len(padding[0]) else None, attention_mask.shape)
        try:
            yield
            self._add_up(self._batch, names, counts)
        finally:
            self._batch = None
        self.texts += len(names) if counts is None else counts.sum(dim=-1).cpu()
        self.forwarded += len(names)
        self.tokens += int(attention_mask.sum())

    def observe(self, name: str, inputs: Tensor) -> None:
        """Record a tensor as the input of a module that is not itself run.

        Args:
            name: Name of the module's weight.
            inputs: The input that it would read, ``[texts, tokens, features]``, or with texts and
                tokens in one dimension, as some models flatten them.

        Raises:
            InputError: If it has another shape, or the module ran before in this batch.
        """
        batch = self._batch
        if batch is None:
            return
        flat = inputs.dim() == 2 and inputs.shape[0] == batch.shape.numel()
        shaped = inputs.view(*batch.shape, -1) if flat else inputs
        if shaped.shape[:-1] != batch.shape or name in batch.norms or name in batch.same_as:
            raise InputError(
                f"model: the layer of {name} got an input of shape {list(inputs.shape)} or ran "
                "twice in one forward pass, but it must see [texts, tokens, features] once; this "
                "kind of model is not supported"
            )
        # Tensors of inference mode do not count their changes, so that sameness cannot be told.
        version = -1 if inputs.is_inference() else inputs._version
        seen = batch.inputs.get(id(inputs))
        if seen is not None and seen[0]() is inputs and seen[1] == version >= 0:
            batch.same_as[name] = seen[2]
            return
        batch.inputs[id(inputs)] = (weakref.ref(inputs), version, name)
        batch.norms[name] = text_norms(shaped, batch.padding)

    def sums(self) -> dict[str, Tensor]:
        """Return the sums so far, by the name of the weight.

        Float64 of shape ``[features]``, or ``[draws, features]`` if there are several draws:
        ``a[d, j] = sum_s counts[d, s] * ||X_s[:, j]||_2``.

        Raises:
            InputError: If a module that takes part never ran.
        """
        if self._total is None:
            return {
                name: torch.zeros((*self._leading, linear.in_features), dtype=torch.float64)
                for name, linear in self._linears.items()
            }
        parts = torch.split(self._total, list(self._widths.values()), dim=-1)
        sums = dict(zip(self._widths, parts, strict=True))
        sums |= {name: sums[source] for name, source in self._same_as.items()}
        missing = [name for name in self._linears if name not in sums]
        if missing:
            raise InputError(
                f"model: {len(missing)} weights, {missing[0]} first, took part in no forward pass, "
                "so nothing is known about them; this kind of model is not supported"
            )
        return {name: sums[name] for name in self._linears}

    def _hook(self, name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def record(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            self.observe(name, inputs[0])

        return record

    def _add_up(self, batch: _Batch, names: Sequence[str], counts: Tensor | None) -> None:
        if not batch.norms:
            return
        widths = [norms.shape[1] for norms in batch.norms.values()]
        joined = torch.cat(list(batch.norms.values()), dim=1)
        if not bool(torch.isfinite(joined).all()):
            self._refuse(batch, names)
        weights = torch.ones((*self._leading, len(names))) if counts is None else counts
        total = weights.to(joined.device, torch.float64) @ joined.to(torch.float64)
        layout = dict(zip(batch.norms, widths, strict=True))
        if self._total is None:
            self._widths, self._same_as, self._total = layout, batch.same_as, total
        elif (layout, batch.same_as) == (self._widths, self._same_as):
            self._total = self._total + total
        else:
            raise InputError(
                "model: its linear layers ran in another way than for the texts before, but each "
                "must run once for every text; this kind of model is not supported"
            )

    def _refuse(self, batch: _Batch, names: Sequence[str]) -> None:
        for name, norms in batch.norms.items():
            finite = torch.isfinite(norms).all(dim=1).tolist()
            if not all(finite):
                raise InputError(
                    f"activations: the input of {name.removesuffix('.weight')} holds NaN or Inf "
                    f"for {names[finite.index(False)]}, but every activation must be finite; load "
                    "the model in another dtype (float32 or bfloat16), or leave that text out"
                )
