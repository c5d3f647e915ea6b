"""What a study recommends today, how sure that is, and what is still open: values, in units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.errors import InputError
from sidestep.studies.advice import (
    Bend,
    Best,
    Contender,
    Effect,
    Leader,
    Loss,
    Narrowing,
    Row,
    Settling,
    Surprise,
    Trade,
    Unexpected,
    Unseen,
)
from sidestep.studies.book import Book
from sidestep.studies.cards.tradeoff_card import SHOWN
from sidestep.studies.factors import Setting
from sidestep.studies.learning.aliasing import aliases
from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.bends import bends_of
from sidestep.studies.learning.effects import Effects, Limits
from sidestep.studies.learning.evidence import Evidence
from sidestep.studies.learning.intervals import ends_of, in_units
from sidestep.studies.learning.next_question import (
    Inquiry,
    drawn_effects,
    inside,
    next_question,
)
from sidestep.studies.learning.prior_parts import contradictions, trust_of
from sidestep.studies.learning.recommendation import (
    CERTAINTY,
    Choice,
    choice_of,
    frontier_of,
)
from sidestep.studies.learning.study_learner import Context, Menu, StudyLearner
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan
from sidestep.studies.values import checked_number

DRAWS = 400  # of the effects of those that contend
CONTEND = 40  # settings that are drawn, the most hopeful
PROBABLE = 0.01  # least probability of being the best that is told
NAMED = 5  # bends and surprises, at most
DOUBTED = 0.5  # chance of being grossly wrong from which a result is a surprise
MOST_RESULTS = 1000  # that are counted to settle an outcome
LEAST = 0.5  # certainty of a recommendation


@dataclass(frozen=True)
class Contest:
    """Which settings may be the best, by draws from the belief.

    rows          of the settings that were drawn
    probability   that each is the best
    loss          of stopping at the recommendation, in every draw
    """

    rows: IntArray
    probability: FloatArray
    loss: FloatArray


def checked_certainty(certainty: float | None) -> float:
    """The certainty that decides limits, intervals and words."""
    number = checked_number("certainty", CERTAINTY if certainty is None else certainty)
    if not LEAST <= number < 1:
        raise InputError(f"certainty must lie in 0.5 to below 1, got {number:g}")
    return number


def needed_of(plan: Plan) -> int:
    """The fewest results that a recommendation rests on: a change of every outcome, and its level."""
    return sum(1 if outcome.baseline is not None else 2 for outcome in plan.outcomes)


def assess(study: StudyLearner, book: Book, context: Context, certainty: float = CERTAINTY) -> Best:
    """Today's recommendation; the study adds its card."""
    plan = study.plan
    counts = {name: count for name, count in book.counts.items() if count}
    needed = needed_of(plan)
    if not counts:
        return Best(counts=counts, needed=needed, certainty=certainty)
    menu = study.menu(context)
    effects = study.effects(menu)
    choice = choice_of(effects, study.limits, certainty, study.never)
    inquiry = study.inquiry(menu, book)
    leader = leader_of(effects, choice, inquiry)
    chosen = choice.number if choice.number is not None else menu.home
    setting = plan.baseline if chosen is None else menu.settings[chosen]
    here = study.belief().at(study.points([setting], context))
    found = in_units(here, plan.outcomes, study.limits, certainty)[0]
    contest = contest_of(effects, study.limits, chosen, inquiry.hope)
    loss = (
        None if choice.unmeasured else _loss(plan, contest)
    )  # nothing is known yet of some outcome
    subject = choice.number if choice.number is not None else leader
    return Best(
        action=setting,
        candidate=None if chosen is None else menu.candidate(chosen),
        effects=found,
        within=True,
        chance=1.0 if choice.number is None else float(choice.within[choice.number]),
        better=None if choice.number is None else float(choice.better[choice.number]),
        probability=_probability(contest, chosen),
        contenders=_contenders(menu, contest, chosen, setting),
        loss=loss,
        enough=None if plan.target.matters is None else _enough(plan, loss),
        unsettled=()
        if subject is None or choice.unmeasured
        else narrowings(study, menu, subject, certainty),
        settles=_settles(plan, menu, inquiry),
        counts=counts,
        trades=tuple(_trades(study, menu, effects, choice, SHOWN)) if plan.protected else (),
        needed=needed,
        certainty=certainty,
        straight=_straight(study, menu, subject),
        leader=None if leader is None else _leader(study, menu, choice, leader, certainty),
        unmeasured=tuple(plan.outcomes[each].name for each in choice.unmeasured),
        unfirm=tuple(plan.outcomes[each].name for each in choice.unfirm),
        bends=_bends(plan, study.belief()),
        surprises=_surprises(study.evidence, study.belief()),
        trust=trust_of(plan, study.belief()),
        unexpected=_unexpected(plan, study.belief()),
        inside=(book.inside, book.foreseen),
        news=book.is_old,
        unseen=unseen_of(plan, study.evidence),
    )


