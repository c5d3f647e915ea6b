"""A study as a text file: a JSON line for its head, one for every blob, one for every event.

An import restores the export bit for bit: it includes the chain, which is checked during the import.
Nothing is stored if a line is missing or was changed.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from errno import ENOSPC
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from sidestep.errors import InputError, RecordError, StorageFull, StudyExists, StudyNotFound
from sidestep.studies.measurement import is_new
from sidestep.studies.storage.events import (
    ERASED,
    GENESIS,
    Body,
    Entry,
    Event,
    Seal,
    canonical,
    hash_of,
    words_hold,
    written,
)
from sidestep.studies.storage.log import Head
from sidestep.studies.storage.record import Flaw, pages
from sidestep.studies.storage.store import Store, check_name

DRAFT = ".part"  # how the name of an export ends until it is whole
FORMAT, VERSION = "sidestep study", 2
PLAIN = 1  # the version of an export whose results are all values: version 0.2 reads no other

_DIGEST = re.compile(r'"([0-9a-f]{64})"')
_HEAD_KEYS = {"format", "version", "name", "status", "seq", "hash", "updated"}
_EVENT_KEYS = {"seq", "kind", "ticket", "key", "outcome", "body", "at", "code", "prev_hash", "hash"}
_EVENT_KEYS |= {"actor", "actor_salt", "actor_digest", "reason", "reason_salt", "reason_digest"}

Numbered = Iterator[tuple[int, Body]]


def export_study(store: Store, name: str) -> Iterator[str]:
    """The lines of a study, without line breaks; RecordError if a row cannot be read."""
    head = store.head(name)
    new = head.config.get("version", 1) != 1 or any(
        is_new(each.body) for each in _events(store, head)
    )
    yield canonical(_head_line(head, new=new))
    known = set(store.blobs())
    named = {
        found
        for event in _events(store, head)
        if known
        for found in _DIGEST.findall(event.seal.text)
    }
    for digest in sorted(known & named):
        yield canonical({"blob": digest, "body": store.blob(digest)})
    for event in _events(store, head):
        yield canonical(event_to_json(event))


def write_lines(path: Any, lines: Iterable[str]) -> None:
    """The lines in a file: whole, or as it was before."""
    target = Path(path).expanduser().resolve()
    try:
        if target.exists() and not target.is_file():  # a terminal, a pipe
            target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        else:
            _replace(target, lines)
    except OSError as error:
        if error.errno == ENOSPC:
            raise StorageFull(f"disk full: {path} was not written; it is as it was") from error
        raise InputError(
            f"the export must go to a file that can be written, got {path} ({error.strerror})"
        ) from error


def _replace(target: Path, lines: Iterable[str]) -> None:
    """Write a draft beside the file, flush it, and give it the name."""
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    draft = target.with_name(f".{target.name}.{os.getpid()}{DRAFT}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.writelines(f"{line}\n".encode() for line in lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def import_study(store: Store, lines: Iterable[str]) -> Head:
    """Store the study that the lines contain, unchanged, all or nothing.

    If a study with the same head exists, nothing is done; another one of that name is StudyExists.
    """
    numbered = _parsed(lines)
    header = _header(numbered)
    if _is_there(store, header):
        return store.head(header["name"])
    first = _put_blobs(store, numbered)
    head = Head(
        header["name"],
        header["status"],
        _config(*first, header["name"]),
        header["seq"],
        header["hash"],
        datetime.fromisoformat(header["updated"]),
    )
    store.adopt(head, _chained(head, chain([first], numbered)))
    return head


def _events(store: Store, head: Head) -> Iterator[Event]:
    for event in pages(store, head.name, up_to=head.seq):
        if isinstance(event, Flaw):
            raise RecordError(event.sentence)
        yield event


def _head_line(head: Head, *, new: bool) -> Body:
    return {
        "format": FORMAT,
        "version": VERSION if new else PLAIN,
        "name": head.name,
        "status": head.status,
        "seq": head.seq,
        "hash": head.hash,
        "updated": written(head.updated),
    }


def event_to_json(event: Event) -> Body:
    """A complete event with its hashes and salts, as JSON."""
    seal = event.seal
    return {
        "seq": event.seq,
        "kind": event.kind,
        "ticket": event.ticket,
        "key": event.key,
        "outcome": event.outcome,
        "body": event.body,
        "at": written(event.at),
        "code": event.code,
        "actor": event.actor if seal.actor_salt else None,
        "actor_salt": seal.actor_salt,
        "actor_digest": seal.actor,
        "reason": event.reason if seal.reason_salt else None,
        "reason_salt": seal.reason_salt,
        "reason_digest": seal.reason,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
    }


def _parsed(lines: Iterable[str]) -> Numbered:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise _refusal(number, "JSON") from None
        if not isinstance(value, dict):
            raise _refusal(number, "a JSON object")
        yield number, value


def _header(lines: Numbered) -> Body:
    number, header = next(lines, (1, {}))
    if header.get("format") != FORMAT:
        raise _refusal(number, f"the head of an export ({FORMAT!r})")
    if header.get("version") not in (PLAIN, VERSION):
        raise _refusal(
            number, f"an export of version {PLAIN} or {VERSION}; a newer sidestep may read it"
        )
    texts = all(isinstance(header.get(key), str) for key in _HEAD_KEYS - {"version", "seq"})
    if set(header) != _HEAD_KEYS or not texts or type(header["seq"]) is not int:
        raise _refusal(number, "a whole head of an export")
    check_name(header["name"])
    _time(number, header["updated"])
    return header


def _is_there(store: Store, header: Body) -> bool:
    try:
        found = store.head(header["name"])
    except StudyNotFound:
        return False
    if found.hash == header["hash"]:
        return True
    raise StudyExists(
        f"there is a study {found.name!r} already, with another history: it ends with event"
        f" {found.seq}, the import with event {header['seq']}"
    )


def _put_blobs(store: Store, lines: Numbered) -> tuple[int, Body]:
    """Store the blobs; returns the first line that is not a blob."""
    for number, line in lines:
        if set(line) != {"blob", "body"}:
            return number, line
        if not isinstance(line["body"], str):
            raise _refusal(number, "a blob of text")
        store.put_blob(line["blob"], line["body"])
    raise _refusal(2, "an event, and the file to go on")


def _config(number: int, line: Body, name: str) -> Body:
    """The configuration of the study in event 1, which must name the study too."""
    body = line.get("body")
    config = body.get("config") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(config, dict) or body.get("name") != name:
        raise _refusal(number, "the event that created a study, of the name that its head says")
    return config


def _chained(head: Head, lines: Numbered) -> Iterator[Event]:
    """The events, each checked against the one before it, the last one against the head."""
    seq, hash_ = 0, GENESIS
    for number, line in lines:
        event = event_from_json(line, number)
        if (event.seq, event.prev_hash) != (seq + 1, hash_):
            raise _refusal(number, f"event {seq + 1}, linked to the event before it")
        if event.hash != hash_of(event) or not words_hold(event):
            raise _refusal(number, f"event {event.seq} as it was written; it was changed since")
        seq, hash_ = event.seq, event.hash
        yield event
    if (seq, hash_) != (head.seq, head.hash):
        raise _refusal(
            seq + 1, f"the record to end with event {head.seq}, whose hash its head names"
        )


def event_from_json(line: Body, number: int = 1) -> Event:
    """The event that was written as JSON, as line `number` of an export."""
    whole = set(line) == _EVENT_KEYS and type(line["seq"]) is int
    if not whole or not isinstance(line["body"], dict):
        raise _refusal(number, "a whole event")
    for key in _EVENT_KEYS - {"seq", "ticket", "body"}:
        if not isinstance(line[key], str | None):
            raise _refusal(number, f"a text as {key}")
    actor = ERASED if line["actor"] is None else line["actor"]
    erased = line["reason"] is None and line["reason_digest"] is not None
    reason = ERASED if erased else line["reason"]
    Entry(line["kind"], line["body"], actor, line["ticket"], line["outcome"], line["key"], reason)
    seal = Seal(
        canonical(line["body"]),
        line["actor_digest"],
        line["actor_salt"],
        line["reason_digest"],
        line["reason_salt"],
    )
    return Event(
        line["seq"],
        line["kind"],
        line["ticket"],
        line["key"],
        line["outcome"],
        line["body"],
        actor,
        reason,
        _time(number, line["at"]),
        line["code"],
        line["prev_hash"],
        line["hash"],
        seal,
    )


def _time(number: int, text: Any) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        if written(time) == text:
            return time
    except (TypeError, ValueError):
        pass
    raise _refusal(number, "a time in UTC")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _refusal(number: int, expected: str) -> InputError:
    return InputError(
        f"line {number} of an export must be {expected}, got something else; nothing was imported"
    )
