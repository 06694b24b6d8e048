"""Exported folders: the same logits from the folder alone, and all that serving one needs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import metadata_load
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from benchmarks.export import in_memory, make, peak_of, write_checked
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.export import Export, export_model, left_behind
from mathneuro.export.card import model_card
from mathneuro.layers import find_linear_weights
from mathneuro.loading import ModelSource, load_config, load_model, weight_hash
from mathneuro.selection import Selection
from tests.commands import refused, run
from tests.families import FAMILIES
from tests.test_loading import write_gguf

SHIPPED = "assets/tiny-math"
CODE = """
from transformers import LlamaConfig, LlamaForCausalLM


class OddConfig(LlamaConfig):
    model_type = "odd"


class OddForCausalLM(LlamaForCausalLM):
    config_class = OddConfig
"""


def random_edit(source: ModelSource, factor: float = 1.5) -> tuple[PreTrainedModel, Edit]:
    """Choose a fifth of every weight that takes part."""
    model = load_model(source)
    weights = find_linear_weights(model).weights
    generator = torch.Generator().manual_seed(0)
    positions = {
        name: torch.randperm(each.numel, generator=generator)[: each.numel // 5].sort().values
        for name, each in weights.items()
    }
    shapes = {name: each.stored_shape for name, each in weights.items()}
    identity = {"source": source.path, "weight_hash": weight_hash(model)}
    return model, Edit(Selection(positions, shapes, {"method": "any"}), factor, identity)


def logits(model: PreTrainedModel) -> Tensor:
    """Run a short text."""
    with torch.no_grad():
        output: Tensor = model(input_ids=torch.tensor([[3, 4, 5, 6]])).logits
    return output


def check(source: ModelSource, folder: Path, **options: Any) -> None:
    """Export, load in transformers from the folder alone, and compare with the edit in memory."""
    model, edit = random_edit(source)
    export_model(source, edit, Export(folder, **options), "not measured")
    trusted = source.trust_remote_code
    loaded = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=trusted)
    loaded.train(False)
    with edit.applied(model):
        assert weight_hash(loaded) == weight_hash(model)
        assert torch.equal(logits(loaded), logits(model))
    embedding = loaded.get_input_embeddings().weight
    was_tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert (loaded.get_output_embeddings().weight is embedding) == was_tied
    AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted)
    assert not [path for path in folder.parent.rglob(".*") if path.name != ".locks"]


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """Copy the shipped model, whose files may then be changed."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "base"))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_written_as_it_was_edited(name: str, tmp_path: Path, shipped: Path) -> None:
    """Tied and untied, in many shards, mixtures of experts and multimodal models included."""
    model = FAMILIES[name].build()
    source = tmp_path / "source"
    model.save_pretrained(source, max_shard_size="20kB")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(shipped / file, source)
    model, edit = random_edit(ModelSource(str(source)))
    folder = tmp_path / "out"
    export_model(
        ModelSource(str(source)), edit, Export(folder, "20kB", verify=False), "not measured"
    )
    loaded = load_model(ModelSource(str(folder)))
    with edit.applied(model):
        assert weight_hash(loaded) == weight_hash(model)
        torch.testing.assert_close(logits(loaded), logits(model), rtol=1e-5, atol=1e-5)


