"""What is added to a record: results, corrections, withdrawals, an end. It needs no arithmetic."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from sidestep.errors import InputError
from sidestep.studies import recording
from sidestep.studies.cards.told_card import told_card
from sidestep.studies.factors import setting_of
from sidestep.studies.reading import Reading
from sidestep.studies.recording import Author, Told, Written
from sidestep.studies.storage.store import Log
from sidestep.studies.ticket import Receipt, Ticket


class Writing(Reading):
    """A study as those have it who bring its results."""

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
        row: int | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Change a result, with a reason; what was learned since is worked out again.

        number     of the question, or of the entry that brought the result
        value      what the result should be
        reason     why; it stays on record
        given      what was really done, where that was wrong as well
        measured   which result, where a question has several
        row        of an import of several: which result, from 0 in the order of `history`
        actor      who corrects; None: the one who opened the study
        key        the same key again is the same request, not a second one
        """
        told, place = Told(value, measured, given), (_number(number) or 0, row)
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
        """Close a question that will have no answer, or take back the answer it has, with a reason.

        number   of the question, or of the entry that brought the result
        reason   why; it stays on record
        row      of an import of several: which result, from 0 in the order of `history`
        actor    who withdraws; None: the one who opened the study
        key      the same key again is the same request, not a second one
        """
        place, author = (_number(number) or 0, row), Author(actor or self.actor, key)
        return self._write(lambda log: recording.withdraw(log, place, author, reason))

    def import_results(
        self, table: Any, *, again: bool = False, actor: str | None = None, key: str | None = None
    ) -> Receipt:
        """Record results from before, from a frame, a dict of columns or a path: all of them or none.

        A column for every factor, and one for every outcome that was measured (an empty cell: it was
        not); or the columns `outcome` and `value`.

        table   the results
        again   also where an earlier import holds exactly the same results
        actor   who brings them; None: the one who opened the study
        key     the same key again is the same request, not a second one
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
        """End the asking. Results may still be told; the record stays.

        accept     with today's recommendation
        overrule   with this setting instead, with a reason
        context    what the recommendation is for, where the study has one
        reason     why; it stays on record
        actor      who closes; None: the one who opened the study
        key        the same key again is the same request, not a second one
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
        return self._write(lambda log: recording.close(log, decision, author, reason))

    def _write(self, act: Callable[[Log], Written]) -> Receipt:
        done = self._save(self._store, self.name, act)
        card = told_card(self.plan, self.name, done)
        entries = tuple(event.seq for event in done.events)
        return Receipt(entries, done.events[0].ticket, done.repeated, card)


def _number(ticket: int | Ticket | None) -> int | None:
    return ticket.id if isinstance(ticket, Ticket) else ticket
