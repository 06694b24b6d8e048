"""A tokenizer is what its tokenizer.json states, whatever transformers makes of it."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from mathneuro.loading import ModelSource
from mathneuro.tokenizer import different_parts, load_tokenizer
from tests.commands import run
from tests.families import FAMILIES

TEXT = "the red cat sees 12 dogs, isn't that: 3 + 4 = 7?\n"


def trained(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    """Train a small BPE on a text of the tests."""
    base = Tokenizer(models.BPE(unk_token="<unk>"))
    base.pre_tokenizer = pre_tokenizer
    special = ["<pad>", "<eos>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    base.train_from_iterator([TEXT, "Question: 1 + 2 = ? Answer: 3 . a blue dog likes -5"], trainer)
    return base


def save_model(
    folder: Path, base: Tokenizer, family: str = "Qwen2", **settings: object
) -> Tokenizer:
    """Save a tiny model with a tokenizer whose class is stated as one that reads the file."""
    model = FAMILIES[family].build()
    model.resize_token_embeddings(base.get_vocab_size())
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=base, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    ).save_pretrained(folder)
    config = folder / "tokenizer_config.json"
    stated = json.loads(config.read_text()) | {"tokenizer_class": "TokenizersBackend"} | settings
    config.write_text(json.dumps(stated))
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize(
    "pre_tokenizer",
    [
        pre_tokenizers.Whitespace(),
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False),
                                 pre_tokenizers.WhitespaceSplit()]),
        pre_tokenizers.Metaspace(),
    ],
    ids=["Whitespace", "Digits", "Metaspace"],
)  # fmt: skip
@pytest.mark.parametrize("family", ["Qwen2", "Llama, tied head", "OLMo2", "Cohere", "Falcon"])
def test_the_file_decides(
    tmp_path: Path, pre_tokenizer: pre_tokenizers.PreTokenizer, family: str
) -> None:
    """Also for types of models whose own class pre-tokenizes otherwise."""
    stated = save_model(tmp_path, trained(pre_tokenizer), family)
    loaded = load_tokenizer(ModelSource(str(tmp_path)))
    assert loaded.tokenizer(TEXT)["input_ids"] == stated.encode(TEXT).ids
    replaced = AutoTokenizer.from_pretrained(tmp_path)(TEXT)["input_ids"] != stated.encode(TEXT).ids
    assert bool(loaded.differs) or not replaced
    assert (loaded.note is None) == (not loaded.differs)


def test_what_was_replaced_is_named(tmp_path: Path) -> None:
    """The class, and the parts of the file that it would have put its own in place of."""
    base = trained(pre_tokenizers.Whitespace())
    base.normalizer = normalizers.Lowercase()
    save_model(tmp_path, base)
    loaded = load_tokenizer(ModelSource(str(tmp_path)))
    assert loaded.built == "Qwen2Tokenizer"
    assert {"normalizer", "pre_tokenizer"} <= set(loaded.differs)
    assert loaded.note is not None
    assert loaded.note.startswith("tokenizer.json is used as it is, since transformers' Qwen2")
    assert loaded.record()["replaced_parts"] == list(loaded.differs)


@pytest.mark.parametrize("template", ["$A", "<eos> $A", "$A <eos>", "<eos> $A <eos>"])
@pytest.mark.parametrize(
    "asked", [{}, {"add_bos_token": True}, {"add_bos_token": False, "add_eos_token": True}]
)
@pytest.mark.parametrize("pre_tokenizer", [pre_tokenizers.Whitespace(), None], ids=["own", "same"])
def test_what_the_config_says_of_special_tokens_stands(
    tmp_path: Path,
    template: str,
    asked: dict[str, bool],
    pre_tokenizer: pre_tokenizers.PreTokenizer | None,
) -> None:
    """Whatever tokenizer.json adds at the beginning and the end."""
    base = trained(pre_tokenizer or pre_tokenizers.ByteLevel())
    end = base.token_to_id("<eos>")
    base.post_processor = processors.TemplateProcessing(template, special_tokens=[("<eos>", end)])
    family = "Qwen2" if pre_tokenizer else "Llama, tied head"
    stated = save_model(tmp_path, base, family, bos_token="<eos>", **asked)
    loaded = load_tokenizer(ModelSource(str(tmp_path)))
    plain = stated.encode(TEXT, add_special_tokens=False).ids
    begins = asked.get("add_bos_token", template.startswith("<eos>"))
    ends = asked.get("add_eos_token", template.endswith("<eos>"))
    assert loaded.tokenizer(TEXT)["input_ids"] == [end] * begins + plain + [end] * ends
    changed = begins != template.startswith("<eos>") or ends != template.endswith("<eos>")
    assert bool(loaded.followed) == changed
    assert ("is followed" in (loaded.note or "")) == changed


def test_a_tokenizer_that_is_read_as_stated_stays(model_folder: Path) -> None:
    """Without a word."""
    loaded = load_tokenizer(ModelSource(str(model_folder)))
    assert (loaded.differs, loaded.note) == ((), None)


def test_offsets_make_no_difference() -> None:
    """They are no tokens."""
    first, second = trained(pre_tokenizers.ByteLevel()), trained(pre_tokenizers.ByteLevel())
    second.pre_tokenizer = pre_tokenizers.ByteLevel(trim_offsets=False)
    assert different_parts(first, second) == ()
    second.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert different_parts(first, second) == ("pre_tokenizer",)


def test_a_run_equals_that_with_a_folder_that_states_no_type(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Masks and scores, to the bit; and the record, the card and the terminal say what was done."""
    folder, plain = tmp_path / "qwen", tmp_path / "plain"
    save_model(folder, trained(pre_tokenizers.Whitespace()))
    PreTrainedTokenizerFast.from_pretrained(folder).save_pretrained(plain)
    found = []
    for name, more in (("own", []), ("plain", [f"--model.tokenizer={plain}"])):
        output = tmp_path / name
        given = [*arguments, f"--model.source={folder}", f"--folder={output}", *more]
        run(monkeypatch, "operate", given)
        told = " ".join(capsys.readouterr().out.split())
        record = json.loads((output / "results.json").read_text())
        found.append((load_file(output / "edit.safetensors"), record["scores"]["after"]["tasks"],
                      record["scores"]["after"]["perplexity"]))  # fmt: skip
        replaced = record["tokenizer"]["replaced_parts"]
        assert ("pre_tokenizer" in replaced) == (name == "own")
        assert ("tokenizer.json is used as it is" in told) == (name == "own")
    (first, *scores), (second, *others) = found
    assert scores == others
    assert first.keys() == second.keys()
    assert all(bool((first[name] == second[name]).all()) for name in first)
    given = [f"--edit={tmp_path / 'own' / 'edit.safetensors'}", f"--output={tmp_path / 'exported'}"]
    run(monkeypatch, "export", [*arguments, f"--model.source={folder}", *given])
    card = (tmp_path / "exported" / "README.md").read_text()
    assert "tokenizer.json is used as it is, since transformers' Qwen2Tokenizer replaces" in card
    tokenizer = load_tokenizer(ModelSource(str(tmp_path / "exported"))).tokenizer
    stated = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer(TEXT)["input_ids"] == stated.encode(TEXT).ids
