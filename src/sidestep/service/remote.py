"""A study behind a service: the methods of `Study`, each one HTTP request."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from sidestep.errors import InputError
from sidestep.service.wire import Wire, encoded
from sidestep.studies.advice import (
    Bend,
    Best,
    Contender,
    Effect,
    Explanation,
    Leader,
    Loss,
    Narrowing,
    Row,
    Settling,
    Surprise,
    Trade,
    Tradeoff,
    Trust,
    Unexpected,
    Unseen,
)
from sidestep.studies.cards.card import Card
from sidestep.studies.cards.card_json import card_from_json
from sidestep.studies.frames import columns_of
from sidestep.studies.importing import rows_of
from sidestep.studies.measurement import report_of
from sidestep.studies.plan import ALL, Plan
from sidestep.studies.request import request_of
from sidestep.studies.storage.events import LONGEST_REASON, check_words
from sidestep.studies.storage.exchange import event_from_json, write_lines
from sidestep.studies.storage.log import Events
from sidestep.studies.ticket import Receipt, Ticket, receipt_of, ticket_of
from sidestep.studies.values import checked_day, checked_number, shown

PAGE = 1000
Context = Mapping[str, Any] | None


class RemoteStudy:
    """A study that a service keeps; `Client.open` makes one."""

    def __init__(self, wire: Wire, path: str, name: str, plan: Plan, actor: str) -> None:
        self.name, self.plan, self.actor = name, plan, actor
        self._wire, self._path = wire, path

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
        context: Context = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Ticket:
        """What to do next and what to measure."""
        settings: dict[str, Any] = {
            "purpose": purpose,
            "measure": measure,
            "panel": panel,
            "measure_only": measure_only,
            "allowed": allowed,
            "largest_step": largest_step,
            "price_cap": price_cap,
            "context": context,
        }
        request_of(self.plan, **settings)  # raises the same errors as `Study`, without a request
        settings |= {"new": new, "measure_only": _names(measure_only)}
        if not (panel is None or panel == ALL or isinstance(panel, int)):
            settings["panel"] = _names(panel)
        if not (allowed is None or isinstance(allowed, Mapping)):
            settings["allowed"] = list(allowed)
        return ticket_of(self.plan, self._post("tickets", settings, actor, key))

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
        context: Context = None,
        reason: str | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Record a result; it is durable once this returns."""
        parts = {"se": se, "repeats": repeats, "below": below, "change": change, "against": against}
        told = {
            "value": _checked(value, measured, parts),
            **parts,
            "block": block,
            "on": None if on is None else checked_day("on", on),
            "measured": measured,
            "given": given,
            "context": context,
            "reason": reason,
        }
        path = "answers" if ticket is None else f"tickets/{_number(ticket)}/answer"
        return receipt_of(self._post(path, told, actor, key))

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
        """Change a result, with a reason."""
        parts = {"se": se, "repeats": repeats, "below": below, "change": change, "against": against}
        told = {
            "value": _checked(value, measured, parts),
            **parts,
            "block": block,
            "reason": _why(reason),
            "measured": measured,
            "given": given,
            "row": row,
        }
        return receipt_of(self._post(f"tickets/{_number(number)}/correction", told, actor, key))

    def withdraw(
        self,
        number: int | Ticket,
        *,
        reason: str,
        row: int | None = None,
        actor: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Close a question without an answer, or take an answer back."""
        why = {"reason": _why(reason), "row": row}
        return receipt_of(self._post(f"tickets/{_number(number)}/withdrawal", why, actor, key))

    def import_results(
        self, table: Any, *, again: bool = False, actor: str | None = None, key: str | None = None
    ) -> Receipt:
        """Record results from before."""
        found = columns_of(table, "results")
        rows_of(self.plan, found)
        columns = {name: list(map(_cell, column)) for name, column in found.items()}
        return receipt_of(self._post("import", {"columns": columns, "again": again}, actor, key))

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
        """End the asking."""
        end = {"accept": accept, "overrule": overrule, "context": context, "reason": reason}
        return receipt_of(self._post("close", end, actor, key))

    def best(
        self, *, certainty: float | None = None, rounds: bool = False, context: Context = None
    ) -> Best:
        """The recommendation from the results so far."""
        found = self._get(
            "best", certainty=certainty, rounds=str(rounds).lower(), context=_json(context)
        )
        return _best(found)

    def tradeoff(self, *, context: Context = None) -> Tradeoff:
        """The largest effect that can be had at every chance of staying within all limits."""
        found = self._get("tradeoff", context=_json(context))
        trades = [_trade(each) for each in found["trades"]]
        return Tradeoff(tuple(trades), _card(found))

    def explain(
        self, *, certainty: float | None = None, top: int = 8, context: Context = None
    ) -> Explanation:
        """Every candidate."""
        found = self._get("explain", certainty=certainty, top=top, context=_json(context))
        rows = tuple(
            Row(
                row["candidate"],
                row["action"],
                {name: Effect(**effect) for name, effect in row["effects"].items()},
                row["probability"],
            )
            for row in found["rows"]
        )
        return Explanation(rows, _card(found))

    def show(self) -> Card:
        """Where the study stands."""
        return _card(self._get(""))

    def verify(self, *, asks: bool = False, known: str | None = None) -> Card:
        """Whether the record is whole."""
        return _card(self._get("verify", asks=str(asks).lower(), known=known))

    def history(self, after: int = 0, limit: int | None = None) -> Events:
        """The record, oldest first."""
        found: Events = []
        while limit is None or len(found) < limit:
            most = PAGE if limit is None else min(PAGE, limit - len(found))
            page = self._get("history", after=after, limit=most)
            found += [event_from_json(line) for line in page["events"]]
            if page["next"] is None:
                break
            after = page["next"]
        return found

    def export(self, path: Any = None) -> Iterator[str]:
        """The whole record as lines; written to a file where one is named."""
        text = self._wire.send("GET", f"{self._path}/export").body.decode()
        lines = text.removesuffix("\n").split("\n")  # not splitlines: a reason may hold U+2028
        if path is not None:
            write_lines(path, lines)
        return iter(lines)

    def _get(self, path: str, **query: Any) -> Any:
        told = {name: value for name, value in query.items() if value is not None}
        address = f"{self._path}/{path}" if path else self._path
        return self._wire.send("GET", f"{address}?{urlencode(told)}" if told else address).json()

    def _post(self, path: str, body: Mapping[str, Any], actor: str | None, key: str | None) -> Card:
        told = {name: value for name, value in body.items() if value is not None}
        content = encoded({**told, "actor": actor or self.actor})
        answer = self._wire.send(
            "POST", f"{self._path}/{path}", body=content, key=key or uuid4().hex
        )
        return _card(answer.json())

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, {self._wire.url!r})"


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _number(ticket: int | Ticket) -> int:
    return ticket.id if isinstance(ticket, Ticket) else ticket


def _checked(value: Any, measured: str | None, parts: Mapping[str, Any]) -> Any:
    """A result that can be sent, or one for every outcome of a panel; the server checks the rest."""
    report_of(value, **parts)
    if value is None and any(part is not None for part in parts.values()):
        return None
    if not isinstance(value, Mapping):
        return checked_number(measured or "the value", value)
    if measured is not None or not value:
        raise InputError(f"a panel must be told as outcome: value, got {shown(value)}")
    return {
        name: each if isinstance(each, Mapping) else checked_number(str(name), each)
        for name, each in value.items()
    }


def _why(reason: str) -> str:
    check_words("reason", reason, LONGEST_REASON)
    return reason


def _cell(value: Any) -> Any:
    """A cell of a table; missing values of any kind are None."""
    missing = isinstance(value, float) and math.isnan(value)
    return None if missing or value == "" else value


def _json(value: Context) -> str | None:
    return None if value is None else json.dumps(value)


def _card(found: Mapping[str, Any]) -> Card:
    data = {name: value for name, value in found.items() if name != "card"}
    return card_from_json(found["card"], data)


def _trade(found: Mapping[str, Any]) -> Trade:
    return Trade(**{**found, "effect": Effect(**found["effect"])})


def _leader(found: Mapping[str, Any]) -> Leader:
    effects = {name: Effect(**effect) for name, effect in found["effects"].items()}
    return Leader(found["candidate"], found["action"], effects, found["chance"])


def _best(found: Mapping[str, Any]) -> Best:
    clean, loss, left = found["clean"], found["loss"], found["rounds_left"]
    return Best(
        action=found["action"],
        candidate=found["candidate"],
        effects={name: Effect(**effect) for name, effect in found["effects"].items()},
        clean=None if clean is None else Effect(**clean),
        within=found["within"],
        chance=found["chance"],
        probability=found["probability"],
        contenders=tuple(Contender(**each) for each in found["contenders"]),
        loss=None if loss is None else Loss(**loss),
        enough=found["enough"],
        rounds_left=None if left is None else (left[0], left[1]),
        unsettled=tuple(Narrowing(**each) for each in found["unsettled"]),
        settles=None if found["settles"] is None else Settling(**found["settles"]),
        counts=dict(found["counts"]),
        trades=tuple(map(_trade, found["trades"])),
        tried=found["tried"],
        needed=found["needed"],
        certainty=found["certainty"],
        better=found["better"],
        straight=found["straight"],
        leader=None if found["leader"] is None else _leader(found["leader"]),
        unmeasured=tuple(found["unmeasured"]),
        unfirm=tuple(found["unfirm"]),
        bends=tuple(Bend(**each) for each in found["bends"]),
        surprises=tuple(Surprise(**each) for each in found["surprises"]),
        trust=None if found["trust"] is None else Trust(**found["trust"]),
        unexpected=tuple(Unexpected(**each) for each in found["unexpected"]),
        inside=(found["inside"][0], found["inside"][1]),
        news=found["news"],
        unseen=tuple(Unseen(**each) for each in found["unseen"]),
        card=_card(found),
    )
