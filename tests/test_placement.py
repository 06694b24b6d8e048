"""model.device_map in whole commands, and what of it is refused before the weights load."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from safetensors.torch import load_file
from transformers import PreTrainedModel

import mathneuro.module
from mathneuro.errors import InputError
from mathneuro.loading import ModelSource, load_model
from mathneuro.module import CausalLanguageModel
from mathneuro.placement import Placement
from tests.commands import refused, run
from tests.offloading import offload_all, offload_blocks

MAP = "--model.device_map={'': cpu}"


def offloaded(offload: Callable[[PreTrainedModel], PreTrainedModel]) -> Any:  # noqa: ANN401
    """Return a loader that offloads: without another device, no device map does."""
    return lambda source: offload(load_model(source))


def measured(folder: Path) -> dict[str, Any]:
    """Read what a run found, without paths and times."""
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    found.pop("versions")
    found.get("identification", {}).pop("seconds", None)
    for scores in found["scores"].values():
        scores.pop("evaluation")
    return found


def same_tensors(one: Path, other: Path) -> bool:
    """Tell whether two files hold the same tensors, bit for bit."""
    first, second = load_file(one), load_file(other)
    return first.keys() == second.keys() and all(
        torch.equal(each, second[name]) for name, each in first.items()
    )


@pytest.mark.parametrize("offload", [None, offload_all, offload_blocks])
def test_commands_find_what_they_find_without(
    offload: Any,  # noqa: ANN401
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores, importance and edit of `operate`, and those of the edit in `validate`."""
    run(monkeypatch, "operate", arguments)
    if offload is not None:
        monkeypatch.setattr(mathneuro.module, "load_model", offloaded(offload))
    folder, again = tmp_path / "mapped", tmp_path / "validated"
    run(monkeypatch, "operate", [*arguments, MAP, f"--folder={folder}"])
    assert measured(folder) == measured(tmp_path / "run")
    for name in ("importance", "edit"):
        assert same_tensors(
            folder / f"{name}.safetensors", tmp_path / "run" / f"{name}.safetensors"
        )
    edit = f"--edit={folder / 'edit.safetensors'}"
    run(monkeypatch, "validate", [*arguments, MAP, f"--folder={again}", edit])
    assert measured(again)["scores"]["after"] == measured(folder)["scores"]["after"]


