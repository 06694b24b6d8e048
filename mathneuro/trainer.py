"""The Trainer whose methods are the commands."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lightning.pytorch import Trainer
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from typing_extensions import override

from mathneuro.edit import Edit
from mathneuro.errors import InputError
from mathneuro.evaluation import EvaluationSettings
from mathneuro.grid import Grid
from mathneuro.plan import plan_lines
from mathneuro.shard import Shard
from mathneuro.signals import killable
from mathneuro.spread import spread_over_all
from mathneuro.strategies import check_strategy
from mathneuro.study import Study, fingerprint
from mathneuro.terminal import counted, is_first_process, say, tell
from mathneuro.watch import starting, watch_children

if TYPE_CHECKING:
    from mathneuro.data.module import TextDataModule
    from mathneuro.module import CausalLanguageModel
    from mathneuro.ranks import Ranks


Command = Literal["consistency", "operate", "predict", "sweep", "validate"]


class MathNeuroTrainer(Trainer):
    """Lightning's Trainer with the commands.

    ``operate``, ``predict``, ``sweep``, ``validate`` and ``consistency``; ``report`` and
    ``inspect`` need no Trainer.
    """

    command: Command | None = None
    """The command that is running."""
    grid: Grid = Grid()
    """What `sweep` tries."""

    def operate(self, model: "CausalLanguageModel", datamodule: "TextDataModule") -> None:
        """Evaluate, identify, intervene, evaluate again: the main job."""
        self._begin("operate")
        self._launch(model)
        super().validate(model, datamodule=datamodule, verbose=False)
        if model.importance is None:
            super().predict(model, datamodule=datamodule, return_predictions=False)
        model.intervening = True
        try:
            super().validate(model, datamodule=datamodule, verbose=False)
        finally:
            model.intervening = False

    def sweep(
        self,
        model: "CausalLanguageModel",
        datamodule: "TextDataModule",
        shard: str = "1/1",
        dry_run: bool = False,
    ) -> None:
        """Run a whole experiment: every setting of the grid, resumable, then the report.

        Args:
            model: The model.
            datamodule: The texts.
            shard: Which part of the settings to run, as i/n; all parts share one folder.
            dry_run: Whether only the plan is printed.
        """
        self._begin("sweep")
        study = self._study(datamodule, part := Shard.parse(shard))
        datamodule.draws = study.draws
        if self.is_global_zero:
            for label, text in plan_lines(study, datamodule):
                tell(label, text)
        if dry_run:
            return
        model.study = study
        ranks = self._launch(model)
        ranks.agree("the grid", lambda: (part, fingerprint({"names": study.names})))
        if ranks.first(study.needs_identification):
            super().predict(model, datamodule=datamodule, return_predictions=False)
        datamodule.positions = ranks.first(study.pending)
        super().validate(model, datamodule=datamodule, verbose=False)
        if not datamodule.positions:
            # Without a batch no epoch ran, whose callbacks would have looked at the model.
            model.begin_study()
        if not self.is_global_zero:
            return
        if study.missing():
            tell("sweep", f"left to other shards: {counted(study.missing(), 'setting')}")
        else:
            self.report(study.folder)

    def consistency(self, model: "CausalLanguageModel", datamodule: "TextDataModule") -> None:
        """Show how stable the selections of a sweep are, from the importance in its folder.

        The model's weights are loaded, but nothing runs through it.
        """
        if not is_first_process():
            return
        self._begin("consistency")
        study = self._study(datamodule, Shard(1, 1))
        from mathneuro.analysis.consistency import read_plan
        from mathneuro.analysis.consistency_pages import write_consistency

        plan = read_plan(study)
        study.expect("trainer", {"precision": str(self.precision)})
        study.expect_some("data", datamodule.draw_settings())
        # As Lightning does where a stage begins: weights may be converted.
        with self.precision_plugin.module_init_context():
            model.configure_model()
        self.precision_plugin.convert_module(model)
        for line in write_consistency(study, plan, model):
            say(line)

    @override
    def predict(  # type: ignore[override]
        self, model: "CausalLanguageModel", datamodule: "TextDataModule"
    ) -> None:
        """Identify only: save the importance of every parameter, to be used again."""
        self._begin("predict")
        self._launch(model)
        super().predict(model, datamodule=datamodule, return_predictions=False)

    @override
    def validate(  # type: ignore[override]
        self,
        model: "CausalLanguageModel",
        datamodule: "TextDataModule",
        edit: Path | None = None,
        factor: float | None = None,
        factors: dict[str, float] | None = None,
    ) -> list[Any]:
        """Evaluate only: tasks and perplexity, optionally with a saved edit applied.

        Args:
            model: The model.
            datamodule: The texts.
            edit: An edit file that ``operate`` wrote; the model is evaluated with it.
            factor: What the edit multiplies by, instead of its own factor.
            factors: Other factors for some weights, by patterns of their names.
        """
        self._begin("validate")
        if edit is not None:
            model.edit = Edit.load(edit).with_factors(factor, factors)
            model.intervening = True
        elif factor is not None or factors is not None:
            raise InputError(
                "factor: it is given without an edit, but it is the edit's; give --edit FILE too"
            )
        self._launch(model)
        return list(super().validate(model, datamodule=datamodule, verbose=False))

    def export(
        self,
        model: "CausalLanguageModel",
        datamodule: "TextDataModule",
        edit: Path,
        output: Path,
        factor: float | None = None,
        factors: dict[str, float] | None = None,
        results: Path | None = None,
        max_shard_size: str = "5GB",
        generation_config: dict[str, Any] | None = None,
        overwrite: bool = False,
        verify: bool = True,
    ) -> None:
        """Write an edited model as an ordinary Hugging Face folder.

        Args:
            model: The model.
            datamodule: Not used: the same config serves all commands.
            edit: An edit file that ``operate`` or ``combine`` wrote.
            output: Where the model goes; the folder's name is the model's on its card.
            factor: What the edit multiplies by, instead of its own factor.
            factors: Other factors for some weights, by patterns of their names.
            results: The results.json whose scores the model card states. null: the one beside the
                edit.
            max_shard_size: The largest file of weights; about that much is in memory at once.
            generation_config: Values to set in the generation config, such as {do_sample: true}.
            overwrite: Whether a folder that an export wrote is replaced.
            verify: Whether the written weights are read again and compared with the edited ones.
        """
        from mathneuro.export import Export, export_model, left_behind
        from mathneuro.export.measured import find_measured

        if not self.is_global_zero:
            return
        chosen = Edit.load(edit).with_factors(factor, factors)
        read = (model.source.path, model.source.tokenizer, edit, results)
        kept = tuple(Path(each) for each in read if each is not None)
        how = Export(output, max_shard_size, generation_config or {}, overwrite, verify, kept)
        measured = find_measured(chosen, edit, results)
        if isinstance(measured, str):
            tell("note", f"the model card states no scores: {measured}")
        for path in left_behind(output):
            tell("note", f"{path} is left of an export that was killed; remove it")
        files = export_model(model.source, chosen, how, measured)
        size = sum(path.stat().st_size for path in files) / 1e6
        tell("export", f"{output}, {counted(len(files), 'file')}, {size:,.1f} MB"
             + (", read again and found equal" if verify else ""))  # fmt: skip

    def show(
        self, model: "CausalLanguageModel", datamodule: "TextDataModule", number: int = 1
    ) -> None:
        """Print one text of each set and one prompt of each task, exactly as the model reads them.

        Args:
            model: The model; its weights are not loaded.
            datamodule: The texts.
            number: Which text and which question, from 1.
        """
        from mathneuro.show import shown_prompts, shown_texts

        if not self.is_global_zero:
            return
        callbacks = self.callbacks  # type: ignore[attr-defined]
        found = (getattr(each, "settings", None) for each in callbacks)
        settings = next(each for each in found if isinstance(each, EvaluationSettings))
        trusted = model.source.trust_remote_code
        if model.loaded_tokenizer.note is not None:
            tell("note", model.loaded_tokenizer.note)
        texts = shown_texts(datamodule, model.tokenizer, number)
        prompts = shown_prompts(model.config, model.tokenizer, settings, number, trusted)
        for each in [*texts, *prompts]:
            say("\n".join(each.lines()))

    @staticmethod
    def prepare(data: str, output: Path, source: str | None = None) -> None:
        """Make a local copy of a published data set, as CSV files that a config can name.

        Args:
            data: gsm8k, math, sgsm, race, mmlu, codealpaca, or mgsm with a language: mgsm_de,
                mgsm_bn, mgsm_en, mgsm_es, mgsm_fr, mgsm_ja, mgsm_ru, mgsm_sw, mgsm_te, mgsm_th or
                mgsm_zh.
            output: The folder that the files go into.
            source: Another copy of the same data: a folder, a file, or an id on the hub. null: the
                hub's.
        """
        from mathneuro.data.published import prepare

        for path, count in prepare(data, output, source).items():
            tell("prepare", f"{path}, {counted(count, 'row')}")

    @staticmethod
    def combine(
        edits: list[Path], output: Path, how: str = "union", factor: float | None = None
    ) -> None:
        """Make one edit of several of the same model.

        Args:
            edits: Two or more edit files.
            output: The edit file to write.
            how: union (what any of them selects), intersection (what all select) or difference
                (what the first selects and no other).
            factor: What the edit multiplies by. null: what all of them do.
        """
        from mathneuro.combine import combine

        loaded = [Edit.load(path) for path in edits]
        if output.exists():
            raise InputError(f"output: {output} is there already; give another file")
        edit = combine(loaded, how, factor, [str(path) for path in edits])
        edit.save(output)
        counts = ", ".join(f"{each.selection.count:,}" for each in loaded)
        tell("combine", f"{how} of {counts}: {edit.selection.count:,} parameters, factor "
             f"{edit.factor:g}: {output}")  # fmt: skip

    @staticmethod
    def report(
        folder: Path, math: list[str] | None = None, others: list[str] | None = None
    ) -> None:
        """Make the tables and figures of a sweep from its folder alone.

        Args:
            folder: The folder of the sweep.
            math: Scores that stand for math: names of tasks, tasks with a metric, or "perplexity
                SET". null: those that the sweep names, or the first task.
            others: Scores that stand for everything else. null: those that the sweep names, or all
                other tasks.
        """
        from mathneuro.report import write_report

        for line in write_report(folder, math, others).lines:
            say(line)

    @staticmethod
    def inspect(
        edits: list[Path], names: list[str] | None = None, folder: Path = Path("runs/inspected")
    ) -> None:
        """Show where the parameters of saved edits lie and what edits have in common.

        Args:
            edits: Edit files that ``operate`` wrote, for models of the same shapes.
            names: What to call them. null: by their folders.
            folder: Where the summary, tables, figures and TensorBoard's page go.
        """
        from mathneuro.analysis.inspection_pages import write_inspection

        for line in write_inspection(edits, names, folder):
            say(line)

    def _study(self, datamodule: "TextDataModule", shard: Shard) -> Study:
        """Return the sweep that the config describes."""
        if datamodule.repeat != 1:
            raise InputError(
                f"data.repeat: got {datamodule.repeat}, but a sweep runs the repeats 1 to "
                "grid.repeats; leave it out"
            )
        return Study(
            Path(self.default_root_dir),
            self.grid,
            datamodule.names,
            datamodule.num_samples,
            shard,
        )

    def _launch(self, model: "CausalLanguageModel") -> "Ranks":
        """Start the other processes now, and not with the first stage, and find one another."""
        model.trainer = self
        self.strategy.connect(model)
        launcher = self.strategy.launcher
        if isinstance(launcher, _SubprocessScriptLauncher):
            environment = launcher.cluster_environment
            if not environment.creates_processes_externally:
                # As Lightning's `launch` does, whose own watch kills this process in the end.
                with starting():
                    launcher._call_children_scripts()
                watch_children(launcher.procs)
            if self.num_nodes > 1 and self.is_global_zero:
                where = f"{environment.main_address}:{environment.main_port}"
                number = f"{self.world_size} processes on {self.num_nodes} machines"
                tell("start", f"waiting for {number} at {where}")
        with killable() if self.world_size > 1 else nullcontext():
            self.strategy.setup_environment()
        return model.ranks

    def _begin(self, command: Command) -> None:
        """Note the command, and refuse settings that it does not work with."""
        self.command = command
        check_strategy(self.strategy)
        spread_over_all(self.strategy)
        if self.world_size > 1 and self._accelerator_connector.use_distributed_sampler:
            raise InputError(
                "trainer.use_distributed_sampler: got true, but texts, questions and settings are "
                "divided among the processes already, and some would be left out; set it to false"
            )
        for name in ("limit_predict_batches", "limit_val_batches"):
            limit = getattr(self, name)
            if isinstance(limit, int) or limit != 1.0:
                raise InputError(
                    f"trainer.{name} (or fast_dev_run): got {limit}, but every text "
                    "must be used; lower data.num_samples or data.held_out instead"
                )
