"""One model spread over the processes of a run: each holds some rows of the weights of a block.

A forward pass brings the weights of one block together after the other, in all processes at once.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightning.pytorch.strategies import ModelParallelStrategy, Strategy, StrategyRegistry
from torch import nn

from mathneuro.errors import InputError
from mathneuro.storage import users

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from transformers import PreTrainedModel

ADVICE = "leave tensor_parallel_size and data_parallel_size out"

# Lightning has no name for this strategy, and reads what is given as text in lower case.
StrategyRegistry.register(
    ModelParallelStrategy.__name__.lower(),
    ModelParallelStrategy,
    "One model spread over all processes",
    override=True,
)


def spread_over_all(strategy: Strategy) -> None:
    """Let a ModelParallelStrategy spread weights over all processes, before it sets them up.

    By itself it would divide tensors within a machine, which needs a plan for each family.

    Raises:
        InputError: If it was told another way.
    """
    if not isinstance(strategy, ModelParallelStrategy):
        return
    sizes = {"tensor": strategy._tensor_parallel_size, "data": strategy._data_parallel_size}
    for kind, expected in {"tensor": 1, "data": strategy.world_size}.items():
        if sizes[kind] not in ("auto", expected):
            raise InputError(
                f"trainer.strategy: got a {kind}_parallel_size of {sizes[kind]}, but each weight "
                f"is spread over all {strategy.world_size} processes; {ADVICE}"
            )
    strategy._tensor_parallel_size, strategy._data_parallel_size = 1, strategy.world_size


def spread(model: "PreTrainedModel", mesh: "DeviceMesh") -> None:
    """Spread the weights of every block of a model; all else stays whole in every process.

    Blocks alone, since identification runs the decoder without the model's own forward pass.

    Args:
        model: The model, whole.
        mesh: The processes, as Lightning arranges them.

    Raises:
        InputError: If tensors are to be divided, or blocks cannot be told or share weights.
    """
    from torch.distributed.fsdp import fully_shard

    divided = mesh["tensor_parallel"].size()
    if divided != 1:
        raise InputError(
            f"trainer.strategy: got a tensor_parallel_size of {divided}, but each weight is spread "
            f"over all processes; {ADVICE}"
        )
    blocks = dict(find_blocks(model))
    if not blocks:
        raise InputError(
            f"trainer.strategy: {type(model).__name__} does not say what its blocks are "
            "(_no_split_modules), but the weights of blocks are what is spread; use the strategy "
            "ddp, or one process with model.device_map"
        )
    _check_own(model, blocks)
    for block in blocks.values():
        fully_shard(block, mesh=mesh["data_parallel"], reshard_after_forward=True)


def find_blocks(model: "PreTrainedModel") -> Iterator[tuple[str, nn.Module]]:
    """Find the blocks of a model, as transformers tells what may not be split, by name.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=4, num_hidden_layers=2, **sizes))
        >>> [name for name, _ in find_blocks(model)]
        ['model.layers.0', 'model.layers.1']
    """
    kinds, outer = set(model._no_split_modules or ()), "\n"
    for name, module in model.named_modules():
        if type(module).__name__ in kinds and not name.startswith(outer):
            outer = f"{name}."
            yield name, module


def _check_own(model: nn.Module, blocks: dict[str, nn.Module]) -> None:
    """Refuse blocks that share weights with one another or with the rest of the model."""
    prefixes = [f"{name}." for name in blocks]
    for group in users(model):
        names = [name for name, _, _ in group]
        owners = {next(filter(name.startswith, prefixes), "") for name in names}
        if len(owners) > 1:
            raise InputError(
                f"trainer.strategy: {' and '.join(names[:2])} are one weight in several blocks, "
                "but the weights of each block are spread by themselves; use the strategy ddp, or "
                "one process with model.device_map"
            )
