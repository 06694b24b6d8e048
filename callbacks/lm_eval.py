"""When tasks are evaluated: at the end of the validation epoch, or as a setting's edit is on."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch import LightningModule, Trainer
from typing_extensions import override

from callbacks.run import Run, running
from callbacks.setting import SettingCallback
from mathneuro.data.tokens import check_chat_template
from mathneuro.evaluation import EvaluationSettings, evaluate
from mathneuro.files import write_json_lines
from mathneuro.greedy import greedy_changes, greedy_note
from mathneuro.programs.spec import ProgramSet
from mathneuro.scores import Scores
from mathneuro.study import Study
from mathneuro.task_fingerprints import tasks_fingerprint
from mathneuro.tasks import LoadedTasks, check_answers, load_tasks
from mathneuro.terminal import tell
from mathneuro.whole_number import WholeNumber

if TYPE_CHECKING:
    from mathneuro.live_model import LiveModel


class LMEval(SettingCallback):
    """Runs EleutherAI's lm-eval on the live model and keeps the result of every question.

    Args:
        tasks: Names of lm-eval tasks, groups or tags.
        task_folders: Folders with task YAML files of your own.
        limit: First so many questions of each task. null: all.
        num_fewshot: Worked examples in each prompt. null: what the task says.
        batch_size: Requests a forward pass, or auto.
        seed: Seed of everything that an evaluation draws, few-shot examples included.
        chat_template: Whether the tokenizer's chat template is applied to prompts.
        chat_template_args: What the chat template is given besides, such as
            ``{enable_thinking: false}``.
        think_end_token: What ends a model's thoughts, as a text or the number of a token; answers
            begin after its last occurrence. None: all of an answer counts.
        fewshot_as_multiturn: Whether few-shot examples become turns of the conversation.
        system_instruction: System message of the chat template.
        programs: Program-of-thought tasks by name, such as {sgsm: {path: sgsm.csv}}: questions that
            the model answers with programs, which are run.
        confirm_run_unsafe_code: Whether programs that the model writes are run, in a sandbox.
    """

    def __init__(
        self,
        tasks: list[str] | None = None,
        task_folders: list[Path] | None = None,
        limit: WholeNumber | None = None,
        num_fewshot: WholeNumber | None = None,
        batch_size: int | str = 1,
        seed: WholeNumber = 1234,
        chat_template: bool = False,
        chat_template_args: dict[str, Any] | None = None,
        think_end_token: str | int | None = None,
        fewshot_as_multiturn: bool = False,
        system_instruction: str | None = None,
        programs: dict[str, ProgramSet] | None = None,
        confirm_run_unsafe_code: bool = False,
    ) -> None:
        self.settings = EvaluationSettings(
            tasks=tuple(tasks or ()),
            task_folders=tuple(task_folders or ()),
            limit=limit,
            num_fewshot=num_fewshot,
            batch_size=batch_size,
            seed=seed,
            chat_template=chat_template,
            chat_template_args=chat_template_args or {},
            think_end_token=think_end_token,
            fewshot_as_multiturn=fewshot_as_multiturn,
            system_instruction=system_instruction,
            programs=programs or {},
            confirm_run_unsafe_code=confirm_run_unsafe_code,
        )
        self._tasks: LoadedTasks | None = None
        self._live: LiveModel | None = None

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Build the tasks and their data once, before the model loads."""
        run = running(trainer, pl_module)
        asked = self.settings.tasks or self.settings.programs
        if self._tasks is None and asked and run.command != "predict":
            if self.settings.chat_template:
                check_chat_template(run.module.tokenizer, "lm_eval")
            self._tasks = run.module.ranks.in_turn(lambda: load_tasks(self.settings))
            check_answers(self._tasks.tasks, run.module.context_length)
        if run.module.study is not None and "lm_eval" not in run.module.study.matters:
            settings = asdict(self.settings)
            # The questions and how they are asked are told below, wherever they lie.
            settings["task_folders"] = settings["programs"] = None
            tasks, groups = (self._tasks.tasks, self._tasks.groups) if self._tasks else ({}, {})
            questions = tasks_fingerprint(tasks, self.settings)
            sets = run.data.names if run.data.number_held_out else []
            measured = [f"perplexity {name}" for name in sets]
            run.module.study.check_scores([*tasks, *groups, *measured], True)
            run.module.study.expect("lm_eval", {**settings, "questions": questions})

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluate the model as it is now."""
        run = running(trainer, pl_module)
        if run.module.study is None:
            self._evaluate(run, keep_samples=True)

    @override
    def on_setting_start(self, run: Run, study: Study, position: int) -> None:
        """Evaluate the model with the edit of a setting on it, unless its result is known."""
        flight = run.module.in_flight
        if flight is not None and flight.known is None:
            self._evaluate(run, study.grid.samples)

    def _evaluate(self, run: Run, keep_samples: bool) -> None:
        scores = run.module.scores.setdefault(run.module.column, Scores())
        if self._tasks is None:
            return
        if self._live is None:
            from mathneuro.live_model import LiveModel

            self._live = LiveModel(
                run.module.model,
                run.module.tokenizer,
                self.settings.batch_size,
                run.module.evaluators,
                progress=run.is_first,
                chat_template_args=self.settings.chat_template_args,
                think_end_token=self.settings.think_end_token,
            )
            self._tell_generation(run)
        evaluation = evaluate(self._live, self._tasks, self.settings)
        scores.tasks = evaluation.scores
        scores.notes += evaluation.notes
        scores.evaluation = evaluation.record
        scores.outcomes |= evaluation.outcomes
        scores.prompts |= evaluation.prompts
        scores.settings = {
            **asdict(self.settings),
            "batch_sizes": dict(self._live.batch_sizes),
            "generation_config": self._generation_changes(run),
        }
        if not keep_samples or not run.writes:
            return
        folder = run.folder / "samples" / run.module.column
        for task, samples in evaluation.samples.items():
            write_json_lines(folder / f"{task}.jsonl", samples)

    def _generation_changes(self, run: Run) -> dict[str, Any]:
        """Return what the model's generation config changes about the answers of these tasks."""
        kinds = {task.OUTPUT_TYPE for task in self._tasks.tasks.values()} if self._tasks else set()
        generates = "generate_until" in kinds
        return greedy_changes(run.module.model.generation_config) if generates else {}

    def _tell_generation(self, run: Run) -> None:
        note = greedy_note(self._generation_changes(run))
        if note is not None and run.is_first:
            tell("note", note)