def leader_of(effects: Effects, choice: Choice, inquiry: Inquiry) -> int | None:
    """The most hopeful setting that is not recommended; None: nothing is hoped for of any."""
    hope = np.where(effects.moved & (inquiry.hope > 0), inquiry.hope, -np.inf)
    if choice.number is not None:
        hope[choice.number] = -np.inf
    best = int(np.argmax(np.round(hope, 9)))
    return best if np.isfinite(hope[best]) else None


def contest_of(
    effects: Effects, limits: Sequence[Limits | None], chosen: int | None, hope: FloatArray
) -> Contest:
    """Which settings are the best within limits in draws from the belief; one may always stay."""
    worth = np.where(effects.moved, np.round(hope, 9), -np.inf)
    rows = np.argsort(-worth, kind="stable")[:CONTEND]
    if chosen is not None and chosen not in rows:
        rows = np.append(rows[: CONTEND - 1], chosen)
    drawn = drawn_effects(effects.only(rows), np.random.default_rng(0), DRAWS)
    allowed = np.ones(drawn.shape[1:], dtype=bool)
    for outcome, pair in enumerate(limits):
        if pair is not None:
            allowed &= inside(drawn[outcome], pair)
    allowed |= ~effects.moved[rows]
    values = np.where(allowed, drawn[0], -np.inf)
    best = values.max(axis=1)
    first = values.argmax(axis=1)
    probability = np.bincount(first[best > 0], minlength=len(rows)) / DRAWS
    home = np.flatnonzero(~effects.moved[rows])
    if len(home):
        probability[home[0]] = float((best <= 0).mean())
    have = np.zeros(DRAWS)
    if chosen is not None:
        have = drawn[0][:, np.flatnonzero(rows == chosen)[0]]
    return Contest(rows, probability, np.maximum(np.maximum(best, 0.0) - have, 0.0))


def _loss(plan: Plan, contest: Contest) -> Loss:
    ends = float(contest.loss.mean()), float(np.quantile(contest.loss, 0.95))
    return Loss(*(plan.target.size(end) for end in ends))


def _enough(plan: Plan, loss: Loss | None) -> bool:
    return loss is not None and loss.mean < (plan.target.matters or 0.0)


def _probability(contest: Contest, chosen: int | None) -> float:
    where = np.flatnonzero(contest.rows == chosen)
    return float(contest.probability[where[0]]) if len(where) else 0.0


def _contenders(
    menu: Menu, contest: Contest, chosen: int | None, setting: Setting
) -> tuple[Contender, ...]:
    """The recommendation first, then its rivals."""
    candidate = None if chosen is None else menu.candidate(chosen)
    first = Contender(candidate, setting, _probability(contest, chosen))
    order = np.argsort(-contest.probability, kind="stable")
    rivals = [
        Contender(menu.candidate(row), menu.settings[row], float(contest.probability[place]))
        for place, row in ((int(p), int(contest.rows[p])) for p in order)
        if row != chosen and contest.probability[place] >= PROBABLE
    ]
    return (first, *rivals)


def _leader(study: StudyLearner, menu: Menu, choice: Choice, row: int, certainty: float) -> Leader:
    here = study.belief().at(menu.points.only(np.array([row])))
    found = in_units(here, study.plan.outcomes, study.limits, certainty)[0]
    return Leader(menu.candidate(row), menu.settings[row], found, float(choice.within[row]))


def _straight(study: StudyLearner, menu: Menu, row: int | None) -> float | None:
    """The chance of being within all limits if every effect were straight."""
    if row is None or study.plan.shape is not None:
        return None
    few = study.straight().belief().at(menu.points.only(np.array([row])))
    return float(few.all_within(study.limits, study.never)[0])


