"""Ask, tell, correct and withdraw over a store, as plainly as they can be written."""

from typing import Any

from sidestep.errors import AlreadyAnswered, InputError, TicketNotFound
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.log import Log
from sidestep.studies.storage.store import Store, write

OUTCOME = "sodium"


class Client:
    """One actor at one study. What it has folded is a cache; the log decides."""

    def __init__(self, store: Store, study: str, actor: str, *, patience: float = 60.0) -> None:
        self.store, self.study, self.actor, self.patience = store, study, actor, patience
        self._seq = 0
        self._asked = 0
        self._open: dict[int, Event] = {}

    def ask(self, *, key: str | None = None, new: bool = False) -> Event:
        """My open ticket, or the next one; its item is the number of asks before it."""

        def act(log: Log) -> Event:
            self._fold(log)
            seen = log.find(key) if key else None
            mine = [event for event in self._open.values() if event.actor == self.actor]
            if seen or (mine and not new):
                return seen or mine[0]
            return log.append("asked", body={"item": self._asked}, actor=self.actor, key=key)

        return self._write(act)

    def tell(self, ticket: int, value: float, *, key: str | None = None) -> Event:
        """The answer: of the same value the one that is there, of another one AlreadyAnswered."""

        def act(log: Log) -> Event:
            told = self._settled(log, ticket)
            if told is None:
                body = {"value": value}
                return log.append(
                    "answered", ticket=ticket, outcome=OUTCOME, body=body, actor=self.actor, key=key
                )
            if told.body.get("value") != value:
                raise AlreadyAnswered(f"ticket {ticket} was told {told.body}, now came {value}")
            return told

        return self._write(act)

    def correct(self, ticket: int, value: float, reason: str, *, key: str | None = None) -> Event:
        """Another value for an answer, with a reason."""

        def act(log: Log) -> Event:
            told = self._settled(log, ticket)
            if told is None or told.kind != "answered":
                raise InputError(f"a correction must be of an answer, got ticket {ticket}")
            seen = log.find(key) if key else None
            log.drop_snapshots(told.seq)
            body = {"was": _value(log.about(ticket)), "is": value}
            return seen or log.append(
                "corrected", ticket=ticket, outcome=OUTCOME, body=body, actor=self.actor,
                reason=reason, key=key,
            )  # fmt: skip

        return self._write(act)

    def withdraw(self, ticket: int, reason: str, *, key: str | None = None) -> Event:
        """No answer will come."""

        def act(log: Log) -> Event:
            seen = log.find(key) if key else None
            if seen is None and self._settled(log, ticket):
                raise AlreadyAnswered(f"ticket {ticket} has its answer")
            return seen or log.append(
                "withdrawn", ticket=ticket, outcome=OUTCOME, body={}, actor=self.actor,
                reason=reason, key=key,
            )  # fmt: skip

        return self._write(act)

    def _write(self, act: Any) -> Event:
        return write(self.store, self.study, act, patience=self.patience)

    def _fold(self, log: Log) -> None:
        for event in log.events(self._seq):
            self._seq = event.seq
            if event.kind == "asked":
                self._asked += 1
                self._open[event.seq] = event
            elif event.kind in ("answered", "withdrawn") and event.ticket:
                self._open.pop(event.ticket, None)

    def _settled(self, log: Log, ticket: int) -> Event | None:
        about = log.about(ticket)
        if not about or about[0].kind != "asked":
            raise TicketNotFound(f"there is no ticket {ticket}")
        return next((event for event in about if event.kind in ("answered", "withdrawn")), None)


def _value(about: list[Event]) -> float:
    """The value of a ticket as it stands."""
    last = [event for event in about if event.kind in ("answered", "corrected")][-1]
    return last.body["is"] if last.kind == "corrected" else last.body["value"]
