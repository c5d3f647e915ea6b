"""The methods of a study that only read."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sidestep.errors import InputError
from sidestep.studies import recording
from sidestep.studies.answers import Kept, find_answer
from sidestep.studies.book import Question
from sidestep.studies.cards.ask_card import ask_card
from sidestep.studies.cards.card import Card
from sidestep.studies.cards.doubt import doubt_text
from sidestep.studies.cards.overview import show_card
from sidestep.studies.cards.record_card import verify_card
from sidestep.studies.closing import closed_text, ending_of
from sidestep.studies.factors import Setting
from sidestep.studies.live import Live
from sidestep.studies.measurement import report_of
from sidestep.studies.plan import CLEAN, Plan
from sidestep.studies.recording import Told
from sidestep.studies.request import context_of
from sidestep.studies.storage.log import Events
from sidestep.studies.storage.store import CLOSED, Store, Writer, write
from sidestep.studies.ticket import Ticket, ticket_of
from sidestep.studies.values import shown

if TYPE_CHECKING:
    from sidestep.studies.advice import Best, Explanation, Outlook, Response, Tradeoff
    from sidestep.studies.learning.trajectory import Step


class Reading:
    """A study that can be read."""

    def __init__(
        self, store: Store, name: str, plan: Plan, actor: str, writer: Writer = write
    ) -> None:
        self.name, self.plan, self.actor = name, plan, actor
        self._store, self._save = store, writer
        self._live = Live(store, name, plan)
        # the rounds left, with the record and the context that they were estimated for
        self._left: tuple[str, dict[str, Any], tuple[int, int]] | None = None
        self._turn = threading.RLock()  # of the threads that look at or ask this one object
        self._asking = threading.RLock()  # of those that ask, until their question is saved

    def best(
        self,
        *,
        certainty: float | None = None,
        rounds: bool = False,
        context: Mapping[str, Any] | None = None,
    ) -> "Best":
        """Recommend a candidate from the results so far, and say how certain that is.

        certainty   of being within all limits, of intervals and words; None: 0.95
        rounds      also estimate how many rounds are left, which takes seconds; the estimate is kept
                    and shown until the next result
        context     context values for which it is recommended
        """
        from sidestep.studies.cards.best_card import best_card  # noqa: PLC0415

        here = dict(context_of(self.plan, context))
        with self._turn:
            book = self._live.follow()
            best, ahead = self._assessed(certainty, here)
            now = (book.hash, here)
            if rounds and best.action is not None:
                self._left = (*now, ahead())
            if self._left is not None and self._left[:2] == now:
                best = replace(best, rounds_left=self._left[2])
        return replace(best, card=best_card(self.plan, self.name, best))

    def _assessed(
        self, certainty: float | None, here: dict[str, Any]
    ) -> tuple["Best", Callable[[], tuple[int, int]]]:
        """Today's recommendation, and how to estimate the rounds left."""
        book = self._live.book
        if self.plan.aim == CLEAN:
            from sidestep.studies.advising import advise, look_ahead  # noqa: PLC0415

            self._refuse_certainty(certainty)
            mind = self._live.mind()
            return advise(mind, book, here), lambda: look_ahead(mind, here)
        from sidestep.studies.learning import assessment, outlook  # noqa: PLC0415
        from sidestep.studies.learning.response import tried_of  # noqa: PLC0415

        number = assessment.checked_certainty(certainty)
        study = self._live.learner()
        best = assessment.assess(study, book, here, number)
        best = replace(best, tried=tried_of(study.evidence, best.action))
        return best, lambda: outlook.rounds_ahead(study, book, here)

    @staticmethod
    def _refuse_certainty(certainty: float | None) -> None:
        if certainty is not None:
            raise InputError('certainty belongs to aim="within", got it with aim="clean"')

    def explain(
        self,
        *,
        certainty: float | None = None,
        top: int = 8,
        context: Mapping[str, Any] | None = None,
    ) -> "Explanation":
        """Every candidate: effects with intervals, limits, probability of being the best.

        certainty   of the intervals; None: 0.95
        top         number of candidates on the card
        context     context values for which it is recommended
        """
        from sidestep.studies.advice import Explanation  # noqa: PLC0415
        from sidestep.studies.cards.explain_card import explain_card  # noqa: PLC0415

        here = dict(context_of(self.plan, context))
        with self._turn:
            book = self._live.follow()
            if self.plan.aim == CLEAN:
                from sidestep.studies.advising import explain  # noqa: PLC0415

                self._refuse_certainty(certainty)
                rows = tuple(explain(self._live.mind(), book, here))
            else:
                from sidestep.studies.learning import assessment  # noqa: PLC0415

                number = assessment.checked_certainty(certainty)
                rows = tuple(assessment.explain_all(self._live.learner(), book, here, number))
        return Explanation(rows, explain_card(self.plan, self.name, rows, top))

    def tradeoff(self, *, context: Mapping[str, Any] | None = None) -> "Tradeoff":
        """The largest effect that can be had at every chance of staying within all limits.

        context   context values for which it is recommended
        """
        from sidestep.studies.advice import Tradeoff  # noqa: PLC0415
        from sidestep.studies.cards.tradeoff_card import tradeoff_card  # noqa: PLC0415
        from sidestep.studies.learning.assessment import tradeoff_of  # noqa: PLC0415

        if self.plan.aim == CLEAN:
            raise InputError('tradeoff belongs to aim="within", got aim="clean"')
        here = dict(context_of(self.plan, context))
        with self._turn:
            book = self._live.follow()
            trades = tuple(tradeoff_of(self._live.learner(), book, here))
        return Tradeoff(trades, tradeoff_card(self.plan, self.name, trades))

    def response(self, outcome: str, factor: str, *, certainty: float | None = None) -> "Response":
        """What is believed of an outcome along one factor, with all others at the baseline.

        outcome     its name
        factor      name of a factor of numbers
        certainty   of the intervals; None: 0.95
        """
        from sidestep.studies.learning.response import response_of  # noqa: PLC0415

        if self.plan.aim == CLEAN:
            raise InputError('response belongs to aim="within", got aim="clean"')
        number = self.plan.index(outcome)
        with self._turn:
            self._live.follow()
            return response_of(self._live.learner(), number, factor, certainty)

    def outlook(
        self,
        *,
        results: Sequence[int] = (8, 15, 30),
        studies: int = 12,
        progress: Callable[[int, int], object] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> "Outlook":
        """What further results are expected to buy, before the first result or later; takes seconds.

        results    numbers of further results after which to look, at most 120
        studies    number of studies that are played in worlds drawn from what is believed
        progress   is told how many studies are done, and of how many
        context    context values for which it is recommended
        """
        from sidestep.studies.advice import Outlook  # noqa: PLC0415
        from sidestep.studies.cards.outlook_card import outlook_card  # noqa: PLC0415
        from sidestep.studies.learning.outlook import MOST_RESULTS, outlook_of  # noqa: PLC0415

        if self.plan.aim == CLEAN:
            raise InputError('outlook belongs to aim="within", got aim="clean"')
        counts = tuple(results)
        whole = all(isinstance(each, int) and 1 <= each <= MOST_RESULTS for each in counts)
        if not counts or not whole:
            raise InputError(
                f"results must be whole numbers from 1 to {MOST_RESULTS}, got {shown(results)}"
            )
        if not isinstance(studies, int) or not 1 <= studies <= 1000:
            raise InputError(f"studies must lie in 1..1000, got {shown(studies)}")
        here = dict(context_of(self.plan, context))
        with self._turn:
            book = self._live.follow()
            found = outlook_of(self._live.learner(), book, here, counts, studies, progress)
        return Outlook(tuple(found), outlook_card(self.plan, self.name, found, studies))

    def trajectory(
        self, action: Setting, *, context: Mapping[str, Any] | None = None, most: int = 48
    ) -> "list[Step]":
        """The estimated effects of a setting after each result: how a recommendation came about.

        action    the setting
        context   context values for which it is shown
        most      number of results after which it is shown
        """
        from sidestep.studies.learning.trajectory import trajectory_of  # noqa: PLC0415

        here = dict(context_of(self.plan, context))
        return trajectory_of(self.plan, self.history(), action, context=here, most=most)

    def doubt(
        self,
        ticket: int | Ticket | None,
        value: Any = None,
        *,
        measured: str | None = None,
        **parts: Any,
    ) -> str | None:
        """Why a result would be surprising, before it is told; None if it is not.

        It takes what `tell` takes of a result: `se`, `repeats`, `below`, `change`, `against`.
        """
        value = report_of(value, **parts)
        number = ticket.id if isinstance(ticket, Ticket) else ticket
        body: Mapping[str, Any] = {}
        if number is not None:
            about = self._store.about(self.name, number)
            body = recording.check_asked(about, number, self.name)[0].body
        panel, expected = tuple(body.get("measure", ())), body.get("expected") or {}
        for name, told in recording.results_of(self.plan, Told(value, measured), panel).items():
            if text := doubt_text(self.plan.outcome(name), told, expected.get(name)):
                return text
        return None

    def doubt_correction(
        self,
        number: int | Ticket,
        value: Any = None,
        *,
        measured: str | None = None,
        row: int | None = None,
        **parts: Any,
    ) -> str | None:
        """Why a corrected value would be surprising; None if it is not."""
        place = (number.id if isinstance(number, Ticket) else number, row)
        answer = find_answer(Kept(self._store, self.name), place, measured)
        asked = [each for each in self.about(answer.ticket) if each.kind == "asked"]
        expected = asked[0].body.get("expected") or {} if asked else {}
        told = Told(report_of(value, **parts), measured)
        result = recording.corrected_result(self.plan, answer, told)
        return doubt_text(self.plan.outcome(answer.outcome), result, expected.get(answer.outcome))

    def show(self) -> Card:
        """The study, its open questions and what was measured."""
        with self._turn:
            book, head = self._live.follow(), self._store.head(self.name)
            ending = ending_of(self.history()) if head.status == CLOSED else None
            closed = closed_text(self.plan, ending) if ending else ""
            return show_card(self.plan, head, book, closed)

    def questions(self) -> list[Question]:
        """The open questions, oldest first."""
        with self._turn:
            return list(self._live.follow().open.values())

    def about(self, ticket: int) -> Events:
        """All entries about a question, oldest first."""
        return self._store.about(self.name, ticket)

    @property
    def n_results(self) -> int:
        """Number of results that count."""
        with self._turn:
            return self._live.follow().n_results

    def verify(self, *, asks: bool = False, known: str | None = None) -> Card:
        """Check the hash chain of the record; with `asks`, compute every question again.

        known   a hash that you noted earlier: it must be in the chain
        """
        from sidestep.studies.storage.record import verify  # noqa: PLC0415

        verdict = verify(self._store, self.name, known=known)
        if not asks or not verdict.holds:
            return verify_card(verdict)
        from sidestep.studies.replay import replayed  # noqa: PLC0415

        return verify_card(verdict, replayed(self._store, self.name, self.plan))

    def export(self, path: Any = None) -> Iterator[str]:
        """The record as lines of JSON, with its hash chain; written to a file if one is given."""
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
        return ticket_of(self.plan, ask_card(self.plan, self.name, question))

    def __repr__(self) -> str:
        return f"Study({self.name!r})"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()
