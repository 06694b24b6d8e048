"""Which weights of a model can be measured, found out before anything is measured."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from mathneuro.decoder import context_length, find_decoder, input_device, run_decoder, trial
from mathneuro.errors import InputError
from mathneuro.experts import compute_experts
from mathneuro.layers import Coverage
from mathneuro.norms import NOT_RUN, InputNorms
from mathneuro.reads import linear_reads
from mathneuro.storage import present, run_device, versions
from mathneuro.weights import Weight

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTHS = ((8, 5), (37, 23))
"""Tokens of the two texts of each trial, unequal, so that the second text is padded.

In few tokens a mix-up shows most; more of them show models that fill texts up to blocks.
"""

DISTINCT = 8
"""Tokens that the texts are made of: the first, among which no model keeps its pictures."""

MIXED = "what it reads of a text depends on the other texts of a batch"
OTHER_ROUTER = "it is not simply multiplied with its module's input"
OTHER_EXPERTS = "its experts compute something of their own"
OTHER_HEAD = "the head does not read the decoder's output as it is"


def head_weight(model: "PreTrainedModel", coverage: Coverage) -> str | None:
    """Return the name of the head's weight if it takes part and the decoder does not run it.

    A tied head does not take part. Some models are their own decoder and run the head with it.
    """
    head: nn.Module = model.get_output_embeddings()
    decoder = find_decoder(model)
    if any(module is head for module in decoder.modules()):
        return None
    return next((name for name, each in coverage.weights.items() if each.module is head), None)


def check_model(model: "PreTrainedModel", coverage: Coverage) -> Coverage:
    """Find out, with pairs of short texts, what can be measured.

    Args:
        model: The model.
        coverage: The weights that would take part.

    Returns:
        The coverage without the weights that cannot be measured, each with its reason.

    Raises:
        InputError: If none can be measured, the model does not run, or it changes its own weights.
    """
    before = versions(model)
    consequence = "it is not known which weights can be measured; this kind is not supported"
    with trial(model, "", consequence):
        reasons = _faults(model, coverage)
    changed = [name for name, version in versions(model).items() if before[name] != version]
    if changed:
        raise InputError(
            f"model: a forward pass of {type(model).__name__} changes its own weights "
            f"({changed[0]} first), so that an edit could not be undone; this kind of model is not "
            "supported"
        )
    measurable = coverage.without(reasons, covered=False)
    if not measurable.weights:
        raise InputError(
            f"model: no weight of {type(model).__name__} can be measured ({next(iter(reasons))}: "
            f"{next(iter(reasons.values()))}), but at least one is needed; choose another model"
        )
    return measurable


def trial_tokens(model: "PreTrainedModel", length: int = LENGTHS[0][0]) -> Tensor:
    """Return the tokens of two texts of a trial, ``[texts, tokens]``.

    They differ, since the embedding of a padding token may be zero, and zero proves nothing.
    """
    vocabulary = model.config.get_text_config().vocab_size
    line = torch.arange(length, device=input_device(model)).remainder(min(vocabulary, DISTINCT))
    return torch.stack([line, line.flip(0)])


class _Trial(InputNorms):
    """Notes what cannot be measured instead of refusing the model."""

    def __init__(
        self, weights: dict[str, Weight], draws: int | None, faults: dict[str, str]
    ) -> None:
        super().__init__(weights, draws)
        self._faults = faults

    def fail(self, name: str, reason: str) -> None:
        """Note the first reason."""
        self._faults.setdefault(name, reason)


def _faults(model: "PreTrainedModel", coverage: Coverage) -> dict[str, str]:
    """Say what cannot be measured and why, by the name of the parameter."""
    weights, head = coverage.weights, head_weight(model, coverage)
    faults: dict[str, str] = {}
    most = position_table(model) or max(map(max, LENGTHS))
    trials = [(min(longer, most), min(shorter, max(1, most - 1))) for longer, shorter in LENGTHS]
    for lengths in trials:
        _measure(model, weights, head, lengths, faults)
    ids, mask = _padded(model, trials[0])
    _check_routers_and_experts(model, weights, ids, mask, faults)
    if head is not None and not _reads_output(model, ids, mask):
        faults.setdefault(head, OTHER_HEAD)
    return faults


def _padded(model: "PreTrainedModel", lengths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return two texts of a trial, the second padded, and where they are: ``[texts, tokens]``."""
    ids = trial_tokens(model, max(lengths))
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        mask[row, :length] = 1
    return ids, mask


