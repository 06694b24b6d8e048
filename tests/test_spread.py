"""One model spread over two real processes, started as a user starts them, against one process."""

import json
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import ModelParallelStrategy, SingleDeviceStrategy

from mathneuro.errors import InputError
from mathneuro.spread import spread, spread_over_all
from tests import spreading
from tests.commands import run
from tests.conftest import make_llama
from tests.processes import check_same, forked
from tests.several import run as several

SPREAD = ["--trainer.devices=2", "--trainer.strategy=ModelParallelStrategy"]


@pytest.fixture
def uneven(arguments: list[str]) -> list[str]:
    """Arguments with numbers that two processes could not share evenly."""
    return [*arguments, "--lm_eval.limit=7", "--lm_eval.batch_size=2", "--data.batch_size=2",
            "--importance.activations=true"]  # fmt: skip


def test_a_run_finds_what_one_process_finds(
    uneven: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hash, importance, activations, edit, scores and files, bit for bit; told once."""
    arguments, one, two = uneven, tmp_path / "one", tmp_path / "two"
    run(monkeypatch, "operate", [*arguments, f"--folder={one}"])
    words = [
        "operate", *arguments, *SPREAD, f"--folder={two}",
        "--trainer.callbacks+=tests.spreading.Watch", f"--trainer.callbacks.folder={tmp_path}",
    ]  # fmt: skip
    ended = forked(tmp_path, several, [words])
    assert ended.returncode == 0, ended.stderr
    check_same(one, two)
    for label in ("identify", "select", "prune", str(two)):
        assert sum(line.startswith(label) for line in ended.stdout.splitlines()) == 1, label
    assert "Traceback" not in ended.stderr
    watched = [json.loads((tmp_path / f"watched{rank}.json").read_text()) for rank in range(2)]
    for each in watched:
        assert 0.45 < each["before"] / each["total"] < 0.55
        assert each["before"] == each["edited"]
    assert sum(each["before"] for each in watched) == watched[0]["total"]


def test_every_kind_of_model_is_the_same_when_spread(tmp_path: Path) -> None:
    """Transposed weights, experts, blocks with activation functions of their own."""
    ended = forked(tmp_path, spreading.main)
    assert ended.returncode == 0, ended.stderr


def test_weights_are_spread_over_all_processes() -> None:
    """Whatever Lightning would do by itself; other sizes are refused in a sentence."""
    spread_over_all(SingleDeviceStrategy())
    for strategy in (
        ModelParallelStrategy(),
        ModelParallelStrategy(tensor_parallel_size=1),
        ModelParallelStrategy(data_parallel_size=2),
    ):
        Trainer(accelerator="cpu", devices=2, strategy=strategy, logger=False)
        spread_over_all(strategy)
        spread_over_all(strategy)
        assert (strategy._tensor_parallel_size, strategy._data_parallel_size) == (1, 2)
    for kind, strategy in {
        "tensor": ModelParallelStrategy(tensor_parallel_size=4),
        "data": ModelParallelStrategy(data_parallel_size=4),
    }.items():
        Trainer(accelerator="cpu", devices=2, strategy=strategy, logger=False)
        with pytest.raises(InputError, match=f"got a {kind}_parallel_size of 4, but each weight"):
            spread_over_all(strategy)


class Mesh(dict[str, Any]):
    """The sizes of an arrangement of processes."""

    def __init__(self, tensor: int) -> None:
        super().__init__(tensor_parallel=self, data_parallel=self)
        self.size = lambda: tensor


def test_models_that_cannot_be_spread_are_refused() -> None:
    """Divided tensors, blocks that nobody knows, and blocks that share a weight."""
    model: Any = make_llama(tied=True)
    with pytest.raises(InputError, match="got a tensor_parallel_size of 2, but"):
        spread(model, Mesh(2))  # type: ignore[arg-type]
    model.model.layers[1].mlp.up_proj.weight = model.model.layers[0].mlp.up_proj.weight
    sentence = r"layers\.0\.mlp\.up_proj\.weight and model\.layers\.1.* are one weight in several"
    with pytest.raises(InputError, match=sentence):
        spread(model, Mesh(1))  # type: ignore[arg-type]
    model._no_split_modules = None
    with pytest.raises(InputError, match="LlamaForCausalLM does not say what its blocks are"):
        spread(model, Mesh(1))  # type: ignore[arg-type]


def test_a_sweep_finds_what_one_process_finds(
    uneven: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting is run by both; settings that select the same are recognised by both."""
    kept = ("--selection", "--importance", "--data.num_samples")
    sweep = [
        *(each for each in uneven if not each.startswith(kept)),
        "--grid.methods=[mathneuro, wanda, lape]",
        "--grid.proportions=[0.2]",
        "--grid.repeats=1",
        "--grid.num_samples=[6]",
        "--grid.factors=[0.0, 1.0]",
    ]
    run(monkeypatch, "sweep", [*sweep, f"--folder={tmp_path / 'one'}"])
    ended = forked(tmp_path, several, [["sweep", *sweep, *SPREAD, f"--folder={tmp_path / 'two'}"]])
    assert ended.returncode == 0, ended.stderr
    check_same(tmp_path / "one", tmp_path / "two")