def test_a_sweep_finds_what_it_finds_without(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With neurons, whose search runs parts of the model again."""
    kept = [each for each in arguments if not each.startswith(("--selection", "--data.num_s"))]
    kept += ["--grid.methods=[mathneuro, lape]", "--grid.proportions=[0.3]", "--grid.repeats=1",
             "--grid.num_samples=[6]"]  # fmt: skip
    run(monkeypatch, "sweep", [*kept, f"--folder={tmp_path / 'plain'}"])
    monkeypatch.setattr(mathneuro.module, "load_model", offloaded(offload_blocks))
    run(monkeypatch, "sweep", [*kept, MAP, f"--folder={tmp_path / 'mapped'}"])
    results = [
        {
            path.name: json.loads(path.read_text())
            for path in (tmp_path / each / "settings").iterdir()
        }
        for each in ("plain", "mapped")
    ]
    assert len(results[0]) == 3
    for name, record in results[0].items():
        for part in ("scores", "outcomes", "selection"):
            assert record[part] == results[1][name][part]


def test_the_weights_stay_where_they_were_placed(model_folder: Path) -> None:
    """Whatever Lightning asks the module for; without a map they follow."""
    for placed in (True, False):
        module = CausalLanguageModel(str(model_folder), device_map={"": "cpu"} if placed else None)
        module.setup("predict")
        module.configure_model()
        before = module.model.get_input_embeddings().weight
        module.to(torch.bfloat16)
        assert (module.model.dtype == torch.float32) == placed
        module.to("meta")
        assert module.model.get_input_embeddings().weight.is_meta != placed
        assert (module.model.get_input_embeddings().weight is before) == placed


@pytest.mark.parametrize(
    ("device_map", "max_memory", "sentence"),
    [
        ("all", None, "got 'all', but it must be one of auto, balanced"),
        ({"a": "disk"}, None, "got disk for 'a', but an edit would have to change the checkpoint"),
        ({"a": "gpu"}, None, "got 'gpu' for 'a', but it must be cpu, the number"),
        ({"a": "cpu:1"}, None, "got 'cpu:1' for 'a', but it must be cpu, the number"),
        ({"a": -1}, None, "got -1 for 'a', but it must be cpu, the number"),
        ({"a": "meta"}, None, "got 'meta' for 'a', but it must be cpu, the number"),
        (None, {"0": "1GiB"}, "only a device map that is made by a plan follows it"),
        ({"": "cpu"}, {"0": "1GiB"}, "only a device map that is made by a plan follows it"),
        ("auto", {"zero": "1GiB"}, "got 'zero', but it must name cpu or the number"),
        ("auto", {"0": "much"}, "got 'much' for '0', but it must be a size"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    device_map: Any,  # noqa: ANN401
    max_memory: dict[int | str, str] | None,
    sentence: str,
) -> None:
    """With the field, what it held, and what to do."""
    with pytest.raises(InputError, match=sentence):
        Placement(device_map, max_memory)


def test_numbers_are_numbers_for_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether YAML read them as such or not."""
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    for number in (1, "1"):
        placement = Placement("auto", {number: "20GiB", "cpu": "60GiB"})
        assert placement.arguments()["max_memory"] == {1: "20GiB", "cpu": "60GiB"}
        assert Placement({"": number}).arguments() == {"device_map": {"": 1}}


@pytest.mark.parametrize("device", [99, "99"])
def test_accelerators_that_are_not_there_are_refused(device: int | str) -> None:
    """In a map, and in a limit."""
    for field, placement in {
        "device_map": Placement({"a": device}),
        "max_memory": Placement("auto", {device: "1GiB"}),
    }.items():
        with pytest.raises(InputError, match=f"{field}: got 99, but this machine has . accel"):
            placement.arguments()
    with pytest.raises(InputError, match="got cuda:99, but this machine has"):
        Placement({"a": "cuda:99"}).arguments()


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (["model", "lm_haed"], "got a device for 'lm_haed', but LlamaForCausalLM has no module"),
        (["model.layers", "lm_head"], r"names no device for model\.embed_tokens\.weight, but"),
        (["model.layers.0", "model.embed_tokens"], r"names no device for model\.layers\.1\."),
    ],
)
def test_a_map_that_does_not_fit_the_model_is_refused(
    places: list[str], sentence: str, model_folder: Path
) -> None:
    """Before its weights load."""
    (model_folder / "model.safetensors").unlink()
    placement = Placement(dict.fromkeys(places, "cpu"))
    with pytest.raises(InputError, match=sentence):
        load_model(ModelSource(str(model_folder), placement=placement))


def test_what_fits_on_the_disk_alone_is_refused(model_folder: Path) -> None:
    """It is known once the plan is made."""
    for memory, left in (("12KB", r"model\S+ \(and \d+ more\)"), ("1KB", "the model")):
        source = ModelSource(str(model_folder), placement=Placement("auto", {"cpu": memory}))
        with pytest.raises(
            InputError, match=rf"leaves {left} on the disk, .*; raise model\.max_mem"
        ):
            load_model(source)


def test_a_precision_that_would_convert_weights_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the weights load."""
    monkeypatch.setattr(mathneuro.module, "load_model", lambda _: pytest.fail("it was loaded"))
    extra = [MAP, "--trainer.precision=bf16-true"]
    sentence = refused(monkeypatch, capsys, "predict", [*arguments, *extra])
    assert "trainer.precision: got bf16-true, but with model.device_map" in sentence


def test_several_processes_are_refused() -> None:
    """Each would place the whole model."""
    trainer = Trainer(accelerator="cpu", devices=2, strategy="ddp", logger=False)
    Placement().check_trainer(trainer)
    with pytest.raises(InputError, match="a map to 0, cpu, but there are 2 processes, each of"):
        Placement({"a": 0, "b": "cpu", "c": "0"}).check_trainer(trainer)
