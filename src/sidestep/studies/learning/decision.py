"""Decides the next question of a study that names no policy, with the numbers that its card shows.

    action, candidate   where it is measured, and `measure`: what
    phase      "decide", "earn" (for the patient of today), "confirm", or "held": caution allows only the
               baseline
    effects    estimate and 95% interval of every effect there
    expected   for every outcome that is measured: estimate and 95% interval of the result
    best       today's recommendation, with the expected effect on the target
    rival      the most hopeful setting beside the one that is asked
    chance     of being within all limits there
    shares     of what is open that one result of each outcome would settle (next_question.py)
    price      expected loss of the round against today's recommendation, in the target's unit
    changes    how the answer could change the recommendation
    state      digest of the results that it rests on

Numbers of the belief are stored with six digits, which two machines agree on.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.errors import InputError
from sidestep.studies.book import Book
from sidestep.studies.learning.assessment import leader_of, narrowings, widths
from sidestep.studies.learning.effects import Effects
from sidestep.studies.learning.intervals import in_units
from sidestep.studies.learning.next_question import Asked, Inquiry, drawn_question, next_question
from sidestep.studies.learning.recommendation import CERTAINTY, Choice, choice_of
from sidestep.studies.learning.study_learner import Menu, StudyLearner
from sidestep.studies.plan import EARN, Plan
from sidestep.studies.request import CONFIRM, PLAIN, Request
from sidestep.studies.values import rounded

DECISIONS = 1  # what an ask is computed with: every change of what is decided raises it
SLACK = 1e-9  # of comparisons with a cap or with caution
WORTH = 0.1  # of what matters, or of it in the half-range: changes that are smaller are not told
FAVOUR = 0.8  # chance that a result is not better than the one that is supposed

Body = dict[str, Any]


def decide(study: StudyLearner, seq: int, book: Book, request: Request) -> Body:
    """The question to record as entry `seq`."""
    plan = study.plan
    restricted = {"request": request.to_json()} if request != PLAIN else {}
    context = {"context": dict(request.context)} if request.context else {}
    return {
        **_question(study, seq, book, request),
        **restricted,
        **context,
        "purpose": request.purpose,
        "last": book.last,
        "round": book.rounds + 1,
        "results": book.n_results,
        "questions": plan.questions,
        "state": study.evidence.digest,
        "computed": DECISIONS,
    }


def _question(study: StudyLearner, seq: int, book: Book, request: Request) -> Body:
    plan, context = study.plan, dict(request.context)
    if request.purpose == CONFIRM and not book.n_results:
        raise InputError("there must be results before something can be confirmed, got none")
    last = book.last or plan.baseline
    menu = study.menu(context, request, last)
    only = [plan.index(name) for name in request.measure_only] or None
    inquiry = study.inquiry(menu, book, study.rows(menu, request, last), only)
    effects = study.effects(menu)
    choice = choice_of(effects, study.limits, never=study.never)
    price = _prices(choice)
    rows, phase = _admitted(plan, inquiry, price, request)
    inquiry = Inquiry(
        inquiry.effects,
        inquiry.values,
        inquiry.limits,
        inquiry.counts,
        rows,
        only,
        inquiry.costs,
        inquiry.never,
    )
    if request.purpose == CONFIRM:
        asked, phase = _confirming(study, menu, effects, choice, inquiry, request), CONFIRM
    elif plan.questions == EARN:
        asked = drawn_question(inquiry, np.random.default_rng([plan.seed, seq]), request.panel)
    else:
        asked = next_question(inquiry, request.panel)
    if request.purpose != CONFIRM:
        asked = Asked(asked.number, tuple(sorted(asked.outcomes)))
    return _body(study, menu, asked, phase, (effects, choice, inquiry, price))


def _admitted(
    plan: Plan, inquiry: Inquiry, price: FloatArray, request: Request
) -> tuple[IntArray | None, str]:
    """The rows that caution and the cap of the price leave, and what is done there."""
    rows, phase = inquiry.rows, plan.questions
    if request.price_cap is not None:
        some = np.arange(len(price)) if rows is None else rows
        cap = plan.target.change_scaled(request.price_cap)
        fit = some[price[some] <= cap + SLACK]
        rows = fit if len(fit) else some[[int(np.argmin(np.round(price[some], 9)))]]
    if plan.caution is not None:
        some = np.arange(len(price)) if rows is None else rows
        safe = some[inquiry.within[some] >= plan.caution - SLACK]
        if not len(safe):
            safe = some[[int(np.argmax(np.round(inquiry.within[some], 9)))]]
        if not inquiry.effects.moved[safe].any():
            phase = "held"
        rows = safe
    return rows, phase


def _prices(choice: Choice) -> FloatArray:
    """Expected loss on the target of every setting against the recommendation; (K,)."""
    best = 0.0 if choice.number is None else choice.mean[choice.number]
    return np.asarray(np.maximum(best - choice.mean, 0.0))


def _confirming(
    study: StudyLearner,
    menu: Menu,
    effects: Effects,
    choice: Choice,
    inquiry: Inquiry,
    request: Request,
) -> Asked:
    """The recommendation again, or else what is hoped for most, and what is least settled there."""
    plan = study.plan
    row = choice.number if choice.number is not None else leader_of(effects, choice, inquiry)
    row = menu.home if row is None else row
    if inquiry.rows is not None and row not in inquiry.rows:
        row = int(inquiry.rows[np.argmax(np.round(inquiry.hope[inquiry.rows], 9))])
    row = int(row or 0)
    if request.measure is not None:
        return Asked(row, (plan.index(request.measure),))
    open_ = [plan.index(each.outcome) for each in narrowings(study, menu, row, CERTAINTY)]
    every = range(len(plan.outcomes))
    allowed = every if inquiry.outcomes is None else inquiry.outcomes
    wide = widths(study, menu, row, CERTAINTY)
    order = [o for o in dict.fromkeys([*open_, *wide, *every]) if o in allowed]
    return Asked(row, tuple(order[: request.panel]))


def _body(
    study: StudyLearner,
    menu: Menu,
    asked: Asked,
    phase: str,
    known: tuple[Effects, Choice, Inquiry, FloatArray],
) -> Body:
    """The question with its reasons."""
    plan = study.plan
    effects, choice, inquiry, price = known
    row, setting = asked.number, menu.settings[asked.number]
    here = effects.only(np.array([row]))
    found = in_units(here, plan.outcomes, study.limits, CERTAINTY)[0]
    shares = inquiry.shares(row)
    return {
        "action": setting,
        "candidate": menu.candidate(row),
        "measure": [plan.outcomes[outcome].name for outcome in asked.outcomes],
        "phase": phase,
        **rounded(
            {
                "effects": {name: list(each[:3]) for name, each in found.items()},
                "expected": _expected(study, menu, row, asked.outcomes),
                "best": _named(plan, menu, choice.number, effects),
                "rival": _rival(plan, menu, row, inquiry),
                "chance": float(inquiry.within[row]),
                "shares": {o.name: float(s) for o, s in zip(plan.outcomes, shares, strict=True)},
                "price": plan.target.size(float(price[row])),
                "changes": _changes(study, menu, asked, choice, effects),
            }
        ),
    }


def _named(plan: Plan, menu: Menu, row: int | None, effects: Effects) -> Body:
    """A setting with its expected effect on the target; the baseline, without a row."""
    if row is None:
        home = menu.home
        candidate = None if home is None else menu.candidate(home)
        return {"candidate": candidate, "action": plan.baseline, "effect": 0.0}
    effect = plan.target.change(float(effects.mean(0)[row]))
    return {"candidate": menu.candidate(row), "action": menu.settings[row], "effect": effect}


def _rival(plan: Plan, menu: Menu, row: int, inquiry: Inquiry) -> Body | None:
    for other in inquiry.contenders.tolist():
        if other != row:
            return _named(plan, menu, other, inquiry.effects)
    return None


def _expected(
    study: StudyLearner, menu: Menu, row: int, outcomes: Sequence[int]
) -> dict[str, list[float]]:
    """The results that are expected: estimate and interval, in units; cut at a range around them."""
    values = study.belief().values(menu.points.only(np.array([row])))
    found: dict[str, list[float]] = {}
    for number in outcomes:
        outcome = study.plan.outcomes[number]
        ends = [
            float(values.quantile(number, chance, noisy=True)[0]) for chance in (0.025, 0.5, 0.975)
        ]
        low, estimate, high = sorted(outcome.value(end) for end in ends)
        if outcome.low <= estimate <= outcome.high:
            low, high = max(low, outcome.low), min(high, outcome.high)
        found[outcome.name] = [estimate, low, high]
    return found


def _changes(
    study: StudyLearner, menu: Menu, asked: Asked, choice: Choice, effects: Effects
) -> list[Body]:
    """What good results would allow, and what bad ones would take back.

    Good is a target that moves further than four times in five it would, and protected outcomes that stay
    as they are; bad is a target that moves less, and protected outcomes that change more, than expected.
    """
    row = np.array([asked.number])
    values = study.belief().values(menu.points.only(row))
    few = effects.only(row)
    found: list[Body] = []
    for good in (True, False):
        supposed = [
            (outcome, _supposed(values, few, outcome, good=good)) for outcome in asked.outcomes
        ]
        learner = study.learner().copy()
        place = study.features.place(menu.settings[asked.number], menu.context)
        for outcome, value in supposed:
            learner.suppose(outcome, place, value)
        after = learner.belief().at(menu.points)
        then = choice_of(after, study.limits, never=study.never)
        plan, before = study.plan, 0.0 if choice.number is None else choice.mean[choice.number]
        now = 0.0 if then.number is None else then.mean[then.number]
        worth = plan.target.size(abs(float(now - before)))
        if then.number == choice.number or worth < WORTH * (
            plan.target.matters or plan.target.size(WORTH)
        ):
            continue
        told = {
            plan.outcomes[outcome].name: plan.outcomes[outcome].value(value)
            for outcome, value in supposed
        }
        found.append({"results": told, **_named(plan, menu, then.number, after)})
    return found


def _supposed(values: Effects, few: Effects, outcome: int, *, good: bool) -> float:
    """A good or a bad result of an outcome."""
    low, high = (
        float(values.quantile(outcome, chance, noisy=True)[0]) for chance in (1 - FAVOUR, FAVOUR)
    )
    if outcome == 0:
        return high if good else low
    still = float(values.mean(outcome)[0] - few.mean(outcome)[0])
    if good:
        return min(max(still, low), high)
    return high if few.mean(outcome)[0] >= 0 else low
