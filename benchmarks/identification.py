"""Identification against bare forward passes and against the naive method: time and memory."""

from functools import partial
from pathlib import Path

import torch
from jsonargparse import auto_cli

from benchmarks import naive
from benchmarks.measuring import Figure, alternate, peak_bytes, publish, seconds
from benchmarks.parts import load, name_of, silent_trainer, texts
from callbacks import AccumulateImportance
from mathneuro.data.module import TextDataModule
from mathneuro.decoder import run_decoder
from mathneuro.module import CausalLanguageModel
from mathneuro.norms import InputNorms
from mathneuro.terminal import quieten


def bare(module: CausalLanguageModel, data: TextDataModule) -> float:
    """Time the decoder alone over all batches, which are made before, in seconds."""
    batches = [batch for loader in data.predict_dataloader() for batch in loader]
    pairs = [
        (batch["input_ids"].to(module.device), batch["attention_mask"].to(module.device))
        for batch in batches
    ]

    def work() -> None:
        with torch.no_grad():
            for ids, mask in pairs:
                run_decoder(module.model, ids, mask)

    return seconds(work)


def identify(module: CausalLanguageModel, data: TextDataModule) -> float:
    """Time a whole predict epoch, in seconds."""
    silent_trainer([AccumulateImportance()], devices=1).predict(module, datamodule=data)
    if module.identification is None:
        raise RuntimeError("Nothing was identified.")
    return module.identification.seconds


def read_naively(module: CausalLanguageModel, data: TextDataModule) -> float:
    """Time the naive sums over all texts, in seconds."""
    tokens = [text.tokens for each in data.tokenized.values() for text in each.identification]
    return seconds(partial(naive.add_up, module.model, module.coverage.weights, tokens))


def memory(module: CausalLanguageModel, data: TextDataModule) -> Figure:
    """Measure how much more memory norms take than the forward pass, in the largest batch."""
    batch = next(iter(data.predict_dataloader()[0]))
    ids, mask = batch["input_ids"].to(module.device), batch["attention_mask"].to(module.device)
    norms = InputNorms(module.coverage.weights)

    def forward() -> None:
        with torch.no_grad():
            run_decoder(module.model, ids, mask)

    def observed() -> None:
        with norms.recording(), norms.batch(mask, batch["names"]):
            forward()

    observed()
    plain, whole = peak_bytes(forward), peak_bytes(observed)
    weights = sum(each.numel() * each.element_size() for each in module.model.parameters())
    details = {"forward, bytes": plain, "with norms, bytes": whole, "weights, bytes": weights}
    value = (whole - plain) / weights
    return Figure("5. memory above a forward pass, of the weights", name_of(module), value, 0.01,
                  details={**details, "tokens": ids.numel()})  # fmt: skip


def main(
    parameters: int | None = None,
    num_samples: int = 300,
    batch_size: int = 16,
    naive_samples: int = 60,
    rounds: int = 5,
    output: Path | None = None,
) -> None:
    """Measure and print.

    Args:
        parameters: Size of a random Llama to measure. null: the shipped model.
        num_samples: Texts of each set.
        batch_size: Texts a forward pass, but against the naive method, which takes one.
        naive_samples: Texts of each set against the naive method.
        rounds: How often each is timed.
        output: A JSON file to write the figures to.
    """
    quieten()
    module, data = load(parameters), texts(num_samples, batch_size)
    identify(module, data)
    bare(module, data)
    name = name_of(module)
    ratio = alternate(lambda: identify(module, data), lambda: bare(module, data), rounds)
    details = {"identification, s": ratio.first, "bare, s": ratio.second, "texts": 2 * num_samples,
               "batch": batch_size}  # fmt: skip
    figures = [
        Figure("1. identification / bare decoder", name, ratio.value, 1.03, None, details,
               ratio.spread)
    ]  # fmt: skip
    single = texts(naive_samples, batch_size=1)
    identify(module, single)
    read_naively(module, single)
    ratio = alternate(
        lambda: read_naively(module, single), lambda: identify(module, single), rounds
    )
    details = {"naive, s": ratio.first, "identification, s": ratio.second,
               "texts": 2 * naive_samples, "batch": 1}  # fmt: skip
    figures.append(
        Figure("2. naive method / identification, a pass", name, ratio.value, None, 1.8, details,
               ratio.spread)
    )  # fmt: skip
    figures.append(memory(module, data))
    publish(figures, output)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
