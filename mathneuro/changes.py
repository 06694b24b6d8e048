"""How every score changed between two states of one model, and how sure that is."""

from mathneuro.prompts import check_same_prompts
from mathneuro.questions import compare_questions
from mathneuro.scores import Scores, is_perplexity
from mathneuro.statistics import Comparison, compare_perplexity, compare_unpaired


def changes(before: Scores, after: Scores) -> dict[str, Comparison]:
    """Compare two states of one model, score by score.

    Args:
        before: Scores of the model as it was found.
        after: Scores of the edited model on the same questions and texts.

    Returns:
        By label of the score: paired by question or text where their outcomes are known, else by
        standard errors. A perplexity's difference is a ratio.

    Raises:
        InputError: If the two were not asked the same prompts.

    Example:
        >>> from mathneuro.scores import Score
        >>> outcomes = {"sums acc": {"values": [1.0, 1.0, 0.0, 1.0]}}
        >>> before = Scores(tasks={"sums": {"acc": Score(0.75, 0.25, 4)}}, outcomes=outcomes)
        >>> change = changes(before, before)["sums acc"]
        >>> change.difference, change.p_value
        (0.0, 1.0)
    """
    check_same_prompts(before.prompts, after.prompts, "before", "after")
    old, new = before.rows(), after.rows()
    return {label: _compare(before, after, label) for label in new if label in old}


def _compare(before: Scores, after: Scores, label: str) -> Comparison:
    first, second = before.outcomes.get(label), after.outcomes.get(label)
    if first is None or second is None:
        return compare_unpaired(before.rows()[label], after.rows()[label], is_perplexity(label))
    if is_perplexity(label):
        return compare_perplexity(first["losses"], second["losses"], first["tokens"])
    return compare_questions(first["values"], second["values"])
