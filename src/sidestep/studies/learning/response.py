"""What was measured where: the response of an outcome along one factor, in units; visits to a setting."""

from collections import Counter
from collections.abc import Iterator

from sidestep.errors import InputError
from sidestep.studies.advice import Response
from sidestep.studies.factors import Setting
from sidestep.studies.learning.assessment import checked_certainty
from sidestep.studies.learning.bends import curve_of
from sidestep.studies.learning.evidence import Evidence
from sidestep.studies.learning.intervals import effect_of
from sidestep.studies.learning.places import Place
from sidestep.studies.learning.study_learner import StudyLearner


def response_of(
    study: StudyLearner, outcome: int, factor: str, certainty: float | None
) -> Response:
    """What is believed along a factor, and at which of its values the outcome was measured."""
    along = next((each for each in study.plan.factors if each.name == factor), None)
    if along is None or not along.is_number:
        names = [each.name for each in study.plan.factors if each.is_number]
        raise InputError(f"factor must be one of {', '.join(names) or 'none'}, got {factor!r}")
    named = study.plan.outcomes[outcome]
    curve = curve_of(study.belief(), along, outcome, checked_certainty(certainty))
    column, measured = study.plan.factors.index(along), Counter[float]()
    for values, count in results_of(study.evidence, outcome):
        measured[float(values[column])] += count
    ends = zip(curve.mean.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True)
    return Response(
        named.name,
        factor,
        tuple(curve.values),
        tuple(effect_of(named, each) for each in ends),
        dict(sorted(measured.items())),
    )


def tried_of(evidence: Evidence, setting: Setting | None) -> int:
    """The fewest results of any outcome at a setting, in whatever context: whole visits there."""
    if setting is None:
        return 0
    here = tuple(setting[factor.name] for factor in evidence.plan.factors)
    counts = [
        sum(n for values, n in results_of(evidence, outcome) if values[: len(here)] == here)
        for outcome in range(len(evidence.plan.outcomes))
    ]
    return min(counts)


def results_of(evidence: Evidence, outcome: int) -> Iterator[tuple[Place, int]]:
    """The places where an outcome was measured, and how often; a place may come several times."""
    known = evidence.places.known
    for key, total in evidence.sums[outcome].rows.items():
        yield known[key.place], total.results
