"""Which strategies are refused."""

import pytest
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy, Strategy

from mathneuro.errors import InputError
from mathneuro.strategies import check_strategy
from tests.commands import refused


@pytest.mark.parametrize("kind", [FSDPStrategy, type("MyDDPStrategy", (DDPStrategy,), {})])
def test_other_strategies_are_refused(kind: type[Strategy]) -> None:
    """What is not known to give right results, subclasses included."""
    with pytest.raises(InputError, match=rf"trainer\.strategy: got {kind.__name__}.*use ddp"):
        check_strategy(kind())


def test_spawned_processes_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """They end with each stage of a command, and what they found with them."""
    spawned = [*arguments, "--trainer.devices=2", "--trainer.strategy=ddp_spawn"]
    assert "with spawned or forked processes" in refused(monkeypatch, capsys, "operate", spawned)
