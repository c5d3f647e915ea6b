"""The common methods of a study on this machine (`Study`) and behind a service (`Client`)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sidestep.studies.cards.card import Card
from sidestep.studies.plan import Plan
from sidestep.studies.storage.store import Events
from sidestep.studies.ticket import Receipt, Ticket

if TYPE_CHECKING:
    from sidestep.studies.advice import Best, Explanation

Context = Mapping[str, Any] | None


class Verbs(Protocol):
    """Ask, tell, correct, withdraw, read; `Study` explains every argument."""

    name: str
    plan: Plan
    actor: str

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
        context: Context = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Ticket:
        """What to do next and what to measure."""
        ...

    def tell(
        self,
        ticket: int | Ticket | None,
        value: Any,
        *,
        measured: str | None = None,
        given: Mapping[str, object] | None = None,
        context: Context = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Record a result."""
        ...

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
        """Change a result, with a reason."""
        ...

    def withdraw(
        self,
        number: int | Ticket,
        *,
        reason: str,
        row: int | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Close a question without an answer, or take back an answer."""
        ...

    def import_results(
        self, table: Any, *, again: bool = False, actor: str | None = None, key: str | None = None
    ) -> Receipt:
        """Record past results."""
        ...

    def close(
        self,
        *,
        accept: bool = False,
        overrule: Mapping[str, object] | None = None,
        context: Context = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Close the study."""
        ...

    def best(self, *, rounds: bool = False, context: Context = None) -> "Best":
        """The recommendation from the results so far."""
        ...

    def explain(self, *, top: int = 8, context: Context = None) -> "Explanation":
        """Every candidate."""
        ...

    def show(self) -> Card:
        """The study, its open questions and what was measured."""
        ...

    def verify(self, *, asks: bool = False, known: str | None = None) -> Card:
        """Check the hash chain of the record."""
        ...

    def history(self, after: int = 0, limit: int | None = None) -> Events:
        """The record, oldest first."""
        ...

    def export(self, path: Any = None) -> Iterator[str]:
        """The whole record as lines."""
        ...