def narrowings(
    study: StudyLearner, menu: Menu, row: int, certainty: float
) -> tuple[Narrowing, ...]:
    """What more results at a setting do to outcomes that are not settled there, the widest first."""
    points = menu.points.only(np.array([row]))
    belief = study.belief()
    effects, values = belief.at(points), belief.values(points)
    found: list[tuple[float, Narrowing]] = []
    for number, outcome in enumerate(study.plan.outcomes):
        limits = study.limits[number]
        if limits is None:
            continue
        low, high = (float(each[0]) for each in ends_of(effects, number, limits, certainty))
        if _settled(low, high, limits):
            continue
        more, half = _narrowed(belief, effects, values, number, limits, (low, high))
        width = (high - low) / _tolerance(outcome)
        found.append((width, Narrowing(outcome.name, more, outcome.size(half))))
    return tuple(each for _, each in sorted(found, key=lambda pair: -pair[0]))


def widths(study: StudyLearner, menu: Menu, row: int, certainty: float) -> list[int]:
    """The outcomes with limits, the widest interval at a setting first, in their tolerances."""
    effects = study.belief().at(menu.points.only(np.array([row])))
    found = []
    for number, limits in enumerate(study.limits):
        if limits is not None:
            low, high = ends_of(effects, number, limits, certainty)
            width = float(high[0] - low[0]) / _tolerance(study.plan.outcomes[number])
            found.append((-round(width, 9), number))
    return [number for _, number in sorted(found)]


def _settled(low: float, high: float, limits: Limits) -> bool:
    floor, ceiling = (-np.inf, np.inf)
    floor = floor if limits[0] is None else limits[0]
    ceiling = ceiling if limits[1] is None else limits[1]
    return (floor <= low and high <= ceiling) or high <= floor or low >= ceiling


def _narrowed(
    belief: Belief,
    effects: Effects,
    values: Effects,
    outcome: int,
    limits: Limits,
    ends: tuple[float, float],
) -> tuple[int | None, float]:
    """How many results here would settle an outcome if its estimate stays, and how wide it is then."""
    mean = float(effects.mean(outcome)[0])
    square = float(effects.spread(outcome)[0]) ** 2
    told = float(effects.covariance(outcome, np.array([0]), values)[0, 0])
    around = float(values.spread(outcome)[0]) ** 2
    noise = belief.noise(outcome) ** 2
    scale = max((ends[1] - ends[0]) / 2, 1e-12) / max(np.sqrt(square), 1e-12)
    counts = np.arange(1, MOST_RESULTS + 1)
    half = scale * np.sqrt(np.maximum(square - told**2 / (around + noise / counts), 0.0))
    settled = [_settled(mean - each, mean + each, limits) for each in half]
    if any(settled):
        first = int(np.argmax(settled))
        return int(counts[first]), float(half[first])
    return None, float(half[-1])


def _tolerance(outcome: Outcome) -> float:
    """The nearer limit in half-ranges; without limits, one."""
    limits = [abs(outcome.change_scaled(limit)) for limit in outcome.limits if limit]
    return min(limits) if limits else 1.0


def _settles(plan: Plan, menu: Menu, inquiry: Inquiry) -> Settling | None:
    """The question that decides most, and how much of what is open it settles."""
    if not len(inquiry.contenders):
        return None
    asked = next_question(inquiry)
    outcome = asked.outcomes[0]
    share = float(inquiry.shares(asked.number)[outcome])
    setting, number = menu.settings[asked.number], menu.candidate(asked.number)
    return Settling(number, setting, plan.outcomes[outcome].name, share)


def _bends(plan: Plan, belief: Belief) -> tuple[Bend, ...]:
    found = bends_of(belief, len(plan.outcomes))[:NAMED]
    return tuple(
        Bend(plan.outcomes[b.outcome].name, b.factor, b.kind, b.value, b.chance) for b in found
    )


def _unexpected(plan: Plan, belief: Belief) -> tuple[Unexpected, ...]:
    """The expectations that the results contradict."""
    found = contradictions(plan, belief)[:NAMED]
    return tuple(
        Unexpected(plan.outcomes[each.outcome].name, each.factor, *each.ends, each.chance)
        for each in found
    )


