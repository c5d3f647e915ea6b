"""The response of an outcome along one factor, in units."""

from collections import Counter

from sidestep.errors import InputError
from sidestep.studies.advice import Response
from sidestep.studies.book import Book
from sidestep.studies.learning.assessment import checked_certainty
from sidestep.studies.learning.bends import curve_of
from sidestep.studies.learning.intervals import effect_of
from sidestep.studies.learning.study_learner import StudyLearner


def response_of(
    study: StudyLearner, book: Book, outcome: int, factor: str, certainty: float | None
) -> Response:
    """What is believed along a factor, and at which of its values the outcome was measured."""
    along = next((each for each in study.plan.factors if each.name == factor), None)
    if along is None or not along.is_number:
        names = [each.name for each in study.plan.factors if each.is_number]
        raise InputError(f"factor must be one of {', '.join(names) or 'none'}, got {factor!r}")
    named = study.plan.outcomes[outcome]
    curve = curve_of(study.belief(), along, outcome, checked_certainty(certainty))
    measured = Counter(
        float(result.setting[factor])
        for result in book.results.values()
        if result.outcome == named.name
    )
    ends = zip(curve.mean.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True)
    return Response(
        named.name,
        factor,
        tuple(curve.values),
        tuple(effect_of(named, each) for each in ends),
        dict(sorted(measured.items())),
    )
