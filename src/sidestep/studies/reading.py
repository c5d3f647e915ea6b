"""What can be seen of a study; none of it changes anything."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sidestep.studies import recording
from sidestep.studies.answers import Kept, find_answer
from sidestep.studies.book import Question
from sidestep.studies.cards.ask_card import ask_card
from sidestep.studies.cards.card import Card
from sidestep.studies.cards.doubt import doubt_text, doubts_of
from sidestep.studies.cards.overview import show_card
from sidestep.studies.cards.record_card import verify_card
from sidestep.studies.live import Live
from sidestep.studies.plan import Plan
from sidestep.studies.recording import Told
from sidestep.studies.request import context_of
from sidestep.studies.storage.store import Events, Store, Writer, write
from sidestep.studies.ticket import Ticket, ticket_of

if TYPE_CHECKING:
    from sidestep.studies.advice import Best, Explanation


class Reading:
    """A study as a reader has it."""

    def __init__(
        self, store: Store, name: str, plan: Plan, actor: str, writer: Writer = write
    ) -> None:
        self.name, self.plan, self.actor = name, plan, actor
        self._store, self._save = store, writer
        self._live = Live(store, name, plan)
        self._left: tuple[Any, dict[str, Any], tuple[int, int]] | None = (
            None  # of a state, where asked
        )
        self._turn = threading.RLock()  # of the threads that look at or ask this one object

    def best(self, *, rounds: bool = False, context: Mapping[str, Any] | None = None) -> "Best":
        """What the study would stand by today, whether that is enough, and what is not settled.

        rounds    also roughly how many rounds are left, which takes seconds; kept, and said without
                  asking, until a result comes in
        context   what is known of the round that it is for
        """
        from sidestep.studies.advising import advise, look_ahead  # noqa: PLC0415
        from sidestep.studies.cards.best_card import best_card  # noqa: PLC0415

        with self._turn:
            book = self._live.follow()
            mind, here = self._live.mind(), dict(context_of(self.plan, context))
            best = advise(mind, book, here)
            if rounds and best.action is not None:
                self._left = (mind.state, here, look_ahead(mind, here))
            if self._left is not None and self._left[0] is mind.state and self._left[1] == here:
                best = replace(best, rounds_left=self._left[2])
        return replace(best, card=best_card(self.plan, self.name, best))

    def explain(self, *, top: int = 8, context: Mapping[str, Any] | None = None) -> "Explanation":
        """Every candidate: its effects with intervals and verdicts, and how likely it is the best.

        top       how many the card shows
        context   what is known of the round that it is for
        """
        from sidestep.studies.advice import Explanation  # noqa: PLC0415
        from sidestep.studies.advising import explain  # noqa: PLC0415
        from sidestep.studies.cards.explain_card import explain_card  # noqa: PLC0415

        here = dict(context_of(self.plan, context))
        with self._turn:
            book = self._live.follow()
            rows = tuple(explain(self._live.mind(), book, here))
        return Explanation(rows, explain_card(self.plan, self.name, rows, top))

    def doubt(
        self, ticket: int | Ticket | None, value: Any, *, measured: str | None = None
    ) -> str | None:
        """What is odd about a result that has not been told yet; None where nothing is."""
        number = ticket.id if isinstance(ticket, Ticket) else ticket
        body: Mapping[str, Any] = {}
        if number is not None:
            about = self._store.about(self.name, number)
            body = recording.check_asked(about, number, self.name)[0].body
        results = recording.results_of(
            self.plan, Told(value, measured), tuple(body.get("measure", ()))
        )
        outcomes = {outcome.name: outcome for outcome in self.plan.outcomes}
        return doubts_of(outcomes, results, body.get("expected") or {})

    def doubt_correction(
        self,
        number: int | Ticket,
        value: float,
        *,
        measured: str | None = None,
        row: int | None = None,
    ) -> str | None:
        """What is odd about a value that a result has not been given yet; None where nothing is."""
        place = (number.id if isinstance(number, Ticket) else number, row)
        answer = find_answer(Kept(self._store, self.name), place, measured)
        asked = [each for each in self.about(answer.ticket) if each.kind == "asked"]
        expected = asked[0].body.get("expected") or {} if asked else {}
        result = recording.checked_result(self.plan, answer.outcome, value)
        return doubt_text(self.plan.outcome(answer.outcome), result, expected.get(answer.outcome))

    def show(self) -> Card:
        """What the study is and where it stands."""
        with self._turn:
            book = self._live.follow()
            return show_card(self.plan, self._store.head(self.name), book)

    def questions(self) -> list[Question]:
        """The questions that wait for an answer, the oldest first."""
        with self._turn:
            return list(self._live.follow().open.values())

    def about(self, ticket: int) -> Events:
        """Everything on record about a question, oldest first."""
        return self._store.about(self.name, ticket)

    @property
    def n_results(self) -> int:
        """How many results count."""
        with self._turn:
            return self._live.follow().n_results

    def verify(self, *, asks: bool = False, known: str | None = None) -> Card:
        """Whether the record is whole; with `asks`, whether every question would be put again.

        known   a hash that was noted earlier: it must be in the chain
        """
        from sidestep.studies.storage.record import verify  # noqa: PLC0415

        verdict = verify(self._store, self.name, known=known)
        if not asks or not verdict.holds:
            return verify_card(verdict)
        from sidestep.studies.replay import replayed  # noqa: PLC0415

        return verify_card(verdict, replayed(self._store, self.name, self.plan))

    def export(self, path: Any = None) -> Iterator[str]:
        """The whole record as lines of JSON, its chain included; written to a file where one is named."""
        from sidestep.studies.storage.exchange import export_study, write_lines  # noqa: PLC0415

        lines = export_study(self._store, self.name)
        if path is None:
            return lines
        kept = list(lines)
        write_lines(path, kept)
        return iter(kept)

    def history(self, after: int = 0, limit: int | None = None) -> Events:
        """The record, oldest first."""
        return self._store.events(self.name, after, limit)

    def _ticket(self, question: Question) -> Ticket:
        return ticket_of(self.plan, question, ask_card(self.plan, self.name, question))

    def __repr__(self) -> str:
        return f"Study({self.name!r})"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()
