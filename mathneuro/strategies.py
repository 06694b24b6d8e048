"""Which of Lightning's strategies the commands work with."""

import os

from lightning.pytorch.strategies import (
    DDPStrategy,
    ModelParallelStrategy,
    SingleDeviceStrategy,
    Strategy,
    StrategyRegistry,
)
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from torch.distributed import is_torchelastic_launched

from mathneuro.errors import InputError

SUPPORTED = (SingleDeviceStrategy, DDPStrategy, ModelParallelStrategy)

ADVICE = (
    "use ddp (the whole model on each device), ModelParallelStrategy (one model spread over them), "
    "or one process with model.device_map"
)


def check_strategy(strategy: Strategy) -> None:
    """Refuse a strategy under which results would be missing, or wrong.

    Raises:
        InputError: If it is one.
    """
    kind = type(strategy)
    if kind not in SUPPORTED:
        raise InputError(f"trainer.strategy: got {kind.__name__}, which is not supported; {ADVICE}")
    if isinstance(strategy, DDPStrategy | ModelParallelStrategy):
        _check_number(strategy)
    else:
        _check_alone()
    launcher = strategy.launcher
    if launcher is not None and not isinstance(launcher, _SubprocessScriptLauncher):
        # Its processes end with each stage of a command, and what they found with them.
        raise InputError(
            f"trainer.strategy: got {kind.__name__} with spawned or forked processes, which end "
            f"before a command does; {ADVICE}"
        )


def check_strategy_name(name: str) -> None:
    """Refuse the name of a strategy that the commands do not work with, before it is made.

    Args:
        name: A name, as ``trainer.strategy`` takes it.

    Raises:
        InputError: If it is one.
    """
    kinds = {known: entry["strategy"] for known, entry in StrategyRegistry.items()}
    if name != "auto" and kinds.get(name.lower()) not in SUPPORTED:
        raise InputError(f"trainer.strategy: got {name!r}, which is not supported; {ADVICE}")


def _check_alone() -> None:
    """Refuse one device each for processes that torchrun or srun started as several.

    Raises:
        InputError: If they would all do the same, into one folder.
    """
    # SLURM sets this where srun starts processes, and not for a script that sbatch runs.
    number = int(os.environ.get("SLURM_STEP_NUM_TASKS", "1"))
    if is_torchelastic_launched():
        number = int(os.environ["WORLD_SIZE"])
    if number > 1:
        raise InputError(
            f"trainer.devices: got 1, and trainer.num_nodes 1, but {number} processes were "
            "started; make them the devices of a machine and the number of machines that torchrun "
            "or srun was told, with trainer.strategy ddp"
        )


def _check_number(strategy: DDPStrategy | ModelParallelStrategy) -> None:
    """Refuse another number of processes than torchrun or SLURM started."""
    if strategy.cluster_environment is None:
        return
    try:
        strategy.cluster_environment.validate_settings(
            num_devices=strategy.num_processes, num_nodes=strategy.num_nodes
        )
    except ValueError as error:
        raise InputError(
            f"trainer.devices: got {strategy.num_processes}, and trainer.num_nodes "
            f"{strategy.num_nodes}, but another number of processes was started ({error}); make "
            "them the devices of a machine and the number of machines that torchrun or srun was "
            "told"
        ) from error
