"""Time of identification against a bare decoder forward over the same batches.

Both are timed alternately in one process: Lightning's whole predict epoch, hooks and sums included,
and a plain loop over the same batches. Prints the median of each, and that of the ratios of
neighbouring rounds.
"""

import statistics
import time

import torch
from jsonargparse import auto_cli
from rich.console import Console

from benchmarks.parts import LANGUAGE, MATH, MODEL, random_llama, silent_trainer
from callbacks import AccumulateImportance
from mathneuro.data import TextSet
from mathneuro.data.module import TextDataModule
from mathneuro.decoder import run_decoder
from mathneuro.module import CausalLanguageModel
from mathneuro.terminal import quieten


def bare(module: CausalLanguageModel, data: TextDataModule) -> float:
    """Time a plain loop over all batches, in seconds."""
    batches = [batch for loader in data.predict_dataloader() for batch in loader]
    start = time.perf_counter()
    with torch.no_grad():
        for batch in batches:
            run_decoder(module.model, batch["input_ids"], batch["attention_mask"])
    if module.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def identify(module: CausalLanguageModel, data: TextDataModule) -> float:
    """Time a whole predict epoch, in seconds."""
    silent_trainer([AccumulateImportance()]).predict(module, datamodule=data)
    if module.identification is None:
        raise RuntimeError("Nothing was identified.")
    return module.identification.seconds


def main(
    source: str = str(MODEL),
    random_parameters: int | None = None,
    math: TextSet | None = None,
    language: TextSet | None = None,
    num_samples: int = 300,
    batch_size: int = 16,
    rounds: int = 5,
) -> None:
    """Measure and print.

    Args:
        source: Model to measure, as `model.source`.
        random_parameters: Measure a random Llama of about so many parameters instead, with the
            tokenizer of the source.
        math: Math texts; by default those that come with the shipped model.
        language: Calibration texts; by default those that come with the shipped model.
        num_samples: Texts of each set.
        batch_size: Texts a forward pass.
        rounds: How often each is timed.
    """
    quieten()
    module = CausalLanguageModel(source)
    if random_parameters is not None:
        module.model = random_llama(random_parameters)
    data = TextDataModule(
        math or MATH,
        {"language": language or LANGUAGE},
        num_samples=num_samples,
        replacement=False,
        batch_size=batch_size,
        held_out=0,
    )
    identify(module, data)
    bare(module, data)
    pairs = [(bare(module, data), identify(module, data)) for _ in range(rounds)]
    plain, whole = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(identified / forward for forward, identified in pairs)
    Console().print(
        f"{module.coverage.total / 1e6:.1f} M parameters, {2 * num_samples} texts, batches of "
        f"{batch_size}, {torch.get_num_threads()} threads: bare forward {plain:.2f} s, "
        f"identification {whole:.2f} s, ratio {ratio:.3f}",
        soft_wrap=True,
    )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