def unseen_of(plan: Plan, evidence: Evidence) -> tuple[Unseen, ...]:
    """Changes that candidates do not differ by, and those that many results of an outcome do not show.

    Of few results nothing is said: the next questions are about other settings.
    """
    if plan.candidates.is_box or any(factor.is_category for factor in plan.factors):
        return ()
    names = [factor.name for factor in plan.factors]
    spans = np.array([float(factor.high or 0) - float(factor.low or 0) for factor in plan.factors])
    candidates = np.array(plan.candidates.to_rows(), dtype=float)

    def told(outcome: str | None, change: FloatArray) -> Unseen:
        parts = zip(names, change.tolist(), strict=True)
        return Unseen(outcome, {name: each for name, each in parts if each})

    found = [told(None, each) for each in aliases(candidates, candidates, spans).never]
    rank = len(names) - len(found)
    for number, outcome in enumerate(plan.outcomes):
        places = {key.place for key in evidence.sums[number].rows}
        if len(places) > rank:
            rows = [evidence.places.known[place][: len(names)] for place in sorted(places)]
            seen = aliases(np.array(rows, dtype=float), candidates, spans).so_far
            found += [told(outcome.name, each) for each in seen]
    return tuple(found)


def _surprises(evidence: Evidence, belief: Belief) -> tuple[Surprise, ...]:
    """The results that may be grossly wrong, the likeliest first."""
    plan, found = evidence.plan, []
    names = [factor.name for factor in plan.factors]
    for number, outcome in enumerate(plan.outcomes):
        for (key, value, _), chance in belief.surprises(number):
            if chance >= DOUBTED:
                setting = dict(zip(names, evidence.places.known[key.place], strict=False))
                told = outcome.change(value) if key.against >= 0 else outcome.value(value)
                found.append(Surprise(outcome.name, told, setting, chance))
    return tuple(sorted(found, key=lambda each: -each.chance)[:NAMED])


def explain_all(
    study: StudyLearner, book: Book, context: Context, certainty: float = CERTAINTY
) -> list[Row]:
    """Every candidate with its effects and its probability of being the best, the most probable first."""
    if study.plan.candidates.is_box:
        raise InputError("explain needs candidates to list, got the box of ranges")
    menu = study.menu(context)
    effects = study.effects(menu)
    likely: dict[int, float] = {}
    if book.n_results:
        choice = choice_of(effects, study.limits, certainty, study.never)
        chosen = choice.number if choice.number is not None else menu.home
        contest = contest_of(effects, study.limits, chosen, study.inquiry(menu, book).hope)
        likely = {
            int(row): float(p)
            for row, p in zip(contest.rows, contest.probability, strict=True)
            if p >= PROBABLE
        }
    found = in_units(effects, study.plan.outcomes, study.limits, certainty)
    rows = [
        Row(menu.candidate(row), setting, found[row], likely.get(row, 0.0))
        for row, setting in enumerate(menu.settings)
    ]
    sign, target = study.plan.target.sign, study.plan.target.name
    return sorted(rows, key=lambda row: (-row.probability, -sign * row.effects[target].estimate))


def tradeoff_of(study: StudyLearner, book: Book, context: Context) -> list[Trade]:
    """What would be recommended at every certainty, the largest effect and smallest chance first."""
    if not book.n_results:
        return []
    menu = study.menu(context)
    effects = study.effects(menu)
    choice = choice_of(effects, study.limits, never=study.never)
    return _trades(study, menu, effects, choice)


def _trades(
    study: StudyLearner, menu: Menu, effects: Effects, choice: Choice, at: Sequence[float] = ()
) -> list[Trade]:
    """The same; with `at`, only what is recommended with these certainties."""
    rows = frontier_of(effects, study.limits, choice, LEAST)
    if at:
        kept = [next((row for row in rows if choice.within[row] >= each), None) for each in at]
        rows = [row for row in dict.fromkeys(kept) if row is not None]
    if not rows:
        return []
    some = np.array(rows)
    found = in_units(effects.only(some), study.plan.outcomes, study.limits, CERTAINTY)
    return [
        Trade(
            float(choice.within[row]),
            menu.candidate(row),
            menu.settings[row],
            each[study.plan.target.name],
            float(choice.better[row]),
        )
        for row, each in zip(rows, found, strict=True)
    ]


def standing_of(
    study: StudyLearner, setting: Setting, context: Context, certainty: float
) -> dict[str, Effect]:
    """The effects of one setting as they are believed now."""
    here = study.belief().at(study.points([setting], context))
    return in_units(here, study.plan.outcomes, study.limits, certainty)[0]
