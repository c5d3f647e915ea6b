"""A study: ask what to try next, tell what came of it, see what is best; in units, on a durable record.

    study = Study.create("bp-pilot-07", "pilot.db", factors=[...], target=..., protected=[...])
    ticket = study.ask()                  # prints as its card
    study.tell(ticket.id, 138.0)          # durable once it returns
    study.best()

Everything is computed from the record (storage/events.py); the methods append to it or read it. Telling,
correcting and withdrawing do not import numpy, so a result can be saved wherever Python runs.
"""

import getpass
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from sidestep.errors import RecordError
from sidestep.studies.book import Question
from sidestep.studies.candidates import candidates_of
from sidestep.studies.earlier_studies import frozen_from, lessons_of
from sidestep.studies.expected_changes import Expect, Monotone
from sidestep.studies.factors import Factor
from sidestep.studies.grammar import check_model
from sidestep.studies.live import Prepared
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan, plan_from_config
from sidestep.studies.recording import Author
from sidestep.studies.request import Request, request_of
from sidestep.studies.storage.events import Event, canonical, digest
from sidestep.studies.storage.log import Log
from sidestep.studies.storage.store import Names, Store, Writer, open_store, write
from sidestep.studies.ticket import Ticket
from sidestep.studies.writing import Writing

LOSSES = 2  # times that a question is decided in vain, as the record has moved, before it locks the study

Asked = tuple[Question, Event | None]


