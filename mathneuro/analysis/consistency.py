"""How stable the selections of a sweep are, from the importance that it left."""

from collections.abc import Sequence
from dataclasses import dataclass

from mathneuro.analysis.agreement import Compared, compare_all
from mathneuro.analysis.location import Removed, Share, locate, removed_by_calibration
from mathneuro.analysis.pairs import Tally, selections_of, tally
from mathneuro.analysis.ranges import NO_RANGE, Range, mean_range
from mathneuro.analysis.writing import Table, number_of_texts
from mathneuro.errors import InputError
from mathneuro.fields import read_fields
from mathneuro.grid import Setting
from mathneuro.groups import Place, find_places
from mathneuro.methods import IGNORE_CALIBRATION, MODEL_METHODS, NEED_ACTIVATIONS
from mathneuro.module import CausalLanguageModel
from mathneuro.report.cells import Series, samples_order
from mathneuro.study import FORMAT, Study

SAME_EVERYWHERE = IGNORE_CALIBRATION
"""Methods that by definition select the same share of every weight."""

AS_MATHNEURO = frozenset({"random"})
"""Methods that by definition select as much of every weight as `mathneuro`."""


@dataclass(frozen=True)
class Plan:
    """What a sweep left, as far as can be seen without its model.

    Attributes:
        weights: Names of the weights that took part.
        seed: Seed of methods that draw.
        missing: Names of the draws whose importance is not there.
    """

    weights: Sequence[str]
    seed: int
    missing: Sequence[str]


@dataclass(frozen=True)
class Located:
    """Where the selections of all repeats lie, in one place.

    Attributes:
        series: Method and calibration sets.
        num_samples: Texts of each set. None: all.
        proportion: The proportion.
        place: The place.
        repeats: How many selections these are.
        units: How many parameters the place has; for lape neurons.
        of_place: Mean share of these that is selected, with the lowest and highest repeat's.
        of_selected: The same of the share of all selected parameters that lies there.
        removed: The same of the share of the top that the calibration removed. None: the method is
            another one than `mathneuro`.
    """

    series: Series
    num_samples: int | None
    proportion: float
    place: Place
    repeats: int
    units: int
    of_place: Range
    of_selected: Range
    removed: Range | None


@dataclass(frozen=True)
class Consistency:
    """What was found.

    Attributes:
        settings: What was selected by, each with a factor of 0.
        pairs: All pairs that were compared.
        located: Where the selections lie, but of methods of which that is known beforehand.
        missing: Names of the draws whose importance is not there.
        uncounted: Names of the draws whose importance holds no activations, but a method of the
            grid needs some.
    """

    settings: Sequence[Setting]
    pairs: Sequence[Compared]
    located: Sequence[Located]
    missing: Sequence[str]
    uncounted: Sequence[str]

    @property
    def numbers(self) -> list[int | None]:
        """The numbers of texts that selections were made with, in rising order; all last."""
        return sorted({each.num_samples for each in self.settings}, key=samples_order)


def read_plan(study: Study) -> Plan:
    """Read what is needed to select as a sweep did.

    Raises:
        InputError: If its folder holds no sweep, or no importance of a draw of the grid.
    """
    fields = read_fields(study.folder / "study.json", FORMAT)
    missing = [each.name for each in study.draws if not study.importance_path(each).exists()]
    if len(missing) == len(study.draws):
        raise InputError(
            f"folder: {study.folder} holds no importance of the draws of this grid, such as "
            f"{missing[0]}; run `sweep` with it, or give the grid that the sweep had"
        )
    return Plan(
        fields.part("coverage").texts("weights"),
        fields.part("matters").part("selection").whole("seed"),
        missing,
    )


