"""The model card of an edited model: what it is, how it was made, what was measured."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mathneuro.edit import Edit
from mathneuro.export.measured import Measured
from mathneuro.table import markdown

KEPT = ("license", "license_name", "license_link", "language", "pipeline_tag")
"""What the base model's card says that goes for the edited model too."""

PAPER = "https://arxiv.org/abs/2410.16930"


def model_card(
    edit: Edit,
    name: str,
    measured: Measured | str,
    base: Path | None,
    tokenizer_note: str | None = None,
) -> str:
    """Write a model card.

    Args:
        edit: The edit.
        name: Name of the edited model.
        measured: Its scores, or why there are none.
        base: The folder of the base model. None: it has none.
        tokenizer_note: What is special about the tokenizer. None: nothing.

    Returns:
        Markdown with the metadata that the hub reads.
    """
    from huggingface_hub import ModelCardData

    source = _line(edit.model.get("source"))
    kept = _kept(base)
    # An id on the hub is one name or two; a path of somebody's machine means nothing to others.
    if not Path(source).exists() and source.count("/") <= 1:
        kept["base_model"] = source
    tags = ["mathneuro", "math-neurosurgery"]
    data = ModelCardData(library_name="transformers", tags=tags, **kept)
    lines = [
        f"# {name}",
        "",
        f"{_what(edit, source)} Nothing was trained; all other parameters are those of the base "
        f"model, bit for bit. Made with MathNeuro, after [Math Neurosurgery]({PAPER}).",
        "",
        "## The edit",
        "",
        *(f"- {_line(label)}: {_line(value)}" for label, value in _facts(edit)),
        *(
            []
            if tokenizer_note is None
            else ["", "## The tokenizer", "", _tokenizer(tokenizer_note)]
        ),
        "",
        "## What was measured",
        "",
        *_scores(measured),
    ]
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n".join(lines) + "\n"


def _kept(base: Path | None) -> dict[str, Any]:
    """Read what the base model's card says of licence and language."""
    path = base / "README.md" if base is not None else None
    if path is None or not path.is_file():
        return {}
    import yaml
    from huggingface_hub import metadata_load

    try:
        stated = metadata_load(path) or {}
    except (ValueError, yaml.YAMLError):
        return {"base_card_note": "its metadata cannot be read"}
    return {key: stated[key] for key in KEPT if key in stated}


def _what(edit: Edit, source: str) -> str:
    count, factors = edit.selection.count, {*edit.factors.values(), edit.factor}
    done = "were set to zero" if factors == {0.0} else f"were multiplied by {edit.factor:g}"
    others = " (some weights by factors of their own, below)" if edit.factors else ""
    return f"This is `{source}`, of which {count:,} parameters {done}{others}."


def _facts(edit: Edit) -> Iterator[tuple[str, object]]:
    """Tell all that is needed to make the edit again."""
    model, origin = edit.model, edit.selection.origin
    total = model.get("parameters")
    share = f" of {total:,} ({edit.selection.count / total:.3%})" if total else ""
    yield "base model", f"`{model.get('source')}`"
    for label, key in (
        ("revision", "revision"), ("GGUF file", "gguf_file"), ("type of the weights", "dtype"),
        ("hash of the base model's weights", "weight_hash"),
    ):  # fmt: skip
        if model.get(key) is not None:
            yield label, f"`{model[key]}`"
    yield "parameters", f"{edit.selection.count:,}{share}, in {len(edit.selection.shapes)} weights"
    yield "factor", f"{edit.factor:g}"
    for weight, factor in edit.factors.items():
        yield f"factor of `{weight}`", f"{factor:g}"
    for label, value in origin.items():
        if label == "of":
            for part in value:
                yield f"of `{part.get('name')}`", _mapping(part)
        else:
            yield label, ", ".join(map(str, value)) if isinstance(value, list) else value
    for name, each in edit.data.items():
        yield f"texts of `{name}`", _texts(each)
    yield "SHA-256 of the selection", f"`{edit.selection.sha256()}`"


def _tokenizer(note: str) -> str:
    """Say how to load the tokenizer that the model was measured with."""
    return (
        f"{_line(note)}. Load it with `PreTrainedTokenizerFast.from_pretrained`; `AutoTokenizer` "
        "of some versions of transformers gives other tokens."
    )


def _line(value: object) -> str:
    """Return a text without line breaks and the like, which a file of a stranger may hold."""
    return "".join(each if each.isprintable() else " " for each in str(value))


def _mapping(part: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in part.items() if key != "name")


def _texts(each: Mapping[str, Any]) -> str:
    """Say which texts of which data."""
    where = [f"`{each.get('path')}`"]
    where += [f"{key} `{each[key]}`" for key in ("name", "split", "revision") if each.get(key)]
    return f"{each.get('texts')} from {', '.join(where)}; SHA-256 `{each.get('sha256')}`"


def _scores(measured: Measured | str) -> list[str]:
    if isinstance(measured, str):
        return [f"Nothing is known here ({measured})."]
    names = ("mathneuro", "torch", "transformers", "lm-eval")
    libraries = (f"{name} {measured.versions[name]}" for name in names if name in measured.versions)
    intervals = "; changes with their 95 % intervals" if measured.changes else ""
    notes = {note for scores in measured.scores.values() for note in scores.notes}
    return [
        markdown(measured.scores, measured.changes),
        "",
        f"Value ± standard error{intervals}. {', '.join(libraries)}.",
        *(f"\n{note}." for note in sorted(notes)),
    ]
