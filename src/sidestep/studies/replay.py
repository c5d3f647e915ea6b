"""`verify --asks`: compute every question again from the results known at that time, and compare."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sidestep.studies import deciding
from sidestep.studies.book import Book
from sidestep.studies.learning import decision
from sidestep.studies.learning.evidence import Evidence
from sidestep.studies.learning.study_learner import StudyLearner
from sidestep.studies.mind import Mind
from sidestep.studies.plan import Plan
from sidestep.studies.request import Request, request_from_json
from sidestep.studies.storage.store import Store

COMPARED = ("action", "candidate", "measure", "state")
PAGE = 1000


class Difference(NamedTuple):
    """A question that this version of the program would have chosen differently."""

    seq: int
    part: str
    was: object
    now: object


class Replay(NamedTuple):
    """What computing the questions again has found."""

    computed: int  # questions
    differences: tuple[Difference, ...]  # asked by this version, and yet computed otherwise
    changed: tuple[int, ...]  # asked before versions were noted, and computed otherwise now
    skipped: tuple[int, ...]  # asked by another version, and so not computed again


def replayed(store: Store, name: str, plan: Plan) -> Replay:
    """Compute the questions of a study again that this version asked.

    Those of version 0.2 do not say what they were computed with: they are compared, and a difference says
    only that this version asks otherwise.
    """
    book, decided, count = Book(), _decider(plan), 0
    version = decision.DECISIONS if plan.policy is None else deciding.DECISIONS
    found: list[Difference] = []
    changed: list[int] = []
    skipped: list[int] = []
    while events := store.events(name, book.seq, PAGE):
        for event in events:
            if event.kind == "asked" and event.body.get("computed", version) != version:
                skipped.append(event.seq)
            elif event.kind == "asked":
                again = decided(event.seq, book, request_from_json(event.body.get("request", {})))
                differ = [
                    Difference(event.seq, part, event.body.get(part), again.get(part))
                    for part in COMPARED
                    if event.body.get(part) != again.get(part)
                ]
                if "computed" in event.body:
                    found += differ
                elif differ:
                    changed.append(event.seq)
                count += 1
            book.take([event])
    return Replay(count, tuple(found), tuple(changed), tuple(skipped))


def _decider(plan: Plan) -> Callable[[int, Book, Request], dict[str, Any]]:
    """How the questions of a study are decided."""
    if plan.policy is not None:
        mind = Mind(plan)

        def by_policy(seq: int, book: Book, request: Request) -> dict[str, Any]:
            mind.learn(book)
            return deciding.decide(mind, seq, book, request)

        return by_policy
    evidence = Evidence(plan)
    study = StudyLearner(plan, evidence)

    def by_belief(seq: int, book: Book, request: Request) -> dict[str, Any]:
        evidence.learn(book)
        return decision.decide(study, seq, book, request)

    return by_belief
