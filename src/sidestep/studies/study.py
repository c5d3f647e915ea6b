"""A study: ask what to try next, tell what came of it, see what is best; in units, on a durable record.

    study = Study.create("bp-pilot-07", "pilot.db", factors=[...], target=..., protected=[...])
    ticket = study.ask()                  # prints as its card
    study.tell(ticket.id, 138.0)          # durable once it returns
    study.best()

The record is the truth (events.py): everything here appends to it or reads it. Telling, correcting and
withdrawing load no arithmetic, so that a result can be saved wherever Python runs.
"""

import getpass
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from sidestep.errors import InputError, StudyClosed
from sidestep.studies import recording
from sidestep.studies.book import Question, question_of
from sidestep.studies.candidates import candidates_of
from sidestep.studies.cards import told_card
from sidestep.studies.events import Event, canonical, digest
from sidestep.studies.factors import Factor, setting_of
from sidestep.studies.keys import check_same_request, repeat_of
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan, plan_from_config
from sidestep.studies.reading import Reading
from sidestep.studies.recording import Author, Told, Written
from sidestep.studies.request import Request, request_of
from sidestep.studies.store import CLOSED, Log, Names, Writer, open_store, write
from sidestep.studies.ticket import Receipt, Ticket


class Study(Reading):
    """A study on its record. Make one with `Study.create`, come back to it with `Study.open`.

    >>> from sidestep import Factor, Outcome, Study
    >>> study = Study.create(
    ...     "brew",
    ...     "memory:",
    ...     factors=[Factor("grind", 1, 9, step=1), Factor("water", 88, 96, unit="C", step=2)],
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
        policy: str = "directed-thompson",
        knobs: Mapping[str, Any] | None = None,
        seed: int = 0,
        vocabulary: str = "experiment",
        title: str = "",
        model: str | None = None,
        context: Sequence[Factor] = (),
        actor: str | None = None,
        key: str | None = None,
    ) -> "Study":
        """Set up a study and record it.

        name         what it is called in its storage
        storage      a path, sqlite:///..., postgresql://..., "memory:"; None: SIDESTEP_STORAGE
        factors      what is set in a round
        target       what is to move
        protected    what is to be left alone
        candidates   a frame of rows, a dict of columns, a path; None: the grid of steps and levels, or
                     the box
        aim          "within": as much of the goal as the tolerances leave. "clean": the effect that runs
                     through nothing protected; it needs the rank of the side effects or a resolution
        rank         how many dimensions the side effects span, where the aim is "clean"
        resolution   how small a direction of theirs still matters, instead of the rank
        policy       who decides, by its word: `sidestep policies` lists them
        knobs        of the policy
        seed         of everything that is drawn
        vocabulary   "clinic", "experiment" or "lab"
        title        over the card
        model        a formula for features of factors and context: "0 + dose + dose:age"
        context      what is known of a round and not set in it
        actor        who does this; None: the user of the machine
        key          the same key again is the same request, not a second one
        """
        from sidestep.studies.mind import Mind  # noqa: PLC0415

        plan = Plan(
            factors=tuple(factors),
            target=target,
            protected=tuple(protected),
            candidates=candidates_of(factors, candidates),
            aim=aim,
            rank=rank,
            resolution=resolution,
            policy=policy,
            knobs=dict(knobs or {}),
            seed=seed,
            vocabulary=vocabulary,
            title=title,
            model=model,
            context=tuple(context),
        )
        Mind(plan)  # says what is wrong with the policy before anything is written
        store, actor = open_store(storage), actor or user_of_the_machine()
        config = plan.to_config()
        if plan.candidates.kind == "table":
            rows = canonical(plan.candidates.to_rows())
            config["candidates"]["rows"] = digest(rows)
            store.put_blob(digest(rows), rows)
        store.create(name, config, actor=actor, body={}, key=key)
        return cls(store, name, plan, actor)

    @classmethod
    def open(
        cls,
        name: str,
        storage: Any = None,
        *,
        actor: str | None = None,
        writer: Writer = write,
    ) -> "Study":
        """The study of that name, as its record leaves it; a server saves its entries in groups.

        name      what it is called in its storage
        storage   as in `create`
        actor     who acts through this object; None: the user of the machine
        writer    how entries are saved
        """
        store = open_store(storage, create=False)
        config = store.head(name).config
        rows = config["candidates"].get("rows")
        kept = None if rows is None else json.loads(store.blob(rows) or "null")
        plan = plan_from_config(config, kept)
        return cls(store, name, plan, actor or user_of_the_machine(), writer)

    @staticmethod
    def list(storage: Any = None) -> Names:
        """Names of the studies that a storage holds, in alphabetical order."""
        return open_store(storage, create=False).names()

    def ask(
        self,
        *,
        new: bool = False,
        purpose: str = "learn",
        measure: str | None = None,
        panel: int | Sequence[str] = 1,
        measure_only: str | Sequence[str] = (),
        allowed: Any = None,
        largest_step: Mapping[str, float] | None = None,
        price_cap: float | None = None,
        context: Mapping[str, Any] | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Ticket:
        """What to do next and what to measure. Asked again it is the same question until it is answered.

        new            open another question beside those that wait
        purpose        "confirm": do what is recommended and measure what is least settled (or `measure`)
        panel          how many outcomes are measured at once, or which
        measure_only   outcomes that can be measured in this round
        allowed        numbers of candidates, or ranges {"dose": (0, 20)}
        largest_step   most that a factor may change from what was done last: {"dose": 10}
        price_cap      at most so much less of the goal than today's best
        measure        the outcome that a confirmation measures
        context        what is known of this round: {"age": 63}
        actor          who asks; None: the one who opened the study
        key            the same key again is the same request, not a second one
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
        question, _ = self._save(
            self._store,
            self.name,
            lambda log: self._asked(log, request, author, new=new),
            self._noted,
        )
        return self._ticket(question)

    def tell(
        self,
        ticket: int | Ticket | None,
        value: Any,
        *,
        measured: str | None = None,
        given: Mapping[str, object] | None = None,
        context: Mapping[str, Any] | None = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Record a result; it is durable once this returns. The same again changes nothing.

        ticket     the question, or its number
        value      a number in the outcome's unit; of a panel {"sodium": 138.0, ...}
        measured   another outcome than the one that was asked for
        given      what was really done, where it was not what was asked: {"dose": 35}
        context    what was known of that round
        reason     why it is right, where it is far from what was expected
        actor      who tells; None: the one who opened the study
        key        the same key again is the same request, not a second one
        With ticket None it is a result that nobody asked for: `measured` and `given` say what it is.
        """
        told, number = Told(value, measured, given, context, reason), _number(ticket)
        author = Author(actor or self.actor, key)
        if number is None:
            author = author._replace(key=key or uuid4().hex)
            return self._write(lambda log: recording.tell_unasked(log, self.plan, told, author))
        return self._write(lambda log: recording.tell(log, self.plan, number, told, author))

    def correct(
        self,
        number: int | Ticket,
        value: float,
        *,
        reason: str,
        measured: str | None = None,
        given: Mapping[str, object] | None = None,
        row: int = 0,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Change a result, with a reason; what was learned since is worked out again.

        number     of the question, or of the entry that brought the result
        value      what the result should be
        reason     why; it stays on record
        given      what was really done, where that was wrong as well
        measured   which result, where a question has several
        row        of an import, from 0
        actor      who corrects; None: the one who opened the study
        key        the same key again is the same request, not a second one
        """
        told, place = Told(value, measured, given), (_number(number) or 0, row)
        author = Author(actor or self.actor, key)
        return self._write(
            lambda log: recording.correct(log, self.plan, place, told, author, reason)
        )

    def withdraw(
        self, number: int | Ticket, *, reason: str, actor: str | None = None, key: str | None = None
    ) -> Receipt:
        """Close a question that will have no answer, or take back the answer it has, with a reason.

        number   of the question, or of the entry that brought the result
        reason   why; it stays on record
        actor    who withdraws; None: the one who opened the study
        key      the same key again is the same request, not a second one
        """
        author = Author(actor or self.actor, key)
        return self._write(
            lambda log: recording.withdraw(log, _number(number) or 0, author, reason)
        )

    def import_results(
        self, table: Any, *, actor: str | None = None, key: str | None = None
    ) -> Receipt:
        """Record results from before, from a frame, a dict of columns or a path: all of them or none.

        A column for every factor, and one for every outcome that was measured (an empty cell: it was
        not); or the columns `outcome` and `value`.

        table   the results
        actor   who brings them; None: the one who opened the study
        key     the same key again is the same request, not a second one
        """
        from sidestep.studies.importing import rows_of  # noqa: PLC0415

        rows = rows_of(self.plan, table)
        author = Author(actor or self.actor, key or uuid4().hex)
        source = table.name if isinstance(table, Path) else type(table).__name__
        return self._write(lambda log: recording.take_over(log, rows, author, source))

    def close(
        self,
        *,
        accept: bool = False,
        overrule: Mapping[str, object] | None = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """End the asking. Results may still be told; the record stays.

        accept     with today's recommendation
        overrule   with this setting instead, with a reason
        reason     why; it stays on record
        actor      who closes; None: the one who opened the study
        key        the same key again is the same request, not a second one
        """
        if overrule is not None and (accept or not reason):
            raise InputError("overrule must come with a reason and without accept, got otherwise")
        decision = None
        if accept:
            best = self.best()
            decision = {"overruled": False, "action": best.action, "candidate": best.candidate}
        if overrule is not None:
            setting = setting_of(self.plan.factors, overrule, "overrule")
            decision = {"overruled": True, "action": setting}
        author = Author(actor or self.actor, key)
        return self._write(lambda log: recording.close(log, decision, author, reason))

    def _asked(
        self, log: Log, request: Request, author: Author, *, new: bool
    ) -> tuple[Question, Event | None]:
        """The question and, where it is new, its event; under the study's lock."""
        wanted = json.loads(json.dumps(request.to_json()))
        found = repeat_of(
            log, author.key, ("asked",), lambda event: event.body.get("request", {}) == wanted
        )
        if found is not None:
            return question_of(found), None
        if log.head.status == CLOSED:
            raise StudyClosed(f"study {self.name!r} is closed and asks nothing more")
        from sidestep.studies.deciding import decide  # noqa: PLC0415

        with self._turn:
            book = self._live.follow(log)
            mine = None if new else book.open_of(author.actor)
            if mine is not None:
                check_same_request(mine, wanted)
                return mine, None
            body = decide(self._live.mind(), log.head.seq + 1, book, request)
        event = log.append("asked", body=body, actor=author.actor, key=author.key)
        return question_of(event), event

    def _noted(self, asked: tuple[Question, Event | None]) -> None:
        """A question of ours was saved."""
        if asked[1] is not None:
            with self._turn:
                self._live.took(asked[1])

    def _write(self, act: Callable[[Log], Written]) -> Receipt:
        done = self._save(self._store, self.name, act)
        card = told_card(self.plan, self.name, done)
        entries = tuple(event.seq for event in done.events)
        return Receipt(entries, done.events[0].ticket, done.repeated, card)


def user_of_the_machine() -> str:
    """Who is logged in here."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such entry, no such variable
        return "unknown"


def _number(ticket: int | Ticket | None) -> int | None:
    return ticket.id if isinstance(ticket, Ticket) else ticket
