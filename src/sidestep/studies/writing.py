"""The methods of a study that write: results, corrections, withdrawals, closing. They need no numpy."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any
from uuid import uuid4

from sidestep.errors import InputError
from sidestep.studies import closing, recording
from sidestep.studies.cards.told_card import told_card
from sidestep.studies.factors import setting_of
from sidestep.studies.measurement import report_of
from sidestep.studies.reading import Reading
from sidestep.studies.recording import Author, Told, Written
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.log import Log
from sidestep.studies.ticket import Receipt, Ticket, receipt_of


class Writing(Reading):
    """A study to which results can be added."""

    def tell(
        self,
        ticket: int | Ticket | None,
        value: Any = None,
        *,
        se: float | str | None = None,
        repeats: int | None = None,
        below: float | None = None,
        change: float | str | None = None,
        against: Mapping[str, object] | None = None,
        block: str | None = None,
        on: date | str | None = None,
        measured: str | None = None,
        given: Mapping[str, object] | None = None,
        context: Mapping[str, Any] | None = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Record a result; it is saved once this returns. Telling it again changes nothing.

        ticket     the question, or its number
        value      a number in the unit of the outcome; for a panel {"sodium": 138.0, ...}, where an
                   outcome may also have parts: {"sodium": {"value": 138.0, "se": 0.5}, ...}
        se         standard error of the value or the change, where it is an estimate
        repeats    number of measurements that the value is the mean of
        below      instead of a value: it is less than this, the limit of detection
        change     instead of a value: the difference from a control measured side by side; in
                   percent for an outcome on a log scale: "-4%"
        against    the setting of that control, if it is not the baseline: {"dose": 10}
        block      batch, device or laboratory, which may have a level of its own
        on         the day on which it was measured, a date or "2026-11-18"; it changes no estimate
        measured   the outcome that was measured, if not the one asked for
        given      what was really done, if not what was asked: {"dose": 35}
        context    context values of that round
        reason     why a surprising result is right, or another note
        actor      who tells; None: the actor who opened the study
        key        a repeated request with the same key is carried out once
        With ticket None it is a result without a question: `measured` and `given` describe it.
        """
        parts = {"se": se, "repeats": repeats, "below": below, "change": change, "against": against}
        told = Told(report_of(value, **parts), measured, given, context, reason, block, on)
        number = _number(ticket)
        author = Author(actor or self.actor, key)
        if number is None:
            author = author._replace(key=key or uuid4().hex)
            return self._write(lambda log: recording.tell_unasked(log, self.plan, told, author))
        return self._write(lambda log: recording.tell(log, self.plan, number, told, author))

    def correct(
        self,
        number: int | Ticket,
        value: Any = None,
        *,
        reason: str,
        se: float | str | None = None,
        repeats: int | None = None,
        below: float | None = None,
        change: float | str | None = None,
        against: Mapping[str, object] | None = None,
        block: str | None = None,
        measured: str | None = None,
        given: Mapping[str, object] | None = None,
        row: int | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Correct a result and record why; estimates are computed again.

        number     number of the question, or of the entry that recorded the result
        value      the correct value; its error, repeats and block stay unless they are told
        reason     why; it is recorded
        se, repeats, below, change, against, block   what the result really was, as in `tell`
        given      what was really done, if that was wrong too
        measured   which result, if the question has several
        row        which result of an import, counted from 0 as in its entry in `history`
        actor      who corrects; None: the actor who opened the study
        key        a repeated request with the same key is carried out once
        """
        parts = {"se": se, "repeats": repeats, "below": below, "change": change, "against": against}
        told = Told(report_of(value, **parts), measured, given, block=block)
        place = (_number(number) or 0, row)
        author = Author(actor or self.actor, key)
        return self._write(
            lambda log: recording.correct(log, self.plan, place, told, author, reason)
        )

    def withdraw(
        self,
        number: int | Ticket,
        *,
        reason: str,
        row: int | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Withdraw a question, or its answer, and record why.

        number   number of the question, or of the entry that recorded the result
        reason   why; it is recorded
        row      which result of an import, counted from 0 as in its entry in `history`
        actor    who withdraws; None: the actor who opened the study
        key      a repeated request with the same key is carried out once
        """
        place, author = (_number(number) or 0, row), Author(actor or self.actor, key)
        return self._write(lambda log: recording.withdraw(log, place, author, reason))

    def import_results(
        self, table: Any, *, again: bool = False, actor: str | None = None, key: str | None = None
    ) -> Receipt:
        """Import past results from a data frame, a dict of columns or a path: all or none.

        The table has a column per factor and per outcome, with an empty cell for what was not
        measured; or the columns `outcome` and `value` instead of the outcomes.

        table   the results
        again   import the same results a second time
        actor   who imports; None: the actor who opened the study
        key     a repeated request with the same key is carried out once
        """
        from sidestep.studies.importing import import_of, take_over  # noqa: PLC0415

        found = import_of(self.plan, table)
        author = Author(actor or self.actor, key or uuid4().hex)
        return self._write(lambda log: take_over(log, found, author, again=again))

    def close(
        self,
        *,
        accept: bool = False,
        overrule: Mapping[str, object] | None = None,
        context: Mapping[str, Any] | None = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Close the study to new questions. Open ones can still be answered.

        accept     adopt today's recommendation
        overrule   adopt this setting instead; needs a reason
        context    context values for which it is recommended
        reason     why; it is recorded
        actor      who closes; None: the actor who opened the study
        key        a repeated request with the same key is carried out once
        """
        if overrule is not None and (accept or not reason):
            raise InputError("overrule must come with a reason and without accept, got otherwise")
        decision = None
        if accept:
            best = self.best(context=context)
            if best.action is None:
                raise InputError("accept must have a recommendation to accept, got no results yet")
            decision = {"overruled": False, "action": best.action, "candidate": best.candidate}
        if overrule is not None:
            setting = setting_of(self.plan.factors, overrule, "overrule")
            decision = {"overruled": True, "action": setting}
        author = Author(actor or self.actor, key)
        return self._write(lambda log: closing.close(log, self.plan, decision, author, reason))

    def _write(self, act: Callable[[Log], Written]) -> Receipt:
        done = self._save(self._store, self.name, act, lambda done: self._noted(done.events))
        return receipt_of(told_card(self.plan, self.name, done))

    def _noted(self, saved: Iterable[Event | None]) -> None:
        """Take note of our own saved entries, so that the next ask need not read them.

        Not while another thread is computing: nobody waits for that to save a result.
        """
        if self._turn.acquire(blocking=False):
            try:
                for event in saved:
                    if event is not None:
                        self._live.took(event)
            finally:
                self._turn.release()


def _number(ticket: int | Ticket | None) -> int | None:
    return ticket.id if isinstance(ticket, Ticket) else ticket
