"""What a model's generation config changes about greedy answers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import GenerationConfig

NEUTRAL: dict[str, tuple[object, ...]] = {
    "repetition_penalty": (None, 1.0),
    "encoder_repetition_penalty": (None, 1.0),
    "no_repeat_ngram_size": (None, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "bad_words_ids": (None, []),
    "sequence_bias": (None, {}, []),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "exponential_decay_length_penalty": (None,),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "num_beams": (None, 1),
    "penalty_alpha": (None, 0.0),
    "dola_layers": (None,),
    "guidance_scale": (None, 1.0),
    "watermarking_config": (None,),
    "stop_strings": (None, []),
    "max_time": (None,),
}
"""Options that change greedy answers, each with the values that change nothing."""


def greedy_changes(config: "GenerationConfig") -> dict[str, Any]:
    """Return what a generation config sets that changes the most likely answers.

    lm-eval's tasks say whether answers are sampled, how long they are and where they end; all else
    comes from this config, such as penalties that its makers found useful in a chat.

    Args:
        config: The model's generation config.

    Returns:
        Values by name; empty: greedy answers are the most likely tokens.

    Example:
        >>> from transformers import GenerationConfig
        >>> greedy_changes(GenerationConfig(repetition_penalty=1.3, do_sample=True, top_p=0.9))
        {'repetition_penalty': 1.3}
    """
    values = {name: getattr(config, name, None) for name in NEUTRAL}
    return {name: value for name, value in values.items() if value not in NEUTRAL[name]}


def greedy_note(changes: dict[str, Any]) -> str | None:
    """Say what changes greedy answers; None if nothing does.

    Example:
        >>> greedy_note({"repetition_penalty": 1.3})
        "the model's generation config changes greedy answers (repetition_penalty: 1.3); lm-eval's \
own model does the same; take it out of generation_config.json if you do not want that"
    """
    if not changes:
        return None
    values = ", ".join(f"{name}: {value}" for name, value in changes.items())
    return (
        f"the model's generation config changes greedy answers ({values}); lm-eval's own model "
        "does the same; take it out of generation_config.json if you do not want that"
    )