def find_consistency(study: Study, plan: Plan, model: CausalLanguageModel) -> Consistency:
    """Select as a sweep did, and compare.

    Args:
        study: The sweep.
        plan: What its folder says.
        model: The model, loaded.

    Raises:
        InputError: If the sweep was that of another model, or importance is damaged.
    """
    study.expect("model", model.identity)
    candidates = model.candidates.weights
    lacking = next((name for name in plan.weights if name not in candidates), None)
    if lacking is not None:
        raise InputError(
            f"model.exclude (or include): {lacking} is left alone now, but it took part in the "
            f"sweep of {study.folder}; give the include and exclude that the sweep had"
        )
    weights = {name: candidates[name] for name in plan.weights}
    importances = {
        draw: study.read_importance(draw, model.identity["weight_hash"], weights)
        for draw in study.draws
        if draw.name not in plan.missing
    }
    planned = selections_of(each for each in study.settings.values() if each is not None)
    settings = [
        each
        for each in planned
        if each.draw in importances
        and (each.method not in NEED_ACTIVATIONS or importances[each.draw].activations)
    ]
    if not settings:
        raise InputError(
            f"folder: the importance in {study.folder} holds no activations, which the methods of "
            f"this grid need ({', '.join(study.grid.methods)}); run `sweep` with it"
        )
    uncounted = {
        each.draw.name for each in planned if each.draw in importances and each not in settings
    }
    counted = tally(weights, importances, settings, plan.seed)
    return Consistency(
        settings, compare_all(counted), _locate_all(counted), plan.missing, sorted(uncounted)
    )


def location_table(found: Consistency) -> Table:
    """Lay out where selections lie: means over repeats with the lowest and the highest."""
    columns = (
        "method", "calibration", "num_samples", "proportion", "level", "block", "projection",
        "repeats", "counted", "units", "share_of_units", "share_of_units_lowest",
        "share_of_units_highest", "share_of_selected", "share_of_selected_lowest",
        "share_of_selected_highest", "removed_by_calibration", "removed_lowest", "removed_highest",
    )  # fmt: skip
    rows = []
    for each in found.located:
        numbers = (each.of_place, each.of_selected, each.removed or NO_RANGE)
        rows.append((
            each.series.method, "+".join(each.series.calibration),
            number_of_texts(each.num_samples), each.proportion,
            each.place.level, each.place.block_name, each.place.projection, each.repeats,
            "neurons" if each.series.method in MODEL_METHODS else "parameters", each.units,
            *(end for number in numbers for end in (number.value, number.low, number.high)),
        ))  # fmt: skip
    return Table(columns, rows)


def _locate_all(counted: Tally) -> list[Located]:
    """Find out where the selections of each method, number of texts and proportion lie."""
    groups: dict[tuple[Series, float, int | None], list[int]] = {}
    for number, setting in enumerate(counted.settings):
        if setting.method not in SAME_EVERYWHERE | AS_MATHNEURO:
            key = (
                Series(setting.method, setting.calibration),
                setting.proportion,
                setting.num_samples,
            )
            groups.setdefault(key, []).append(number)
    places = find_places(counted.weights)
    located = []
    for (series, proportion, num_samples), numbers in groups.items():
        units = counted.units_by_weight(series.method)
        selected = [counted.by_weight(number) for number in numbers]
        shares = [locate(places, units, each) for each in selected]
        removed = (
            [removed_by_calibration(places, units, each, proportion) for each in selected]
            if series.method == "mathneuro"
            else None
        )
        for place in places:
            mine = [each[place] for each in shares]
            if not mine[0].parameters:
                continue
            taken = None if removed is None else [each[place] for each in removed]
            located.append(
                _located(series, num_samples, proportion, place, mine, taken)
            )  # fmt: skip
    return located


def _located(
    series: Series,
    num_samples: int | None,
    proportion: float,
    place: Place,
    shares: Sequence[Share],
    removed: Sequence[Removed] | None,
) -> Located:
    return Located(
        series, num_samples, proportion, place, len(shares), shares[0].parameters,
        of_place=mean_range([each.of_place for each in shares]),
        of_selected=mean_range([each.of_selected for each in shares]),
        removed=None if removed is None else mean_range([each.share for each in removed]),
    )  # fmt: skip
