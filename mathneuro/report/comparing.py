"""Every setting against the model as it was found, and settings that are the same model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mathneuro.errors import InputError
from mathneuro.estimates import mean_over_repeats
from mathneuro.finished import Losses, Result
from mathneuro.grid import BEFORE
from mathneuro.prompts import check_same_prompts
from mathneuro.questions import compare_repeats
from mathneuro.report.reading import Study
from mathneuro.scores import Score, is_perplexity
from mathneuro.statistics import (
    CONFIDENCE,
    Comparison,
    adjusted,
    compare_perplexity,
    compare_unpaired,
)

UNCHANGED = "same model as before"
"""The test of a setting that changed nothing: there is nothing to test."""


@dataclass(frozen=True)
class Measured:
    """One score with what it is made of.

    Attributes:
        score: The score.
        outcomes: One a question. None: unknown, or no score over questions.
        losses: One a text. None: unknown, or no perplexity.
    """

    score: Score
    outcomes: list[float] | None
    losses: Losses | None


def measured(result: Result, label: str) -> Measured | None:
    """Return one score of a setting. None: it was not measured."""
    score = result.scores.rows().get(label)
    if score is None:
        return None
    return Measured(score, result.outcomes.get(label), result.losses.get(label))


def compare(before: Result, repeats: Sequence[Result], label: str) -> Comparison | None:
    """Compare one score of a setting, or its mean over repeats, with the model as it was found.

    Outcomes of a question are averaged over the repeats first: questions are the units, however
    many repeats answered them. Perplexities are averaged on the logarithmic scale.

    Args:
        before: The model as it was found.
        repeats: The setting, once a repeat.
        label: The score.

    Returns:
        The comparison by questions or texts where their outcomes are known, else by standard
        errors; for a perplexity it is a ratio. None: one of the settings lacks the score.

    Raises:
        InputError: If the settings are not over the same prompts, questions or texts.
    """
    old = measured(before, label)
    found = [measured(result, label) for result in repeats]
    new = [each for each in found if each is not None]
    if old is None or not new or len(new) < len(found):
        return None
    if all(result.is_unedited for result in repeats):
        same = 1.0 if is_perplexity(label) else 0.0
        return Comparison(same, 0.0, same, same, None, UNCHANGED, new[0].score.count)
    for result, each in zip(repeats, new, strict=True):
        file = f"settings/{result.name}.json"
        check_same_prompts(
            before.scores.prompts, result.scores.prompts, "settings/before.json", file
        )
        _check_same_questions(old, each, file, label)
    losses = [each.losses.losses for each in new if each.losses]
    if old.losses and len(losses) == len(new):
        return compare_perplexity(old.losses.losses, _means(losses), old.losses.tokens)
    outcomes = [each.outcomes for each in new if each.outcomes]
    if old.outcomes and len(outcomes) == len(new):
        return compare_repeats(old.outcomes, outcomes)
    ratio = is_perplexity(label)
    return compare_unpaired(old.score, _mean_score([each.score for each in new], ratio), ratio)


def same_models(study: Study) -> dict[str, str]:
    """Find settings whose model another setting has already.

    Returns:
        By name of a setting the first one, in the order of the study, with the same factor and the
        same selection; ``before`` if nothing was changed.
    """
    firsts: dict[tuple[float, str], str] = {}
    same = {}
    for result in study.edited:
        if result.setting is None or result.is_unedited:
            same[result.name] = BEFORE
            continue
        first = firsts.setdefault((result.setting.factor, result.selection), result.name)
        if first != result.name:
            same[result.name] = first
    return same


def adjusted_p_values(study: Study, labels: Sequence[str]) -> dict[str, float | None]:
    """Return the p-value of each setting, adjusted for the number of settings.

    Settings that are the same model count once, those that changed nothing do not count.

    Args:
        study: The sweep.
        labels: One score; or several, whose mean is tested.

    Returns:
        By name of the setting. None: unknown, or nothing to test.
    """
    before, same = study.before, same_models(study)
    if before is None or not labels:
        return {result.name: None for result in study.edited}
    tested = [result for result in study.edited if result.name not in same]
    values = [_p_value(before, result, labels) for result in tested]
    found = dict(zip((result.name for result in tested), adjusted(values), strict=True))
    return {result.name: found.get(same.get(result.name, result.name)) for result in study.edited}


def _p_value(before: Result, result: Result, labels: Sequence[str]) -> float | None:
    """Return the p-value of one score's change, or that of the mean of several independent ones."""
    changes, errors = [], []
    for label in labels:
        each = compare(before, [result], label)
        if each is None or each.difference is None:
            return None
        if len(labels) == 1:
            return each.p_value
        is_still = each.standard_error is None and each.p_value == 1
        if each.standard_error is None and not is_still:
            return None
        if is_perplexity(label) and each.difference <= 0:
            return None
        changes.append(math.log(each.difference) if is_perplexity(label) else each.difference)
        errors.append(each.standard_error or _error_of_interval(each))
    error = math.hypot(*errors)
    if error == 0:
        return 1.0 if sum(changes) == 0 else None
    from scipy import stats

    return 2 * float(stats.norm.sf(abs(sum(changes)) / error))


def _error_of_interval(change: Comparison) -> float:
    """Return the standard error that an interval stands for, where all differences are equal."""
    if change.low is None or change.high is None:
        return 0.0
    from scipy import stats

    return (change.high - change.low) / (2 * float(stats.norm.ppf((1 + CONFIDENCE) / 2)))


def _mean_score(scores: Sequence[Score], geometric: bool) -> Score:
    """Average scores of which only value and standard error are known."""
    value = mean_over_repeats([score.value for score in scores], geometric).value
    # Repeats share their questions, so that averaging them is not trusted to lower the error.
    errors = [score.standard_error for score in scores if score.standard_error is not None]
    error = sum(errors) / len(errors) if len(errors) == len(scores) else None
    return Score(value, error, scores[0].count)


def _means(lists: Sequence[Sequence[float]]) -> list[float]:
    """Average several lists element by element."""
    return [sum(values) / len(values) for values in zip(*lists, strict=True)]


def _check_same_questions(old: Measured, new: Measured, file: str, label: str) -> None:
    """Refuse to pair what does not belong together."""
    differ = False
    if old.outcomes and new.outcomes:
        differ = len(old.outcomes) != len(new.outcomes)
    if old.losses and new.losses:
        differ = differ or old.losses.tokens != new.losses.tokens
    if differ:
        raise InputError(
            f"folder: {file} holds other questions or texts of {label!r} than settings/before.json,"
            " but both must be over the same; delete one of the files and run `sweep` again"
        )
