"""Loading: folders, GGUF files, dtypes, and what is refused."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel, T5Config

from mathneuro.errors import InputError
from mathneuro.loading import ModelSource, load_config, load_model, weight_hash
from mathneuro.module import CausalLanguageModel
from mathneuro.tokenizer import load_tokenizer
from tests.families import FAMILIES


def write_gguf(model: PreTrainedModel, path: Path) -> None:
    """Write a Llama as a GGUF file of float32 numbers, without a tokenizer."""
    config: Any = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        array = tensor.numpy()
        for part, count in heads.items():
            if part in name:
                # GGUF keeps the two halves of each rotary pair side by side.
                halves = array.reshape(count, 2, -1, array.shape[1])
                array = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
        stem = name.removesuffix(".weight")
        writer.add_tensor(f"{names.get_name(stem)}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits(model: PreTrainedModel) -> torch.Tensor:
    """Run a short text."""
    with torch.no_grad():
        output: torch.Tensor = model(input_ids=torch.tensor([[3, 4, 5, 6]])).logits
    return output


def test_a_folder_gives_the_same_model(model_folder: Path, tied_llama: PreTrainedModel) -> None:
    """Frozen, in evaluation mode, with equal weights."""
    model = load_model(ModelSource(str(model_folder)))
    assert torch.equal(logits(model), logits(tied_llama))
    assert weight_hash(model) == weight_hash(tied_llama)
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("dtype", ["auto", "float32", "bfloat16"])
def test_the_dtype_is_the_one_asked_for(model_folder: Path, dtype: Any) -> None:  # noqa: ANN401
    """``auto`` is the checkpoint's."""
    model = load_model(ModelSource(str(model_folder), dtype=dtype))
    assert model.dtype == (torch.bfloat16 if dtype == "bfloat16" else torch.float32)


def test_a_gguf_file_gives_the_same_model(tmp_path: Path, tied_llama: PreTrainedModel) -> None:
    """As ordinary weights that can be edited, converted and saved."""
    path = tmp_path / "tiny.gguf"
    write_gguf(tied_llama, path)
    module = CausalLanguageModel(str(path))
    module.setup("predict")
    module.configure_model()
    torch.testing.assert_close(logits(module.model), logits(tied_llama))
    assert len(module.coverage.weights) == 14
    module.model.float().save_pretrained(tmp_path / "saved")
    again = load_model(ModelSource(str(tmp_path / "saved")))
    assert torch.equal(logits(again), logits(module.model))


def test_the_attention_implementation_is_the_one_asked_for(model_folder: Path) -> None:
    """By its name in transformers."""
    model = load_model(ModelSource(str(model_folder), attention_implementation="eager"))
    assert model.config._attn_implementation == "eager"


def test_the_hash_tells_weights_apart(tied_llama: PreTrainedModel) -> None:
    """By one bit."""
    before = weight_hash(tied_llama)
    with torch.no_grad():
        tied_llama.model.norm.weight[3] += 1e-7
    assert weight_hash(tied_llama) != before


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    """It holds no model."""
    with pytest.raises(InputError, match=r"holds no config\.json"):
        ModelSource(str(tmp_path))


def test_a_hub_id_that_cannot_be_reached_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library's page of advice."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for load in (load_config, load_tokenizer, load_model):
        with pytest.raises(InputError, match=r"model\.\w+: nobody/nothing cannot be") as error:
            load(ModelSource("nobody/nothing"))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["fp8", "bitsandbytes", "gptq", "awq", "mxfp4"])
def test_a_quantised_checkpoint_is_refused(model_folder: Path, kind: str) -> None:
    """Its packed weights are no numbers; the sentence says what to do instead."""
    config = load_config(ModelSource(str(model_folder)))
    config.quantization_config = {"quant_method": kind}
    config.save_pretrained(model_folder)
    with pytest.raises(
        InputError, match=rf"quantised checkpoint \({kind}\), .*; load the unquantised"
    ):
        load_config(ModelSource(str(model_folder)))


@pytest.mark.parametrize("field", ["quantization_config", "compression_config"])
def test_a_quantised_part_is_refused(tmp_path: Path, field: str) -> None:
    """Also where only the language model of a multimodal checkpoint says so."""
    config = FAMILIES["Gemma 3, multimodal"].build().config
    setattr(config.get_text_config(), field, {"quant_method": "compressed-tensors"})
    config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"quantised checkpoint \(compressed-tensors\)"):
        load_config(ModelSource(str(tmp_path)))


def test_an_encoder_decoder_is_refused(tmp_path: Path) -> None:
    """In one sentence."""
    T5Config(num_layers=1).save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"encoder-decoder model \(t5\), but .* decoder-only one"):
        load_config(ModelSource(str(tmp_path)))


def test_a_model_without_weights_is_refused(model_folder: Path) -> None:
    """In one sentence."""
    (model_folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot be loaded"):
        load_model(ModelSource(str(model_folder)))


def test_a_checkpoint_that_lacks_a_weight_is_refused(
    model_folder: Path, tied_llama: PreTrainedModel
) -> None:
    """Random numbers in its place would be measured as if they were the model."""
    state = tied_llama.state_dict()
    del state["model.layers.1.mlp.down_proj.weight"], state["lm_head.weight"]
    save_file(state, model_folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lacks 1 weights, model\.layers\.1\.mlp\.down_proj"):
        load_model(ModelSource(str(model_folder)))


def test_a_damaged_checkpoint_is_one_sentence(
    model_folder: Path, tied_llama: PreTrainedModel
) -> None:
    """Cut off, or with a weight of another shape."""
    file = model_folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"model\.source: .* cannot be loaded"):
        load_model(ModelSource(str(model_folder)))
    state = tied_llama.state_dict()
    del state["lm_head.weight"]
    state["model.norm.weight"] = torch.ones(3)
    save_file(state, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"model\.source: .* cannot be loaded"):
        load_model(ModelSource(str(model_folder)))


@pytest.mark.parametrize("content", ['{"eos_token_id": 1, ', "[1]", ""])
@pytest.mark.parametrize(
    "name", ["config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"]
)
def test_a_damaged_json_file_is_refused_before_any_work(
    model_folder: Path, name: str, content: str
) -> None:
    """Transformers passes over a damaged generation config as if there was none."""
    (model_folder / name).write_text(content)
    with pytest.raises(InputError, match=rf"^model\.source: .*/{name} (cannot be read|holds a l)"):
        load_config(ModelSource(str(model_folder)))


def test_a_missing_tokenizer_is_told_as_such(model_folder: Path) -> None:
    """Not as a mistake in the model."""
    for file in model_folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(InputError, match=r"model\.tokenizer: .* cannot be loaded"):
        load_tokenizer(ModelSource(str(model_folder)))
