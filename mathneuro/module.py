"""The LightningModule around a Hugging Face causal language model."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import torch
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch import LightningModule
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor
from typing_extensions import override

from mathneuro.data.budget import fits_in_memory
from mathneuro.data.module import TextDataModule
from mathneuro.decoder import context_length, input_device, run_decoder
from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.importance import Identification, Importance
from mathneuro.layers import Coverage, find_linear_weights
from mathneuro.loading import (
    DataType,
    ModelSource,
    load_config,
    load_model,
    weight_hash,
)
from mathneuro.neurons import NeuronCoverage, find_neurons
from mathneuro.norms import InputNorms
from mathneuro.perplexity import TokenPerplexity, token_losses
from mathneuro.placement import Placement
from mathneuro.ranks import ALONE, Ranks
from mathneuro.results import coverage_fingerprint, coverage_record, neurons_record
from mathneuro.scores import Score, Scores, finite
from mathneuro.selection import Selection
from mathneuro.spread import spread
from mathneuro.storage import storage_devices
from mathneuro.study import InFlight, Study, fingerprint
from mathneuro.suitability import check_model, head_weight, position_table
from mathneuro.tokenizer import LoadedTokenizer, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from mathneuro.data.batches import Batch
    from mathneuro.data.draws import DrawKey
    from mathneuro.data.module import Purpose


class CausalLanguageModel(LightningModule):
    """A causal language model: frozen, in evaluation mode, never trained.

    Args:
        source: Id on the Hugging Face hub, local folder, or local GGUF file.
        revision: Branch, tag or commit on the hub.
        tokenizer: Id or folder of the tokenizer. null: the model's own.
        gguf_file: A GGUF file within the hub repository or folder.
        dtype: Type of the weights. auto: that of the checkpoint (GGUF: float32).
        attention_implementation: eager, sdpa, flash_attention_2... null: the model's default.
        trust_remote_code: Whether code that comes with the model may run.
        include: Patterns of names of weights, such as "model.layers.*.mlp.*"; only what matches
            one takes part. null: all.
        exclude: Patterns of names of weights that are left alone.
        device_map: Where the weights of a model go that does not fit on one device: auto, balanced,
            balanced_low_0, sequential, or the device of every module by its name; cpu is where
            weights wait that run on the other devices. null: all on the Trainer's device.
        max_memory: How much of each device a device map may use, as {"0": 20GiB, cpu: 60GiB}.
    """

    model: "PreTrainedModel"
    """The Hugging Face model; there after `configure_model`."""
    identification: Identification | None = None
    """How the importance was found."""
    importance: Importance | None = None
    """What identification found."""
    needs_activations: bool = False
    """Whether the activations of neurons are looked at; callbacks say so in `setup`."""
    selection: Selection | None = None
    """The parameters that the method chose."""
    edit: Edit | None = None
    """The edit to evaluate."""
    intervening: bool = False
    """Whether validation sees the edited weights."""
    study: Study | None = None
    """The sweep that is running."""
    in_flight: InFlight | None = None
    """The setting of the sweep that is evaluated right now."""

    def __init__(
        self,
        source: str,
        revision: str | None = None,
        tokenizer: str | None = None,
        gguf_file: str | None = None,
        dtype: DataType = "auto",
        attention_implementation: str | None = None,
        trust_remote_code: bool = False,
        include: list[str] | None = None,
        exclude: list[str] | None = None,
        device_map: dict[str, int | str] | str | None = None,
        max_memory: dict[int | str, str] | None = None,
    ) -> None:
        super().__init__()
        self.include = include
        self.exclude = exclude or []
        self.source = ModelSource(
            source, revision, tokenizer, gguf_file, dtype, attention_implementation,
            trust_remote_code, Placement(device_map, max_memory),
        )  # fmt: skip
        self.importances: dict[DrawKey, Importance] = {}
        self.perplexities: list[TokenPerplexity] = []
        self.scores: dict[str, Scores] = {}

    @cached_property
    def config(self) -> "PreTrainedConfig":
        """The model's config; read without its weights."""
        return load_config(self.source)

    @cached_property
    def loaded_tokenizer(self) -> LoadedTokenizer:
        """The tokenizer and where it came from; read without the model's weights."""
        return load_tokenizer(self.source)

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The tokenizer; read without the model's weights."""
        return self.loaded_tokenizer.tokenizer

    @cached_property
    def candidates(self) -> Coverage:
        """Which weights take part if they can be measured."""
        return find_linear_weights(self.model, self.include, self.exclude)

    @cached_property
    def coverage(self) -> Coverage:
        """Which weights take part; found out by a trial pass on the device of the model."""
        return check_model(self.model, self.candidates)

    @cached_property
    def neurons(self) -> NeuronCoverage:
        """Which neurons take part; found out by a trial pass on the device of the model."""
        return find_neurons(self.model, self.coverage)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Which model this is: its source and the hash of its unedited weights."""
        return {
            "source": self.source.path,
            "revision": self.source.revision,
            "gguf_file": self.source.gguf_file,
            "tokenizer": self.source.tokenizer,
            "attention_implementation": self.model.config._attn_implementation,
            "model_type": self.config.model_type,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "parameters": self.candidates.total,
            "weight_hash": weight_hash(self.model),
        }

    @cached_property
    def head_weight(self) -> str | None:
        """Name of the head's weight if it takes part and the decoder does not run it."""
        return head_weight(self.model, self.coverage)

    @cached_property
    def ranks(self) -> Ranks:
        """The processes of the run; there once the strategy has set them up."""
        if self._trainer is None:
            return ALONE
        in_lockstep = isinstance(self.trainer.strategy, ModelParallelStrategy)
        return Ranks.of(self.trainer, in_lockstep)

    @property
    def evaluators(self) -> Ranks:
        """The processes that share an evaluation: all; but each its own in a sweep."""
        return self.ranks if self.study is None or self.ranks.in_lockstep else ALONE

    @property
    def column(self) -> str:
        """What the scores that validation measures belong to.

        ``before``, ``after``, or in a sweep the name of the setting.
        """
        if self.in_flight is not None:
            return self.in_flight.name
        return "after" if self.intervening else "before"

    @property
    def devices(self) -> str:
        """The devices that hold the weights."""
        return ", ".join(storage_devices(self.model))

    @property
    def context_length(self) -> int | None:
        """The longest text that the model was made for, in tokens, if its config tells."""
        return context_length(self.config)

    @override
    def setup(self, stage: str) -> None:
        """Read the config, so that models that cannot be treated are refused without loading."""
        if self._trainer is not None:
            self.source.placement.check_trainer(self._trainer)
        _ = self.config

    @override
    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or convert the weights, but for those that were placed on loading."""
        recurse = recurse and not self.source.placement.is_fixed
        return super()._apply(fn, recurse)  # type: ignore[no-any-return, no-untyped-call]

    @override
    def configure_model(self) -> None:
        """Load the weights, once."""
        if "model" not in self._modules:
            self.model = load_model(self.source)
            _ = self.candidates, self.identity
            self.ranks.agree("the model", lambda: self.identity["weight_hash"])
            if self.ranks.in_lockstep and self.device_mesh is not None:
                spread(self.model, self.device_mesh)

    @override
    def on_validation_model_eval(self) -> None:
        """Try the model out before callbacks ask for what that tells."""
        super().on_validation_model_eval()
        self._try_together()

    @override
    def on_predict_model_eval(self) -> None:
        """Try the model out before callbacks ask for what that tells."""
        super().on_predict_model_eval()
        self._try_together()

    def _try_together(self) -> None:
        """Make the trial passes in all processes that run one model together.

        Some callbacks act in the first process alone, where no forward pass may begin.
        """
        if self.ranks.in_lockstep:
            _ = self.coverage
            if self.needs_activations:
                _ = self.neurons

    def begin_study(self) -> None:
        """Refuse a sweep of another model, and write down what this one plans."""
        study = self.study
        if study is None:
            return
        study.expect("model", self.identity)
        study.expect("coverage", coverage_fingerprint(self.coverage))
        coverage = coverage_record(self.coverage)
        if self.needs_activations:
            coverage["neurons"] = neurons_record(self.neurons)
        self.ranks.agree("the sweep", lambda: fingerprint(study.matters))
        if self.trainer.is_global_zero:
            study.begin(coverage)
        self.ranks.meet()
        study.check_begun()

    @override
    def on_validation_start(self) -> None:
        """Refuse texts that the model has no positions for."""
        self._check_lengths()

    @override
    def on_predict_start(self) -> None:
        """Refuse texts that the model has no positions for."""
        self._check_lengths()

    @override
    def on_validation_end(self) -> None:
        """Wait for the other processes: what Lightning does next does not wait long."""
        self.ranks.meet()

    @override
    def on_predict_end(self) -> None:
        """Wait for the other processes."""
        self.ranks.meet()

    def _check_lengths(self) -> None:
        data = getattr(self.trainer, "datamodule", None)
        table = position_table(self.model)
        if isinstance(data, TextDataModule) and table is not None:
            longest = data.longest()
            if len(longest.tokens) > table:
                raise InputError(
                    f"data.max_length: got {data.max_length}, but {longest.name} has "
                    f"{len(longest.tokens)} tokens and the model positions for {table}; set it to "
                    f"{table} or less"
                )

    @override
    def predict_step(
        self, batch: "Batch", batch_idx: int, dataloader_idx: int = 0
    ) -> Tensor | None:
        """Run the decoder alone: no head's matrix product, no cache.

        Returns:
            The decoder's output, ``[texts, tokens, hidden]``. None: there is no text.
        """
        if not batch:
            return None
        batch = self._where_read(batch)
        return run_decoder(self.model, batch["input_ids"], batch["attention_mask"])

    @override
    def on_validation_epoch_start(self) -> None:
        """Start one perplexity a set of held-out texts."""
        if self.study is None:
            sets = self.trainer.datamodule.tokenized.values()  # type: ignore[attr-defined]
            self._begin_perplexities(sum(bool(each.held_out) for each in sets))

    @override
    def validation_step(
        self, batch: "Batch | int | None", batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Add the texts of a batch to the perplexity of their set; in a sweep, those of all sets.

        The batch of a sweep is the position of a setting, or None if there is none.
        """
        if isinstance(batch, int):
            if self.in_flight is not None and self.in_flight.known is None:
                self._measure_held_out()
        elif batch:
            self._add(batch, self.perplexities[dataloader_idx])

    def _measure_held_out(self) -> None:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        loaders = data.held_out_loaders(self.evaluators)
        self._begin_perplexities(len(loaders))
        for loader, perplexity in zip(loaders, self.perplexities, strict=True):
            for batch in loader:
                self._add(self.trainer.strategy.batch_to_device(batch, self.device), perplexity)

    def _begin_perplexities(self, number: int) -> None:
        keywords = {
            "process_group": self.evaluators.group,
            "sync_on_compute": self.evaluators.divides,
        }
        self.perplexities = [TokenPerplexity(**keywords).to(self.device) for _ in range(number)]

    def _add(self, batch: "Batch", perplexity: TokenPerplexity) -> None:
        batch = self._where_read(batch)
        output = self.model(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False
        )
        losses = token_losses(output.logits, batch["input_ids"], batch["attention_mask"])
        perplexity.update(losses, batch["attention_mask"][:, 1:], batch["positions"])

    @property
    def input_device(self) -> torch.device:
        """Where texts have to be that the model reads."""
        return input_device(self.model)

    def fits(self, batch: "Batch", purpose: "Purpose") -> bool:
        """Tell whether a batch fits on the device: run it as identification or perplexity does."""
        batch = move_data_to_device(batch, self.input_device)

        @torch.no_grad()
        def run() -> None:
            if purpose == "identification":
                norms = InputNorms(self.coverage.weights)
                with norms.recording(), norms.batch(batch["attention_mask"], batch["names"]):
                    self.predict_step(batch, 0)
            else:
                self._add(batch, TokenPerplexity().to(self.input_device))

        return fits_in_memory(run)

    def _where_read(self, batch: "Batch") -> "Batch":
        """Move a batch to where the model reads it, if that need not be the Trainer's device."""
        if not self.source.placement.is_fixed:
            return batch
        moved: Batch = move_data_to_device(batch, self.input_device)
        return moved

    def keep_perplexity(self, scores: Scores, names: list[str]) -> None:
        """Put the perplexities that were measured into the scores, in all processes.

        Args:
            scores: The scores to add to.
            names: The sets of held-out texts, in the order of their loaders.
        """
        for name, metric in zip(names, self.perplexities, strict=True):
            self.evaluators.meet()
            # The group that waits without a limit knows the CPU alone.
            found = metric.cpu().compute()
            value, error = float(found["perplexity"]), float(found["standard_error"])
            # torchmetrics gives a list of one number as the number.
            losses, tokens = found["losses"].reshape(-1), found["tokens"].reshape(-1)
            scores.perplexity[name] = Score(value, finite(error), len(losses))
            scores.outcomes[f"perplexity {name}"] = {
                "losses": losses.tolist(),
                "tokens": tokens.long().tolist(),
            }
            if finite(value) is None:
                scores.notes.append(f"the perplexity of {name} is no number: the model overflows")
