"""Synthetic folders as a sweep leaves them, with seeded random outcomes."""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mathneuro.study import fingerprint

TASKS = ("gsm8k_cot exact_match,strict-match", "gsm8k_cot exact_match,flexible-extract", "race acc")
TOTAL = 100_000
MATTERS: dict[str, Any] = {
    "model": {"source": "org/tiny-math"}, "data": {}, "evaluation": {}, "versions": {},
}  # fmt: skip


@dataclass
class Sweep:
    """What to make.

    Attributes:
        methods: Methods; all but ``wanda`` and its like in `without_sets` get the calibration sets.
        sets: Calibration sets, one setting each.
        repeats: Draws of texts.
        proportions: Proportions.
        factors: Factors.
        num_samples: Numbers of texts.
        questions: Of each task.
        texts: Of each perplexity.
        tasks: Labels of scores with outcomes; of ``NAME acc``.
        perplexities: Sets with held-out texts.
        before: Whether the model as it was found is measured.
        without_sets: Methods without calibration sets.
        seed: Of all random numbers.
    """

    methods: tuple[str, ...] = ("mathneuro", "random", "wanda")
    sets: tuple[str, ...] = ("race", "mmlu")
    repeats: int = 3
    proportions: tuple[float, ...] = (0.001, 0.01, 0.1)
    factors: tuple[float, ...] = (0.0,)
    num_samples: tuple[int | None, ...] = (500,)
    questions: int = 60
    texts: int = 12
    tasks: tuple[str, ...] = TASKS
    perplexities: tuple[str, ...] = ("math", "race")
    before: bool = True
    without_sets: tuple[str, ...] = ("wanda",)
    seed: int = 0
    records: dict[str, dict[str, Any]] = field(default_factory=dict)

    def names(self) -> dict[str, dict[str, Any]]:
        """Return every planned setting by name, without ``before``."""
        planned = {}
        for samples in self.num_samples:
            for method in self.methods:
                for one in [None] if method in self.without_sets else self.sets:
                    for repeat in range(1, self.repeats + 1):
                        for proportion in self.proportions:
                            for factor in self.factors:
                                texts = "all" if samples is None else f"n{samples}"
                                middle = f"_{one}" if one else ""
                                name = f"{method}{middle}_{texts}_r{repeat}_p{proportion:g}"
                                name += f"_x{factor:g}"
                                planned[name] = {
                                    "method": method, "calibration": [one] if one else [],
                                    "num_samples": samples, "repeat": repeat,
                                    "proportion": proportion, "factor": factor,
                                }  # fmt: skip
        return planned

    def write(self, folder: Path) -> Path:
        """Write the folder and keep the records."""
        planned = self.names()
        generator = np.random.default_rng(self.seed)
        ease = {label: generator.random(self.questions) for label in self.tasks}
        base = {name: 1.5 + 0.4 * generator.random(self.texts) for name in self.perplexities}
        tokens = generator.integers(20, 60, self.texts)
        made = {"before": None, **planned} if self.before else dict(planned)
        self.records = {}
        for name, setting in made.items():
            self.records[name] = self._record(name, setting, generator, ease, base, tokens)
        (folder / "settings").mkdir(parents=True)
        for name, record in self.records.items():
            write(folder / "settings" / f"{name}.json", record)
        write(folder / "study.json", self.study(["before", *planned]))
        return folder

    def study(self, names: list[str]) -> dict[str, Any]:
        """Return the content of ``study.json``."""
        return {
            "format": "mathneuro-sweep-1",
            "settings": names,
            "grid": {
                "methods": list(self.methods), "calibration": [[name] for name in self.sets],
                "repeats": self.repeats, "proportions": list(self.proportions),
                "factors": list(self.factors), "num_samples": list(self.num_samples),
                "math": None, "others": None,
            },
            "coverage": {"parameters": TOTAL - 1000, "total": TOTAL},
            "matters": MATTERS,
        }  # fmt: skip

    def _record(
        self,
        name: str,
        setting: dict[str, Any] | None,
        generator: np.random.Generator,
        ease: dict[str, Any],
        base: dict[str, Any],
        tokens: Any,  # noqa: ANN401
    ) -> dict[str, Any]:
        """Draw the outcomes of one setting and score them."""
        tasks: dict[str, dict[str, Any]] = {}
        perplexity, outcomes = {}, {}
        for label in self.tasks:
            right = ease[label] + 0.1 * generator.standard_normal(self.questions)
            values = (right < 0.8 - damage(setting, label.startswith("gsm8k"))).astype(float)
            task, _, metric = label.partition(" ")
            error = values.std(ddof=1) / math.sqrt(len(values))
            tasks.setdefault(task, {})[metric] = {
                "value": values.mean(), "standard_error": error, "count": len(values),
            }  # fmt: skip
            outcomes[label] = {"values": values.tolist()}
        for kind in self.perplexities:
            harm = 2 * damage(setting, kind == "math")
            noise = 0.02 * generator.standard_normal(self.texts)
            losses = (base[kind] + harm + (noise if setting else 0)) * tokens
            value = math.exp(losses.sum() / tokens.sum())
            perplexity[kind] = {
                "value": value, "standard_error": 0.02 * value, "count": self.texts,
            }  # fmt: skip
            outcomes[f"perplexity {kind}"] = {"losses": losses.tolist(), "tokens": tokens.tolist()}
        selection = None
        if setting is not None:
            count = int(TOTAL * setting["proportion"])
            digest = hashlib.sha256(name.rpartition("_x")[0].encode()).hexdigest()
            selection = {"parameters": count, "sha256": digest, "by_weight": {"w": count}}
        return {
            "format": "mathneuro-setting-2", "name": name, "setting": setting,
            "selection": selection, "matters": fingerprint(MATTERS),
            "scores": {"perplexity": perplexity, "tasks": tasks, "notes": [], "prompts": {}},
            "outcomes": outcomes,
            "run": {"seconds": 1.5, "device": "cpu", "host": "a", "finished": "2026-01-01"},
        }  # fmt: skip


def damage(setting: dict[str, Any] | None, is_math: bool) -> float:
    """Return how much a setting lowers a score, on a scale from 0 to 1."""
    if setting is None or setting["method"] == "random":
        return 0.0
    part = 1.0 if is_math or setting["method"] == "wanda" else 0.05
    few = 1.0 if setting["num_samples"] is None else 1 - 1 / (1 + setting["num_samples"])
    reach = max(0.0, 0.75 + 0.22 * math.log10(setting["proportion"]))
    return float(part * few * reach * abs(setting["factor"] - 1))


def write(path: Path, content: Any) -> None:  # noqa: ANN401
    """Write a JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")


def change(path: Path, **values: Any) -> None:
    """Change fields of a JSON object in a file; keys with ``__`` for ``.`` lead inside."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for name, value in values.items():
        part = content
        *way, last = name.split("__")
        for step in way:
            part = part[step]
        part[last] = value
    write(path, content)
