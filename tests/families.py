"""Tiny real models of many families, built offline: what the tests of architectures run on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel

COMMON: dict[str, Any] = {
    "vocab_size": 29,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
"""Sizes that most families name alike."""

GEMMA: dict[str, Any] = {**COMMON, "head_dim": 8, "sliding_window": 4}

EXPERTS: dict[str, Any] = {
    **COMMON,
    "moe_intermediate_size": 24,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
"""Sizes of mixtures of experts; each family reads the names that it knows."""

VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 4,
}


@dataclass(frozen=True)
class Family:
    """A family of models and what is known of its coverage.

    Attributes:
        architecture: Name of the causal language model's class in transformers.
        config: Name of the config's class in transformers.
        settings: The config's settings.
        left_alone: Reasons for which weights other than embeddings, norms and biases are left
            alone, each with a part of the names of all such weights.
    """

    architecture: str
    config: str
    settings: Mapping[str, Any]
    left_alone: Mapping[str, str] = field(default_factory=dict)

    def build(self) -> PreTrainedModel:
        """Build the model with random weights, the same ones every time."""
        torch.manual_seed(0)
        config = getattr(transformers, self.config)(**self.settings)
        model: PreTrainedModel = getattr(transformers, self.architecture)(config)
        model.requires_grad_(False)
        model.train(False)
        with torch.no_grad():
            for parameter in model.parameters():
                # Routers and some others start as zeros, which would tell nothing apart.
                if parameter.dim() > 1 and not parameter.any():
                    parameter.normal_(0, 0.3)
        return model


def _family(
    name: str,
    settings: Mapping[str, Any],
    left_alone: Mapping[str, str] | None = None,
    **changes: Any,
) -> Family:
    return Family(f"{name}ForCausalLM", f"{name}Config", {**settings, **changes}, left_alone or {})


CONVOLUTION = {"a weight of Conv1d, which is no linear layer": "conv1d.weight"}


FAMILIES: dict[str, Family] = {
    "Llama, tied head": _family("Llama", COMMON, tie_word_embeddings=True),
    "Llama, own head": _family("Llama", COMMON, tie_word_embeddings=False),
    "Llama 4": Family(
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        {
            **EXPERTS,
            "head_dim": 8,
            "intermediate_size_mlp": 24,
            "attention_chunk_size": 4,
            "use_qk_norm": False,
        },
        {"a weight of Llama4TextExperts, which is no linear layer": "experts"},
    ),
    "Mistral": _family("Mistral", COMMON, sliding_window=4),
    "Phi": _family("Phi", COMMON, num_key_value_heads=2),
    "Phi-3": _family("Phi3", COMMON),
    "Gemma 2": _family("Gemma2", GEMMA, query_pre_attn_scalar=8),
    "Gemma 3": Family("Gemma3ForCausalLM", "Gemma3TextConfig", GEMMA),
    "Gemma 3, multimodal": Family(
        "Gemma3ForConditionalGeneration",
        "Gemma3Config",
        {
            "text_config": GEMMA,
            "vision_config": VISION,
            "mm_tokens_per_image": 4,
            "boi_token_index": 26,
            "eoi_token_index": 27,
            "image_token_index": 28,
        },
        {
            "model.vision_tower is not part of the language model": "vision_tower",
            "model.multi_modal_projector is not part of the language model": "projector",
        },
    ),
    "LLaVA": Family(
        "LlavaForConditionalGeneration",
        "LlavaConfig",
        {
            "text_config": {**COMMON, "model_type": "llama"},
            "vision_config": {**VISION, "model_type": "clip_vision_model"},
            "image_token_index": 28,
        },
        {
            "model.vision_tower is not part of the language model": "vision_tower",
            "model.multi_modal_projector is not part of the language model": "projector",
        },
    ),
    "Qwen2": _family("Qwen2", COMMON),
    "Qwen3": _family("Qwen3", COMMON, head_dim=8),
    "Qwen3-MoE": _family("Qwen3Moe", EXPERTS, head_dim=8),
    "Mixtral": _family("Mixtral", EXPERTS),
    "OLMoE": _family("Olmoe", EXPERTS),
    "GPT-OSS": _family("GptOss", EXPERTS, head_dim=8, sliding_window=4),
    "DeepSeek-V3": _family(
        "DeepseekV3",
        EXPERTS,
        num_key_value_heads=2,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=1,
        q_lora_rank=8,
        kv_lora_rank=8,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=8,
        n_shared_experts=1,
    ),
    "GPT-2": Family(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 29, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64,
         "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 1},
    ),
    "GPT-NeoX": _family("GPTNeoX", COMMON),
    "OPT": Family(
        "OPTForCausalLM",
        "OPTConfig",
        {**COMMON, "word_embed_proj_dim": 16, "ffn_dim": 24, "init_std": 0.3, "pad_token_id": 1},
    ),
    "Falcon": _family("Falcon", COMMON),
    "Bloom": Family(
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": 29, "hidden_size": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.3},
    ),
    "Mamba": _family(
        "Mamba",
        COMMON,
        {
            **CONVOLUTION,
            "a weight of MambaMixer, which is no linear layer": "A_log",
            "its module is not run in a forward pass": "dt_proj.weight",
        },
        state_size=4,
        expand=2,
    ),
    "Jamba": _family(
        "Jamba",
        EXPERTS,
        {
            **CONVOLUTION,
            "a weight of JambaMambaMixer, which is no linear layer": "A_log",
            "its module is not run in a forward pass": "dt_proj.weight",
        },
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        mamba_d_state=4,
        mamba_dt_rank=4,
    ),
    "Granite 4 hybrid": _family(
        "GraniteMoeHybrid",
        EXPERTS,
        CONVOLUTION,
        shared_intermediate_size=12,
        layer_types=["mamba", "attention"],
        mamba_n_heads=4,
        mamba_n_groups=1,
        mamba_d_state=8,
        mamba_d_head=8,
        mamba_expand=2,
        mamba_chunk_size=4,
        position_embedding_type="rope",
    ),
    "Qwen3-Next": _family(
        "Qwen3Next",
        EXPERTS,
        CONVOLUTION,
        head_dim=8,
        layer_types=["linear_attention", "full_attention"],
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        linear_num_key_heads=1,
        linear_num_value_heads=2,
        shared_expert_intermediate_size=12,
    ),
    "StarCoder2": _family("Starcoder2", COMMON),
    "Cohere": _family("Cohere", COMMON),
    "OLMo2": _family("Olmo2", COMMON),
    "StableLM": _family("StableLm", COMMON),
    "ModernBERT decoder": _family(
        "ModernBertDecoder",
        {**COMMON, "cls_token_id": 1, "sep_token_id": 1},
        {"lm_head is outside of the decoder and its head": "lm_head."},
    ),
}  # fmt: skip
"""The families that the README tells to be tested, by the name that it gives them."""
