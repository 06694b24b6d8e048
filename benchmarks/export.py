"""Writing an edited model against loading and saving it plainly: time, memory, size of the edit."""

import multiprocessing
import re
import shutil
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from jsonargparse import auto_cli

from benchmarks.measuring import Figure, alternate, publish, seconds
from benchmarks.parts import MODEL, random_llama
from mathneuro.edit import Edit
from mathneuro.export import Export, export_model
from mathneuro.layers import find_linear_weights
from mathneuro.loading import ModelSource, load_model, weight_hash
from mathneuro.selection import Selection, number_selected
from mathneuro.terminal import quieten, saving_quietly


def main(
    parameters: int = 135_000_000,
    proportion: float = 0.05,
    shard: str = "50MB",
    rounds: int = 3,
    output: Path | None = None,
) -> None:
    """Measure and print.

    Args:
        parameters: Size of a random Llama.
        proportion: Share of each weight's parameters that is edited, anywhere in it.
        shard: The largest file of weights, in the measurement of memory.
        rounds: How often each is timed.
        output: A JSON file to write the figures to.
    """
    quieten()
    with tempfile.TemporaryDirectory() as name, saving_quietly():
        folder = Path(name)
        source = make(folder / "base", parameters)
        edit = random_edit(source, proportion)
        edit.save(folder / "edit.safetensors")
        size = sum(path.stat().st_size for path in (folder / "base").glob("*.safetensors"))
        model = f"{parameters / 1e6:.1f} M"
        figures = []
        for verify in (False, True):
            ratio = alternate(
                lambda verify=verify: seconds(lambda: write(source, edit, folder, "5GB", verify)),  # type: ignore[misc]
                lambda: seconds(lambda: plainly(source, folder, "5GB")),
                rounds,
            )
            kind = "export, read again" if verify else "export"
            figures.append(
                Figure(f"{kind} / load and save_pretrained", model, ratio.value,
                       details={"export, s": ratio.first, "plain, s": ratio.second},
                       spread=ratio.spread)
            )  # fmt: skip
        whole = peak_of(in_memory, source, folder, shard)
        streamed = peak_of(write_checked, source, folder, shard)
        details = {"export, bytes": streamed, "edited in memory, bytes": whole, "shard": shard}
        figures.append(Figure("memory of export / the weights", model, streamed / size,
                              details=details))  # fmt: skip
        edited = (folder / "edit.safetensors").stat().st_size
        figures.append(
            Figure(f"edit file of {proportion:.0%} / the weights", model, edited / size,
                   details={"bytes a selected parameter": edited / edit.selection.count})
        )  # fmt: skip
    publish(figures, output)


def make(folder: Path, parameters: int) -> ModelSource:
    """Save a random Llama with a tokenizer."""
    torch.manual_seed(0)
    random_llama(parameters).save_pretrained(folder)
    for path in MODEL.glob("tokenizer*"):
        shutil.copy(path, folder)
    return ModelSource(str(folder))


def random_edit(source: ModelSource, proportion: float) -> Edit:
    """Select any parameters of every weight."""
    model = load_model(source)
    weights = find_linear_weights(model).weights
    positions = {
        name: torch.randperm(each.numel)[: number_selected(each.numel, proportion)].sort().values
        for name, each in weights.items()
    }
    shapes = {name: each.stored_shape for name, each in weights.items()}
    return Edit(Selection(positions, shapes), 1.1, {"weight_hash": weight_hash(model)})


def write(source: ModelSource, edit: Edit, folder: Path, shard: str, verify: bool) -> None:
    """Export."""
    how = Export(folder / "exported", shard, overwrite=True, verify=verify)
    export_model(source, edit, how, "not measured")


def write_checked(source: ModelSource, folder: Path, shard: str) -> None:
    """Export an edit from its file, and read it again."""
    write(source, Edit.load(folder / "edit.safetensors"), folder, shard, True)


def plainly(source: ModelSource, folder: Path, shard: str) -> None:
    """Load into memory and save."""
    load_model(source).save_pretrained(folder / "plain", max_shard_size=shard)


def in_memory(source: ModelSource, folder: Path, shard: str) -> None:
    """Load, edit in memory, and save."""
    model = load_model(source)
    with Edit.load(folder / "edit.safetensors").applied(model):
        model.save_pretrained(folder / "plain", max_shard_size=shard)


def peak_of(
    work: Callable[[ModelSource, Path, str], None], source: ModelSource, folder: Path, shard: str
) -> int:
    """Return the most memory in bytes that some work takes in a process of its own.

    The cache of files, which the system takes back when it needs memory, does not count. The
    process is watched from here, since writing a shard lets no other thread run there.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, work, source, folder, shard))
    process.start()
    theirs.close()
    ours.recv()
    start = peak = _anonymous(process.pid)
    ours.send("go")
    while not ours.poll(0.001):
        peak = max(peak, _anonymous(process.pid))
    ours.recv()
    process.join()
    return peak - start


def _work(
    pipe: Connection,
    work: Callable[[ModelSource, Path, str], None],
    source: ModelSource,
    folder: Path,
    shard: str,
) -> None:
    quieten()
    with tempfile.TemporaryDirectory() as spare, saving_quietly():
        # What is imported and kept once does not count either.
        plainly(ModelSource(str(MODEL)), Path(spare), shard)
        pipe.send("ready")
        pipe.recv()
        work(source, folder, shard)
        pipe.send("done")


def _anonymous(process: int | None) -> int:
    """Return how many bytes of memory a process has that no file backs."""
    found = re.search(r"RssAnon:\s*(\d+) kB", Path(f"/proc/{process}/status").read_text())
    if found is None:
        raise RuntimeError(f"Expected process {process} to have memory of its own.")
    return 1024 * int(found[1])


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
