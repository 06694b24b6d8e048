"""Which part of a model is the language model."""

from typing import Any

from torch import nn

from mathneuro.decoder import find_decoder


class Scope:
    """Tells parts of a model that are not its language model: vision towers, projectors.

    The language model is the decoder, as transformers finds it, and the head. A module that is not
    one of transformers' models is all language model.

    Args:
        model: The model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._decoder = ""
        self._head: str | None = None
        self._multimodal = False
        pretrained: Any = model
        if not hasattr(model, "get_decoder") or not hasattr(model, "get_output_embeddings"):
            return
        names = {module: name for name, module in model.named_modules()}
        self._decoder = names.get(find_decoder(pretrained), "")
        self._head = names.get(pretrained.get_output_embeddings())
        self._multimodal = pretrained.config.get_text_config() is not pretrained.config

    def outside(self, name: str) -> tuple[str, bool] | None:
        """Tell whether a parameter lies outside.

        Args:
            name: The parameter's name in the model.

        Returns:
            Why it is left alone, and whether the method wants it so. None: it lies inside.
        """
        path, decoder = name.split("."), self._decoder.split(".") if self._decoder else []
        if path[: len(decoder)] == decoder:
            return None
        if self._head is not None and name.startswith(f"{self._head}."):
            return None
        shared = next(at for at, part in enumerate(path) if decoder[at : at + 1] != [part])
        part = ".".join(path[: shared + 1])
        if self._multimodal:
            return f"{part} is not part of the language model", True
        return f"{part} is outside of the decoder and its head", False
