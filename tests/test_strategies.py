"""Which strategies are refused."""

from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch.strategies import (
    DDPStrategy,
    FSDPStrategy,
    SingleDeviceStrategy,
    Strategy,
)

from mathneuro.errors import InputError
from mathneuro.strategies import check_strategy
from tests.commands import refused


@pytest.mark.parametrize("kind", [FSDPStrategy, type("MyDDPStrategy", (DDPStrategy,), {})])
def test_other_strategies_are_refused(kind: type[Strategy]) -> None:
    """What is not known to give right results, subclasses included."""
    with pytest.raises(InputError, match=rf"trainer\.strategy: got {kind.__name__}.*use ddp"):
        check_strategy(kind())


def test_all_started_processes_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as torchrun started, or srun; a script that sbatch runs is alone."""
    monkeypatch.setenv("SLURM_NTASKS", "4")
    check_strategy(SingleDeviceStrategy())
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(InputError, match=r"trainer\.devices: got 1, .* but 4 processes"):
        check_strategy(SingleDeviceStrategy())
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number in (2, 3):
        devices = [torch.device("cpu")] * number
        strategy = DDPStrategy(
            parallel_devices=devices, cluster_environment=TorchElasticEnvironment()
        )
        strategy._configure_launcher()
        expected: AbstractContextManager[object] = pytest.raises(
            InputError, match=r"trainer\.devices: got 3, .* but another number of processes"
        )
        with expected if number == 3 else nullcontext():
            check_strategy(strategy)


@pytest.mark.parametrize(
    "name", ["fsdp", "deepspeed", "lightning.pytorch.strategies.ModelParallelStrategy", "dpp"]
)
def test_names_of_other_strategies_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    name: str,
) -> None:
    """Before Lightning says that a GPU, a package or a strategy is missing."""
    message = refused(monkeypatch, capsys, "predict", [*arguments, f"--trainer.strategy={name}"])
    assert f"trainer.strategy: got '{name}', which is not supported; use ddp" in message


def test_spawned_processes_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """They end with each stage of a command, and what they found with them."""
    spawned = [*arguments, "--trainer.devices=2", "--trainer.strategy=ddp_spawn"]
    assert "with spawned or forked processes" in refused(monkeypatch, capsys, "operate", spawned)