def test_a_tied_model_in_shards(shipped: Path, tmp_path: Path) -> None:
    """Each no larger than was asked for."""
    check(ModelSource(str(shipped)), tmp_path / "out", max_shard_size="600KB")
    shards = list((tmp_path / "out").glob("model-*.safetensors"))
    assert len(shards) > 4
    assert all(path.stat().st_size < 620_000 for path in shards)
    modes = {path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    (tmp_path / "new").touch()
    assert modes == {(tmp_path / "new").stat().st_mode}


def test_an_untied_model(tmp_path: Path, untied_llama: PreTrainedModel, shipped: Path) -> None:
    """Its head takes part in the edit."""
    untied_llama.save_pretrained(source := tmp_path / "source")
    shutil.copy(shipped / "tokenizer.json", source)
    check(ModelSource(str(source)), tmp_path / "out")
    check(ModelSource(str(source), dtype="bfloat16"), tmp_path / "half")
    assert json.loads((tmp_path / "half" / "config.json").read_text())["dtype"] == "bfloat16"


def test_a_config_that_calls_an_own_head_tied(tmp_path: Path, shipped: Path) -> None:
    """The checkpoint decides, in every command; the written config says what is so."""
    weights = load_file(shipped / "model.safetensors")
    weights["lm_head.weight"] = 1.5 * weights["model.embed_tokens.weight"]
    save_file(weights, shipped / "model.safetensors", {"format": "pt"})
    assert json.loads((shipped / "config.json").read_text())["tie_word_embeddings"]
    source = ModelSource(str(shipped))
    assert "lm_head.weight" in find_linear_weights(load_model(source)).weights
    check(source, tmp_path / "out")
    assert not json.loads((tmp_path / "out" / "config.json").read_text())["tie_word_embeddings"]


def test_a_gguf_file(tmp_path: Path, tied_llama: PreTrainedModel) -> None:
    """With a tokenizer from elsewhere, since this file holds none."""
    write_gguf(tied_llama, path := tmp_path / "tiny.gguf")
    check(ModelSource(str(path), tokenizer=SHIPPED), tmp_path / "out", max_shard_size="20KB")
    assert "quantization_config" not in (tmp_path / "out" / "config.json").read_text()


def test_a_model_with_code_of_its_own(tmp_path: Path, shipped: Path) -> None:
    """The code goes along; it runs only where the user trusts it."""
    config = json.loads((shipped / "config.json").read_text())
    names = {"AutoConfig": "odd.OddConfig", "AutoModelForCausalLM": "odd.OddForCausalLM"}
    config |= {"model_type": "odd", "architectures": ["OddForCausalLM"], "auto_map": names}
    (shipped / "config.json").write_text(json.dumps(config))
    (shipped / "odd.py").write_text(CODE)
    check(ModelSource(str(shipped), trust_remote_code=True), tmp_path / "out")
    assert (tmp_path / "out" / "odd.py").read_text() == CODE
    with pytest.raises(InputError, match="trust_remote_code"):
        load_model(ModelSource(str(tmp_path / "out")))


def test_a_model_of_the_hub_from_its_cache(
    tmp_path: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, as everything else."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / "models--somebody--tiny"
    shutil.copytree(shipped, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    check(ModelSource("somebody/tiny"), tmp_path / "out")
    stated = metadata_load(tmp_path / "out" / "README.md")
    assert stated is not None
    assert stated["base_model"] == "somebody/tiny"
    generation = repository / "snapshots" / ("0" * 40) / "generation_config.json"
    generation.write_text('{"eos_token_id": 1, ')
    with pytest.raises(InputError, match=r"generation_config\.json cannot be read \(Expecting"):
        load_config(ModelSource("somebody/tiny"))


def test_other_files_are_those_of_the_base_model(tmp_path: Path, shipped: Path) -> None:
    """Byte for byte, but for what an edit changes; weights in other forms stay behind."""
    extra = {
        "chat_template.jinja": "{{ messages }}",
        "preprocessor_config.json": "{}",
        "LICENSE": "words",
        "pytorch_model.bin": "weights",
        "training_args.bin": "no",
    }
    for name, text in extra.items():
        (shipped / name).write_text(text)
    check(ModelSource(str(shipped)), out := tmp_path / "out")
    kept = ["chat_template.jinja", "preprocessor_config.json", "LICENSE", "tokenizer.json"]
    for name in [*kept, "tokenizer_config.json", "generation_config.json"]:
        assert (out / name).read_bytes() == (shipped / name).read_bytes(), name
    assert not list(out.glob("*.bin"))
    before, after = (json.loads((each / "config.json").read_text()) for each in (shipped, out))
    assert before == after


def test_another_model_and_edits_that_do_not_fit_are_refused(
    tmp_path: Path, shipped: Path, untied_llama: PreTrainedModel
) -> None:
    """Nothing is written, and nothing is left behind."""
    source, out = ModelSource(str(shipped)), tmp_path / "out"
    half = ModelSource(str(shipped), dtype="float16")
    with pytest.raises(InputError, match=r"more than torch\.float16 can hold"):
        export_model(half, random_edit(half, 1e6)[1], Export(out), "")
    _, edit = random_edit(source)
    edit.model["weight_hash"] = "another"
    with pytest.raises(InputError, match="it was made for"):
        export_model(source, edit, Export(out), "")
    model = load_model(source)
    shape = tuple(model.state_dict()["lm_head.weight"].shape)
    embedding = Selection({"lm_head.weight": torch.arange(3)}, {"lm_head.weight": shape})
    identity = {"weight_hash": weight_hash(model)}
    with pytest.raises(InputError, match=r"lm_head\.weight, which is tied"):
        export_model(source, Edit(embedding, 0.0, identity), Export(out), "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base"]


def test_folders_that_are_there(tmp_path: Path, shipped: Path) -> None:
    """Kept, unless the user says otherwise; then replaced as a whole."""
    source, out = ModelSource(str(shipped)), tmp_path / "out"
    _, edit = random_edit(source)
    export_model(source, edit, Export(out), "")
    (out / "old").touch()
    with pytest.raises(InputError, match="is not empty"):
        Export(out)
    export_model(source, edit, Export(out, overwrite=True), "")
    assert not (out / "old").exists()
    link = tmp_path / "link"
    link.symlink_to(out)
    (out / "old").touch()
    export_model(source, edit, Export(link, overwrite=True), "")
    assert link.is_symlink()
    assert not (out / "old").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base", "link", "out"]
    with pytest.raises(InputError, match="is a file"):
        Export(out / "README.md")
    with pytest.raises(InputError, match="max_shard_size: got '5 apples'"):
        Export(tmp_path / "more", "5 apples")


def test_nothing_but_an_export_is_replaced(
    arguments: list[str],
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor is what the command reads, or the folder that it runs in."""
    edit = tmp_path / "runs" / "edit.safetensors"
    random_edit(ModelSource(str(model_folder)))[1].save(edit)
    options = [*arguments, f"--edit={edit}", "--overwrite=true"]
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "mine.txt").write_text("mine")
    (tmp_path / "linked").symlink_to(model_folder)

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    before = files()
    for output, told in (
        (model_folder, "is itself needed"),
        (tmp_path / "linked", "is itself needed"),
        (edit.parent, "which is needed"),
        (tmp_path, "which is needed"),
        (notes, "holds no model that was exported before"),
        (Path(), "is itself needed"),
    ):
        message = refused(monkeypatch, capsys, "export", [*options, f"--output={output}"])
        assert message.startswith("error: output: ")
        assert told in message
    assert files() == before


def test_texts_of_a_strangers_edit_stay_in_their_lines(shipped: Path) -> None:
    """So that they cannot state a licence, or anything else, of the model."""
    _, edit = random_edit(ModelSource(str(shipped)))
    edit.model["source"] = 'a/b/c"\n---\nlicense: evil\n# '
    edit.selection.origin["method"] = "x\n## What was measured"
    lines = model_card(edit, "edited", "nothing", None).splitlines()
    assert lines.count("---") == 2
    assert not [line for line in lines if line.startswith("license")]
    assert lines.count("## What was measured") == 1


def test_what_a_killed_export_left_is_told(tmp_path: Path) -> None:
    """Of this folder alone."""
    (tmp_path / ".out.12ab.unfinished").mkdir()
    (tmp_path / ".outer.12ab.unfinished").mkdir()
    assert left_behind(tmp_path / "out") == [tmp_path / ".out.12ab.unfinished"]


def test_a_generation_config_that_is_refused_is_found_first(tmp_path: Path, shipped: Path) -> None:
    """And other values can be given."""
    source, out = ModelSource(str(shipped)), tmp_path / "out"
    _, edit = random_edit(source)
    (shipped / "model.safetensors").write_bytes(b"damaged: the weights are not looked at yet")
    wrong = {"do_sample": False, "temperature": 0.3}
    with pytest.raises(InputError, match="generation_config: transformers refuses"):
        export_model(source, edit, Export(out, generation_config=wrong), "")
    with pytest.raises(InputError, match="generation_config: got 'warmth'"):
        export_model(source, edit, Export(out, generation_config={"warmth": 1}), "")
    shutil.copy(f"{SHIPPED}/model.safetensors", shipped)
    right = {"do_sample": True, "temperature": 0.3}
    export_model(source, edit, Export(out, generation_config=right), "")
    stated = json.loads((out / "generation_config.json").read_text())
    assert (stated["do_sample"], stated["temperature"]) == (True, 0.3)


@pytest.mark.slow
def test_memory_holds_a_shard_and_not_the_model(tmp_path: Path) -> None:
    """Of 240 MB of weights, in processes of their own."""
    source = make(tmp_path / "base", 60_000_000)
    random_edit(source)[1].save(tmp_path / "edit.safetensors")
    size = sum(path.stat().st_size for path in (tmp_path / "base").glob("*.safetensors"))
    assert peak_of(in_memory, source, tmp_path, "20MB") > 0.8 * size
    assert peak_of(write_checked, source, tmp_path, "20MB") < 0.6 * size


def test_the_command_and_its_card(
    tmp_path: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scores of the run beside the edit, and of no other."""
    run(monkeypatch, "operate", arguments)
    edit = tmp_path / "run" / "edit.safetensors"
    out = tmp_path / "out"
    run(monkeypatch, "export", [*arguments, f"--edit={edit}", f"--output={out}"])
    printed = capsys.readouterr()
    assert "read again and found equal" in printed.out
    assert "WARNING" not in printed.err
    assert "Warning" not in printed.err
    card = (out / "README.md").read_text()
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert f"{results['selection']['parameters']:,} parameters were set to zero" in card
    for task, metrics in results["scores"]["after"]["tasks"].items():
        for metric, score in metrics.items():
            assert f"| {task} {metric} | " in card
            assert f" {score['value']:.3f} ± " in card
    record = json.loads((out / "mathneuro.json").read_text())
    assert record["selection_sha256"] == results["selection"]["sha256"]
    other = [*arguments, f"--edit={edit}", "--factor=1.1"]
    run(monkeypatch, "export", [*other, f"--output={tmp_path / 'scaled'}"])
    printed = capsys.readouterr()
    assert "the model card states no scores: " in printed.out
    assert "with factor 0.0, but the edit has 1.1" in printed.out
    results_file = f"--results={tmp_path / 'run' / 'results.json'}"
    message = refused(
        monkeypatch, capsys, "export", [*other, results_file, f"--output={tmp_path / 'no'}"]
    )
    assert "results: " in message
    grouped = ["--factors={'*.layers.0.*': 0.5}", f"--output={tmp_path / 'grouped'}"]
    run(monkeypatch, "export", [*arguments, f"--edit={edit}", *grouped])
    weights, scaled = (
        load_file(each / "model.safetensors") for each in (out, tmp_path / "grouped")
    )
    source = load_file(Path(results["model"]["source"]) / "model.safetensors")
    for name, positions in Edit.load(edit).selection.positions.items():
        factor = 0.5 if ".layers.0." in name else 0.0
        before = source[name].flatten()[positions]
        assert torch.equal(scaled[name].flatten()[positions], before * factor)
        assert not weights[name].flatten()[positions].any()