class Study(Writing):
    """A study and its record. Create one with `Study.create`, continue it with `Study.open`.

    >>> from sidestep import Factor, Outcome, Study
    >>> study = Study.create(
    ...     "brew",
    ...     "memory:",
    ...     factors=[Factor("grind", 1, 9, step=1), Factor("water", 88, 96, step=2)],
    ...     target=Outcome("taste", goal="raise", range=(0, 10), matters=0.5),
    ...     protected=[Outcome("bitterness", range=(0, 10), tolerance=1)],
    ... )
    >>> ticket = study.ask()
    >>> study.tell(ticket.id, 6.5).entries
    (3,)
    """

    @classmethod
    def create(
        cls,
        name: str,
        storage: Any = None,
        *,
        factors: Sequence[Factor],
        target: Outcome,
        protected: Sequence[Outcome] = (),
        candidates: Any = None,
        aim: str = "within",
        rank: int | None = None,
        resolution: float | None = None,
        shape: str | None = None,
        questions: str = "decide",
        panel: int | str | Sequence[str] = 1,
        largest_step: Mapping[str, float] | None = None,
        caution: float | None = None,
        expect: Expect | None = None,
        monotone: Monotone | None = None,
        learn_from: Any = None,
        policy: str | None = None,
        knobs: Mapping[str, Any] | None = None,
        seed: int = 0,
        vocabulary: str = "experiment",
        title: str = "",
        model: str | None = None,
        context: Sequence[Factor] = (),
        actor: str | None = None,
        key: str | None = None,
    ) -> "Study":
        """Create a study and store it.

        name         name of the study, unique in its storage
        storage      a path, sqlite:///..., postgresql://... or "memory:"; None: SIDESTEP_STORAGE
        factors      what is set in a round
        target       the outcome to move
        protected    the outcomes that should not change
        candidates   a data frame, a dict of columns or a path; None: all combinations of steps and
                     levels, or any value in the ranges
        aim          "within": the largest effect on the target within all tolerances. "clean": the
                     effect that no protected outcome shares; it needs a rank or a resolution
        rank         dimension of the space that the side effects span; for the aim "clean"
        resolution   smallest direction of the side effects that matters; instead of the rank
        shape        of responses: "straight" or "smooth" where you know that they are; None: whatever
                     they are, which keeps the promise of limits everywhere and needs more results
        questions    "decide": what is expected to raise the effect that can be recommended; "earn":
                     also good for the patient of today
        panel        outcomes that are measured at a visit: a number, their names, or "all"
        largest_step   largest change of a factor since the last round: {"dose": 10}
        caution      least chance that what is asked is within all limits: 0.95
        expect       changes over the whole range of a factor that would not surprise, 19 times in 20:
                     {"pressure": {"lisinopril": (-25, 0)}}; None for an end that is not known
        monotone     outcomes that never do the opposite with more: {"pressure": {"lisinopril": "falls"}}
        learn_from   earlier studies with the same factors, units and baseline, whose results teach this
                     one: names in the storage, paths of exports, or a table with a column "subject"
        policy       name of a policy that asks instead: `sidestep policies` lists them
        knobs        parameters of that policy
        seed         seed of all random choices
        vocabulary   words on the cards: "clinic", "experiment" or "lab"
        title        heading of the cards
        model        a formula for features of factors and context: "0 + dose + dose:age"
        context      factors that are known in a round but not set
        actor        who is recorded as the author; None: your login name
        key          a repeated request with the same key is carried out once
        """
        plan = Plan(
            factors=tuple(factors),
            target=target,
            protected=tuple(protected),
            candidates=candidates_of(factors, candidates),
            aim=aim,
            rank=rank,
            resolution=resolution,
            shape=shape,
            questions=questions,
            panel=panel,  # type: ignore[arg-type]
            largest_step={} if largest_step is None else largest_step,
            caution=caution,
            expect={} if expect is None else expect,
            monotone={} if monotone is None else monotone,
            policy=policy,
            knobs={} if knobs is None else knobs,
            seed=seed,
            vocabulary=vocabulary,
            title=title,
            model=model,
            context=tuple(context),
        )
        if plan.model is not None:
            check_model(plan)  # before anything is evaluated
        _check_inference(plan)
        store, actor = open_store(storage), actor or user_of_the_machine()
        if learn_from is not None:
            plan = _taught(plan, learn_from, store, _created_by(store, name, key))
        config = plan.to_config()
        if plan.candidates.kind == "table":
            rows = canonical(plan.candidates.to_rows())
            config["candidates"]["rows"] = digest(rows)
            store.put_blob(digest(rows), rows)
        store.create(name, config, actor=actor, body={}, key=key)
        return cls(store, name, plan, actor)

    @classmethod
    def open(
        cls, name: str, storage: Any = None, *, actor: str | None = None, writer: Writer = write
    ) -> "Study":
        """Open an existing study.

        name      name of the study
        storage   as in `create`
        actor     who is recorded as the author; None: your login name
        writer    how entries are saved; a server saves them in groups
        """
        store = open_store(storage, create=False)
        config = store.head(name).config
        plan = plan_from_config(config, _kept_rows(store, config["candidates"].get("rows")))
        return cls(store, name, plan, actor or user_of_the_machine(), writer)

    @staticmethod
    def list(storage: Any = None) -> Names:
        """Names of the studies in a storage, in alphabetical order."""
        return open_store(storage, create=False).names()

    def ask(
        self,
        *,
        new: bool = False,
        purpose: str = "learn",
        measure: str | None = None,
        panel: int | str | Sequence[str] | None = None,
        measure_only: str | Sequence[str] = (),
        allowed: Any = None,
        largest_step: Mapping[str, float] | None = None,
        price_cap: float | None = None,
        context: Mapping[str, Any] | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Ticket:
        """Ask what to try next and what to measure; the same question until it is answered.

        new            ask a further question while others are open
        purpose        "learn"; or "confirm": repeat the recommendation, measure the least certain outcome
        panel          number of outcomes to measure in this round, their names, or "all"; None: as the
                       study was created
        measure_only   names of the outcomes that can be measured in this round
        allowed        numbers of candidates, or ranges {"dose": (0, 20)}
        largest_step   largest change of a factor since the last round: {"dose": 10}; None: as the
                       study was created
        price_cap      largest acceptable loss in the target against today's best
        measure        with "confirm": the outcome to measure
        context        context values of this round: {"age": 63}
        actor          who asks; None: the actor who opened the study
        key            a repeated request with the same key is carried out once
        """
        request = request_of(
            self.plan,
            purpose=purpose,
            measure=measure,
            panel=panel,
            measure_only=measure_only,
            allowed=allowed,
            largest_step=largest_step,
            price_cap=price_cap,
            context=context,
        )
        author = Author(actor or self.actor, key or uuid4().hex)
        with self._asking:  # those who ask at once would only make each other's decisions vain
            for attempt in range(LOSSES + 1):
                last = attempt == LOSSES
                prepared = None if last else self._prepared(request, author, new=new)
                act = partial(
                    self._asked,
                    request=request,
                    author=author,
                    prepared=prepared,
                    new=new,
                    last=last,
                )
                asked = self._save(self._store, self.name, act, self._noted_ask, decides=last)
                if asked is not None:
                    return self._ticket(asked[0])
        raise AssertionError("the last attempt decides under the lock")

    def _prepared(self, request: Request, author: Author, *, new: bool) -> Prepared | None:
        """Decide on a question before the study is locked: others save meanwhile."""
        with self._turn:
            return self._live.prepared(request, author, new=new)

    def _asked(
        self,
        log: Log,
        *,
        request: Request,
        author: Author,
        prepared: Prepared | None,
        new: bool,
        last: bool,
    ) -> Asked | None:
        if prepared is not None and prepared.hash == log.head.hash:
            return self._live.asked(log, request, author, prepared, new=new, last=last)
        with self._turn:
            return self._live.asked(log, request, author, prepared, new=new, last=last)

    def _noted_ask(self, asked: Asked | None) -> None:
        if asked is not None:
            self._noted(asked[1:])


def _check_inference(plan: Plan) -> None:
    """Raise if what the study believes or asks with cannot be built, before anything is written."""
    if plan.policy is not None:
        from sidestep.studies.mind import Mind  # noqa: PLC0415

        Mind(plan)
    elif plan.model is not None:
        from sidestep.studies.learning.formula_features import FormulaFeatures  # noqa: PLC0415

        FormulaFeatures(plan)


def _created_by(store: Store, name: str, key: str | None) -> Mapping[str, Any]:
    """What earlier studies taught a study that the same request created before; else empty."""
    if key is None or name not in store.names():
        return {}
    first = store.events(name, 0, 1)[0]
    return first.body["config"].get("earlier", {}) if first.key == key else {}


def _taught(plan: Plan, learn_from: Any, store: Store, before: Mapping[str, Any]) -> Plan:
    """The plan with what earlier studies teach, worked out once and kept in its record.

    before   what they taught when the same request came first: they may have more results now
    """
    lessons = lessons_of(plan, learn_from, store)
    if not lessons:
        return plan
    if before and [each["name"] for each in before["studies"]] == [e.name for e in lessons]:
        return replace(plan, earlier=before)
    replace(plan, earlier=frozen_from(lessons, {}))  # refuses before anything is worked out
    from sidestep.studies.learning.lesson_record import taught  # noqa: PLC0415

    return replace(plan, earlier=frozen_from(lessons, taught(plan, [e.results for e in lessons])))


def _kept_rows(store: Store, digest: str | None) -> Any:
    """The table of candidates stored under this digest; None if there is none."""
    if digest is None:
        return None
    kept = store.blob(digest)
    if kept is None:
        raise RecordError(f"the table of candidates {digest[:16]} is missing; restore a backup")
    return json.loads(kept)


def user_of_the_machine() -> str:
    """Who is logged in here."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such entry, no such variable
        return "unknown"
