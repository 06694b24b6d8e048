"""Settings that differ in the repeat alone, and what they come to together."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mathneuro.estimates import Estimate, average, mean_over_repeats, score_estimate
from mathneuro.finished import Result
from mathneuro.report.comparing import compare, measured
from mathneuro.report.reading import Study
from mathneuro.scores import is_perplexity


@dataclass(frozen=True)
class Series:
    """What one line of a figure stands for.

    Attributes:
        method: The method that selected.
        calibration: Names of the sets that are removed.
    """

    method: str
    calibration: tuple[str, ...]

    def __str__(self) -> str:
        """Name it.

        Example:
            >>> print(Series("mathneuro", ("race", "mmlu")), "/", Series("wanda", ()))
            mathneuro, race+mmlu / wanda
        """
        sets = "+".join(self.calibration)
        return f"{self.method}, {sets}" if sets else self.method


@dataclass(frozen=True)
class Cell:
    """All repeats of one setting.

    Attributes:
        series: Method and calibration sets.
        num_samples: Texts of each set. None: all.
        proportion: Share of each weight that was aimed at.
        factor: What the selected parameters were multiplied by.
        repeats: The finished settings.
    """

    series: Series
    num_samples: int | None
    proportion: float
    factor: float
    repeats: list[Result]

    def values(self, labels: Sequence[str]) -> list[float]:
        """Return the mean of some scores in each repeat; NaN where one is no number."""
        return [mean_score(result, labels) for result in self.repeats]

    def level(self, labels: Sequence[str]) -> Estimate:
        """Return the mean of some scores over the repeats.

        Its interval is over repeats; over questions if there is one repeat.
        """
        if len(self.repeats) == 1:
            return level(self.repeats[0], labels)
        values, geometric = self.values(labels), are_perplexities(labels)
        return mean_over_repeats(values, geometric, share=self._are_shares(labels))

    def _are_shares(self, labels: Sequence[str]) -> bool:
        """Tell whether each question is right or wrong, so that a score is a share of questions."""
        outcomes = [result.outcomes.get(label) for result in self.repeats for label in labels]
        return all(each is not None and set(each) <= {0.0, 1.0} for each in outcomes)

    def change(self, before: Result, labels: Sequence[str]) -> Estimate:
        """Return the change of the mean of some scores, averaged over the repeats.

        Its interval is over questions or texts. For perplexities it is a ratio.
        """
        comparisons = [compare(before, self.repeats, label) for label in labels]
        changes = [
            Estimate(math.nan)
            if each is None or each.difference is None
            else Estimate(each.difference, each.low, each.high)
            for each in comparisons
        ]
        return average(changes, geometric=are_perplexities(labels))


def cells(study: Study) -> list[Cell]:
    """Put the finished settings together that differ in the repeat alone.

    Returns:
        The cells in the order of the study; numbers of texts, factors and proportions rise.
    """
    found: dict[tuple[Series, int | None, float, float], Cell] = {}
    for result in study.edited:
        if result.setting is None:
            continue
        each = result.setting
        key = (Series(each.method, each.calibration), each.num_samples, each.proportion,
               each.factor)  # fmt: skip
        found.setdefault(key, Cell(*key, repeats=[])).repeats.append(result)
    return sorted(
        found.values(),
        key=lambda cell: (samples_order(cell.num_samples), cell.factor, cell.proportion),
    )


def all_series(found: Sequence[Cell]) -> list[Series]:
    """List methods and calibration sets, those of one method together."""
    series = list(dict.fromkeys(cell.series for cell in found))
    methods = list(dict.fromkeys(each.method for each in series))
    return sorted(series, key=lambda each: methods.index(each.method))


def by_panel(found: Sequence[Cell]) -> Iterator[tuple[int | None, float, list[Cell]]]:
    """Go through the numbers of texts and factors, each with its cells."""
    for samples, factor in dict.fromkeys((cell.num_samples, cell.factor) for cell in found):
        yield (
            samples,
            factor,
            [cell for cell in found if (cell.num_samples, cell.factor) == (samples, factor)],
        )


def samples_order(num_samples: int | None) -> float:
    """Return where a number of texts comes in a row: all texts last."""
    return math.inf if num_samples is None else num_samples


def level(result: Result, labels: Sequence[str]) -> Estimate:
    """Return the mean of some scores of one setting, with its interval over questions or texts."""
    estimates = []
    for label in labels:
        found = measured(result, label)
        estimates.append(
            Estimate(math.nan)
            if found is None
            else score_estimate(found.score, found.outcomes, ratio=is_perplexity(label))
        )
    return average(estimates, geometric=are_perplexities(labels))


def mean_score(result: Result, labels: Sequence[str]) -> float:
    """Return the mean of some scores of one setting; the geometric mean of perplexities."""
    rows = result.scores.rows()
    values = [rows[label].value if label in rows else math.nan for label in labels]
    return average([Estimate(value) for value in values], are_perplexities(labels)).value


def are_perplexities(labels: Sequence[str]) -> bool:
    """Tell whether scores are averaged, and compared, on the logarithmic scale."""
    return bool(labels) and all(map(is_perplexity, labels))
