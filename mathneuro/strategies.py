"""Which of Lightning's strategies the commands work with."""

from lightning.pytorch.strategies import (
    DDPStrategy,
    ModelParallelStrategy,
    SingleDeviceStrategy,
    Strategy,
)
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher

from mathneuro.errors import InputError

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
    if kind not in (SingleDeviceStrategy, DDPStrategy, ModelParallelStrategy):
        raise InputError(f"trainer.strategy: got {kind.__name__}, which is not supported; {ADVICE}")
    if isinstance(strategy, DDPStrategy | ModelParallelStrategy):
        _check_number(strategy)
    launcher = strategy.launcher
    if launcher is not None and not isinstance(launcher, _SubprocessScriptLauncher):
        # Its processes end with each stage of a command, and what they found with them.
        raise InputError(
            f"trainer.strategy: got {kind.__name__} with spawned or forked processes, which end "
            f"before a command does; {ADVICE}"
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
