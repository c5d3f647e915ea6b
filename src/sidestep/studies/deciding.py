"""Decides the next question, with the numbers in units that its card shows and the record stores."""

import warnings
from typing import Any

import numpy as np

from sidestep.core.problem import Query
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.policies.batches import ask_panel
from sidestep.policies.restrictions import Restrictions
from sidestep.studies.book import Book
from sidestep.studies.mind import Mind
from sidestep.studies.reasoning import reasons_body
from sidestep.studies.request import CONFIRM, PLAIN, Request
from sidestep.studies.scale import allowed_of
from sidestep.studies.storage.events import digest

DECISIONS = 1  # what an ask is computed with: every change of what is decided raises it

Body = dict[str, Any]


def decide(mind: Mind, seq: int, book: Book, request: Request) -> Body:
    """The question to record as entry `seq`."""
    body = _question(mind, seq, book, request)
    restricted = {"request": request.to_json()} if request != PLAIN else {}
    context = {"context": dict(request.context)} if request.context else {}
    return {
        **body,
        **restricted,
        **context,
        "purpose": request.purpose,
        "last": book.last,
        "round": book.rounds + 1,
        "results": book.n_results,
        "policy": mind.plan.policy,
        "state": digest(mind.state.to_json()),
        "computed": DECISIONS,
    }


def _question(mind: Mind, seq: int, book: Book, request: Request) -> Body:
    """The question that the policy chooses under the restrictions of this ask."""
    plan, context = mind.plan, dict(request.context)
    if request.purpose == CONFIRM and not book.n_results:
        raise InputError("there must be results before something can be confirmed, got none")
    rng = np.random.default_rng([plan.seed, seq])
    last = book.last or plan.baseline
    actions = allowed_of(plan, mind.scale.actions(context), request, last)
    pending = _pending(mind, book)
    with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
        panel = ask_panel(
            mind.policy,
            mind.state,
            actions,
            rng,
            request.panel,
            pending,
            _restrictions(mind, request),
        )
    number, action = panel[0].arm, panel[0].query.action
    if number is None:
        setting = mind.scale.setting(action, request, last)
    else:
        setting = plan.candidates.setting(number)
    vector = mind.scale.vector(setting, context)
    body: Body = {
        "action": setting,
        "candidate": number,
        "measure": [plan.outcomes[each.query.index].name for each in panel],
        "phase": panel[0].phase,
        "effects": {name: list(each[0][:3]) for name, each in mind.effects(vector[None]).items()},
    }
    return body | reasons_body(mind, panel[0], body, vector, others=bool(pending))


def _restrictions(mind: Mind, request: Request) -> Restrictions | None:
    """The restrictions of the policy's ask, apart from the actions; None for a plain question."""
    plan = mind.plan
    only = [plan.index(name) for name in request.measure_only]
    cap = request.price_cap
    told = Restrictions(
        measure_only=only or None,
        price_cap=None if cap is None else plan.target.change_scaled(cap),
        purpose=request.purpose,
        measure=None if request.measure is None else plan.index(request.measure),
    )
    return None if told == Restrictions() else told


def _pending(mind: Mind, book: Book) -> list[Query]:
    """Queries that are not answered yet; the policy assumes the expected answers."""
    return [
        Query(
            mind.scale.vector(question.body["action"], question.body.get("context") or {}),
            mind.plan.index(name),
        )
        for question in book.open.values()
        for name in question.waiting
    ]
