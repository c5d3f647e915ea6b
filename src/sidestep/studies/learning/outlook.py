"""What further results are expected to bring: the study goes on in worlds drawn from what it believes.

Every further result is drawn from its expectation after those before it, and the next question is asked
after it, so that a world is one draw from the belief. Nothing here is recorded or decided.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sidestep.errors import InputError
from sidestep.studies.advice import MOST_ROUNDS, Prospect
from sidestep.studies.book import Book
from sidestep.studies.learning.assessment import contest_of
from sidestep.studies.learning.learner import Learner
from sidestep.studies.learning.next_question import Inquiry, next_question
from sidestep.studies.learning.recommendation import choice_of
from sidestep.studies.learning.study_learner import Context, Menu, StudyLearner

WORLDS = 4  # of the estimate of the rounds left
EVERY = 3  # rounds, at which the loss is worked out again
STUDIES = 12  # of an outlook
RESULTS = (8, 15, 30)  # after which an outlook looks
MOST_RESULTS = 120  # to which an outlook goes on


def rounds_ahead(study: StudyLearner, book: Book, context: Context) -> tuple[int, int]:
    """Roughly how many rounds are left until stopping gives up less than what matters."""
    target = study.plan.target
    if target.matters is None:
        raise InputError(
            f"how many rounds are left needs what matters of {target.name}, got none in this study"
        )
    matters = target.change_scaled(target.matters)
    menu = study.lasting(study.menu(context))
    found = [_until(study, book, menu, matters, world) for world in range(WORLDS)]
    return min(found), max(found)


def _until(study: StudyLearner, book: Book, menu: Menu, matters: float, world: int) -> int:
    """Rounds until the loss is below what matters, in one world."""
    for done, (_, inquiry) in enumerate(_rounds(study, book, menu, world)):
        if done % EVERY == 0:
            number = choice_of(inquiry.effects, study.limits, never=study.never).number
            chosen = menu.home if number is None else number
            contest = contest_of(inquiry.effects, study.limits, chosen, inquiry.hope)
            if contest.loss.mean() < matters:
                return done
        if done == MOST_ROUNDS:
            break
    return MOST_ROUNDS


def outlook_of(
    study: StudyLearner,
    book: Book,
    context: Context,
    results: Sequence[int] = RESULTS,
    studies: int = STUDIES,
    progress: Callable[[int, int], object] | None = None,
) -> list[Prospect]:
    """What is expected to be recommended after so many further results, over a few worlds.

    progress   is told how many of the studies are done, and of how many
    """
    menu = study.lasting(study.menu(context))
    effects: dict[int, list[float]] = {count: [] for count in results}
    for world in range(studies):
        for count, effect in _looks(study, book, menu, world, sorted(results)):
            effects[count].append(effect)
        if progress is not None:
            progress(world + 1, studies)
    target, found = study.plan.target, []
    for count in results:
        some = np.array(effects[count])
        mean, least, most = (
            target.change(float(each)) for each in (some.mean(), some.min(), some.max())
        )
        found.append(Prospect(count, mean, least, most, float((some > 0).mean())))
    return found


def _looks(
    study: StudyLearner, book: Book, menu: Menu, world: int, results: Sequence[int]
) -> Iterator[tuple[int, float]]:
    """The effect that is recommended after so many further results, in one world."""
    left = list(results)
    for more, inquiry in _rounds(study, book, menu, world):
        while left and more >= left[0]:
            choice = choice_of(inquiry.effects, study.limits, never=study.never)
            yield left.pop(0), 0.0 if choice.number is None else float(choice.mean[choice.number])
        if not left:
            return


def _rounds(
    study: StudyLearner, book: Book, menu: Menu, world: int
) -> Iterator[tuple[int, Inquiry]]:
    """How many further results there are, and what is known after them, round after round."""
    plan, learner = study.plan, study.learner().copy()
    counts = [book.counts.get(outcome.name, 0) for outcome in plan.outcomes]
    rng = np.random.default_rng([plan.seed, world, sum(counts)])
    costs = [outcome.cost for outcome in plan.outcomes]
    panel = plan.panel if isinstance(plan.panel, int) else len(plan.panel)
    before = sum(counts)
    while True:
        belief = learner.belief()
        effects, values = belief.at(menu.points), belief.values(menu.points)
        inquiry = Inquiry(
            effects, values, study.limits, list(counts), costs=costs, never=study.never
        )
        yield sum(counts) - before, inquiry
        asked = next_question(inquiry, panel)
        for outcome in asked.outcomes:
            _teach(learner, menu, asked.number, outcome, rng)
            counts[outcome] += 1


def _teach(learner: Learner, menu: Menu, row: int, outcome: int, rng: np.random.Generator) -> None:
    """A result that is drawn from what is expected of it."""
    here = learner.belief().values(menu.points.only(np.array([row])))
    drawn = here.quantile(outcome, float(rng.uniform(0.001, 0.999)), noisy=True)
    learner.suppose(outcome, int(menu.points.place[row]), float(drawn[0]))