def _measure(
    model: "PreTrainedModel",
    weights: dict[str, Weight],
    head: str | None,
    lengths: tuple[int, int],
    faults: dict[str, str],
) -> None:
    """Measure two texts together and each alone, and compare."""
    ids, mask = _padded(model, lengths)

    def measure(ids: Tensor, mask: Tensor, draws: int | None) -> dict[str, Tensor]:
        norms, counts = _Trial(weights, draws, faults), torch.eye(len(ids), dtype=torch.int64)
        names = ["a trial text"] * len(ids)
        with norms.recording(), norms.batch(mask, names, None if draws is None else counts):
            output = run_decoder(model, ids, mask)
            if head is not None:
                norms.observe(head, output)
        return norms.measured()

    together = measure(ids, mask, len(lengths))
    alone = [
        measure(ids[row : row + 1, :length], mask[row : row + 1, :length], None)
        for row, length in enumerate(lengths)
    ]
    _compare(weights, together, alone, faults)


def _compare(
    weights: dict[str, Weight],
    together: dict[str, Tensor],
    alone: list[dict[str, Tensor]],
    faults: dict[str, str],
) -> None:
    """Compare what was measured in one batch with what was measured text by text.

    A module that reads texts in another order, or shares something between them, has the right
    shapes and the wrong norms. Experts are compared by their sum of squares, since a token on the
    edge between two may go to either.
    """
    most = tolerance(weights)
    for row, each in enumerate(alone):
        batched: dict[str, Tensor] = {}
        single: dict[str, Tensor] = {}
        for name, weight in weights.items():
            key = weight.parameter_name
            if name not in together or name not in each:
                faults.setdefault(key, NOT_RUN)
                continue
            batched[key] = batched.get(key, 0) + together[name][row].square()
            single[key] = single.get(key, 0) + each[name].square()
        for key, squares in batched.items():
            if differs(squares.sqrt(), single[key].sqrt(), most):
                faults.setdefault(key, MIXED)


def tolerance(weights: dict[str, Weight]) -> float:
    """Return the relative difference that the rounding of the weights' types can explain.

    Rounding moves norms by less than a thousandth, and by hundredths in half precision, where a
    token may also go to another expert.
    """
    types = {weight.parameter.dtype for weight in weights.values()}
    return 1e-3 if types <= {torch.float32, torch.float64} else 0.2


def differs(one: Tensor, other: Tensor, most: float) -> bool:
    """Tell whether the relative difference of two tensors is more than that; NaN is."""
    scale = float(other.double().norm())
    return not float((one.double() - other.double().to(one.device)).norm()) <= most * scale


def _check_routers_and_experts(
    model: "PreTrainedModel",
    weights: dict[str, Weight],
    ids: Tensor,
    mask: Tensor,
    faults: dict[str, str],
) -> None:
    """Check that routers and experts compute what they are taken to compute."""
    plain = (nn.Linear,)
    routers = {
        name: weight.module
        for name, weight in weights.items()
        if weight.expert is None and not weight.transposed and not isinstance(weight.module, plain)
    }
    names: dict[nn.Module, list[str]] = {}
    for weight in weights.values():
        if weight.expert is not None:
            names.setdefault(weight.module, []).append(weight.parameter_name)
    if not routers and not names:
        return
    most = tolerance(weights)

    def compare(module: nn.Module, args: tuple[Any, ...], keywords: Any, output: Any) -> None:  # noqa: ANN401
        inputs = [each.to(run_device(module)) for each in (*args, *keywords.values())]
        with present(module):
            own = compute_experts(module, *inputs)
        if differs(own, output, most):
            for name in names[module]:
                faults.setdefault(name, OTHER_EXPERTS)

    handles = [module.register_forward_hook(compare, with_kwargs=True) for module in names]
    try:
        with linear_reads(routers) as confirmed:
            run_decoder(model, ids, mask)
    finally:
        for handle in handles:
            handle.remove()
    for name in routers.keys() - confirmed:
        faults.setdefault(name, OTHER_ROUTER)


def _reads_output(model: "PreTrainedModel", ids: Tensor, mask: Tensor) -> bool:
    """Tell whether the head of the whole model reads what the decoder alone gives."""
    read: list[Tensor] = []

    def keep(_module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        read.append(inputs[0])

    head: nn.Module = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(keep)
    try:
        model(input_ids=ids, attention_mask=mask, use_cache=False)
    finally:
        handle.remove()
    output = run_decoder(model, ids, mask)
    real = (mask != 0).to(output.device)
    if len(read) != 1 or read[0].shape != output.shape:
        return False
    # Both are the same computation, but some kernels do not give the same bits twice.
    return not float((read[0] - output)[real].norm()) > 1e-3 * float(output[real].norm())


def position_table(model: "PreTrainedModel") -> int | None:
    """Return how many positions a model has learned; None if it computes them.

    A table of positions is an embedding of one row for each, besides the rows that some families
    keep before the first.
    """
    length = context_length(model.config)
    decoder = find_decoder(model)
    for name, module in decoder.named_modules():
        if isinstance(module, nn.Embedding) and ("position" in name or name.endswith("wpe")):
            return length
    return None
