"""What every store promises: one suite for memory, SQLite and PostgreSQL."""

import math
import threading
from datetime import UTC, datetime, timedelta

import pytest

from sidestep.errors import (
    AlreadyAnswered,
    InputError,
    KeyReused,
    SidestepError,
    StudyExists,
    StudyNotFound,
)
from sidestep.studies.storage.events import ERASED, GENESIS, digest, hash_of, words_hold
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import (
    CLOSED,
    OPEN,
    SNAPSHOTS_KEPT,
    Snapshot,
    Store,
    open_store,
    write,
)


class Clock:
    """A clock that tests can set forward and back."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, tmp_path, clock):
    if request.param == "memory":
        opened: Store = MemoryStore(clock)
    elif request.param == "sqlite":
        opened = SqlStore.open(tmp_path / "study.db", clock=clock, patience=5.0)
    else:
        url = request.getfixturevalue("postgres").emptied()
        opened = SqlStore.open(url, clock=clock, patience=5.0)
    yield opened
    opened.close()


@pytest.fixture
def study(store):
    store.create("pilot", {"aim": "within"}, actor="ada", body={"seed": 7})
    return "pilot"


def ask(store, study, actor="ada", **more):
    with store.writing(study) as log:
        return log.append("asked", body={"give": 40.0}, actor=actor, **more)


def tell(store, study, ticket, value, **more):
    with store.writing(study) as log:
        body, outcome = {"value": value}, more.pop("outcome", "sodium")
        return log.append(
            "answered", ticket=ticket, outcome=outcome, body=body, actor="lab", **more
        )


def test_every_store_satisfies_the_protocol(store):
    assert isinstance(store, Store)


def test_the_first_event_says_what_the_study_rests_on(store, study):
    (first,) = store.events(study)
    assert (first.seq, first.kind, first.prev_hash, first.actor) == (1, "created", GENESIS, "ada")
    assert first.body == {"seed": 7, "name": "pilot", "config": {"aim": "within"}}
    head = store.head(study)
    assert (head.name, head.status, head.config) == ("pilot", OPEN, {"aim": "within"})
    assert (head.seq, head.hash, head.updated) == (1, first.hash, first.at)


def test_a_study_name_can_be_used_only_once(store, study):
    with pytest.raises(StudyExists, match="there is a study 'pilot' already"):
        store.create(study, {}, actor="bob", body={})
    assert store.head(study).config == {"aim": "within"}


def test_creating_again_with_the_same_key_is_the_same_event(store):
    first = store.create("pilot", {"a": 1}, actor="ada", body={}, key="k1")
    assert store.create("pilot", {"a": 1}, actor="ada", body={}, key="k1") == first
    with pytest.raises(StudyExists):
        store.create("pilot", {"a": 1}, actor="ada", body={}, key="k2")
    with pytest.raises(KeyReused):
        store.create("pilot", {"a": 2}, actor="ada", body={}, key="k1")
    assert len(store.events("pilot")) == 1


@pytest.mark.parametrize(
    "name", ["", " pilot", "a/b", "a\nb", "x" * 101, "a\0b", 7, "a\u202eb", "..", "*"]
)
def test_a_problematic_study_name_is_refused(store, name, refusal):
    assert "a study's name must" in refusal(store.create, name, {}, actor="ada", body={})
    assert store.names() == []


def test_an_unknown_study_is_not_found_anywhere(store, study):
    calls = [store.head, store.events, lambda name: store.about(name, 1)]
    calls.append(lambda name: store.snapshot(name, "p"))
    calls += [lambda name: store.find(name, "k"), lambda name: store.writing(name).__enter__()]
    calls.append(lambda name: store.put_snapshot(name, Snapshot(1, "", "", "")))
    for call in calls:
        with pytest.raises(StudyNotFound, match=r"no study 'pilto'; did you mean 'pilot'\?"):
            call("pilto")


def test_events_are_numbered_without_a_gap_and_chained(store, study):
    for _ in range(3):
        ticket = ask(store, study).seq
        tell(store, study, ticket, 1.5)
    events = store.events(study)
    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert [event.prev_hash for event in events] == [GENESIS, *(e.hash for e in events[:-1])]
    assert all(event.hash == hash_of(event) and words_hold(event) for event in events)
    assert store.head(study)[3:5] == (7, events[-1].hash)


def test_what_append_returns_is_what_is_read(store, study):
    with store.writing(study) as log:
        given = log.append(
            "overruled",
            body={"é": [1, 2.5, None, True, "\u0000"], "b": {"z": -0.0, "a": 1e-300}},
            actor="Zoë 🧪",
            reason="the patient's wish\nand ours",
            key="k",
            outcome="sodium",
            ticket=1,
        )
    (read,) = store.events(study, after=1)
    assert read == given
    assert read.seal == given.seal
    assert math.copysign(1, read.body["b"]["z"]) == -1


def test_an_ask_is_its_own_ticket_and_everything_about_it_is_found(store, study):
    first, second = ask(store, study), ask(store, study)
    answer = tell(store, study, first.seq, 138.0)
    assert first.ticket == first.seq
    assert store.about(study, first.seq) == [first, answer]
    assert store.about(study, second.seq) == [second]
    assert store.about(study, 99) == []


def test_events_come_in_pages(store, study):
    for _ in range(5):
        ask(store, study)
    assert [event.seq for event in store.events(study, after=2, limit=3)] == [3, 4, 5]
    assert store.events(study, after=6) == []
    assert store.events(study, limit=0) == []


def test_a_key_finds_its_event_and_is_never_used_twice(store, study):
    asked = ask(store, study, key="req-1")
    assert store.find(study, "req-1") == asked
    assert store.find(study, "req-2") is None
    with pytest.raises(KeyReused, match="req-1"):
        ask(store, study, key="req-1")
    assert store.head(study).seq == asked.seq


def test_keys_are_of_one_study(store, study):
    store.create("other", {}, actor="ada", body={})
    assert ask(store, study, key="k").seq == ask(store, "other", key="k").seq == 2


@pytest.mark.parametrize("outcome", ["sodium", None])
def test_a_ticket_is_settled_once_for_every_outcome(store, study, outcome):
    ticket = ask(store, study).seq
    tell(store, study, ticket, 138.0, outcome=outcome)
    with pytest.raises(AlreadyAnswered, match=f"ticket {ticket} was already answered"):
        tell(store, study, ticket, 136.0, outcome=outcome)
    with pytest.raises(AlreadyAnswered), store.writing(study) as log:
        log.append("withdrawn", ticket=ticket, outcome=outcome, body={}, actor="ada")
    tell(store, study, ticket, 4.2, outcome="potassium")
    assert [event.kind for event in store.about(study, ticket)] == ["asked", "answered", "answered"]


def test_a_correction_may_come_any_number_of_times(store, study):
    ticket = ask(store, study).seq
    tell(store, study, ticket, 138.0)
    for value in (137.0, 136.0):
        with store.writing(study) as log:
            body = {"was": 138.0, "is": value}
            log.append(
                "corrected", ticket=ticket, outcome="sodium", body=body, actor="ada", reason="typo"
            )
    assert [event.kind for event in store.about(study, ticket)][2:] == ["corrected", "corrected"]


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, {1, 2}, b"x", object(), "\ud800", 10**5000],
    ids=["nan", "inf", "-inf", "set", "bytes", "object", "surrogate", "10^5000"],
)
def test_what_json_cannot_say_is_refused_and_nothing_is_written(store, study, value, refusal):
    message = refusal(tell, store, study, ask(store, study).seq, value)
    assert "a body must be plain JSON" in message
    assert store.head(study).seq == 2
    assert tell(store, study, 2, 138.0).seq == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "deleted"},
        {"actor": ""},
        {"actor": "a\0b"},
        {"actor": None},
        {"key": ""},
        {"key": "k" * 201},
        {"reason": " "},
        {"outcome": ""},
    ],
    ids=str,
)
def test_an_unreadable_entry_is_refused(store, study, bad, refusal):
    def act():
        entry = {"kind": "asked", "body": {}, "actor": "ada", **bad}
        with store.writing(study) as log:
            log.append(entry.pop("kind"), **entry)

    refusal(act)
    assert store.head(study).seq == 1


def test_a_block_that_raises_saves_nothing(store, study):
    def act():
        with store.writing(study) as log:
            log.append("asked", body={}, actor="ada", key="k")
            log.append("asked", body={}, actor="ada", status=CLOSED)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        act()
    assert store.head(study)[1:5:2] == (OPEN, 1)
    assert len(store.events(study)) == 1
    assert store.find(study, "k") is None
    assert ask(store, study, key="k").seq == 2


def test_a_refused_append_spoils_its_block_even_where_the_block_goes_on(store, study):
    ask(store, study, key="k")

    def act():
        with store.writing(study) as log:
            log.append("asked", body={}, actor="ada")
            with pytest.raises(KeyReused):
                log.append("asked", body={}, actor="ada", key="k")

    with pytest.raises(KeyReused):
        act()
    assert store.head(study).seq == 2


def test_a_block_sees_what_it_appended_and_nobody_else_does(store, study):
    with store.writing(study) as log:
        first = log.append("asked", body={}, actor="ada", key="k")
        second = log.append("accepted", ticket=2, body={}, actor="ada")
        assert log.find("k") == first
        assert log.about(2) == [first, second]
        assert log.events(after=1) == [first, second]
        assert log.events(after=1, limit=1) == [first]
        assert (log.head.seq, log.head.hash) == (3, second.hash)
        assert store.head(study).seq == 1
        assert len(store.events(study)) == 1
    assert store.events(study, after=1) == [first, second]


def test_a_status_changes_with_the_event_that_says_so(store, study):
    with store.writing(study) as log:
        log.append("closed", body={}, actor="ada", status=CLOSED)
    assert store.head(study).status == CLOSED
    ask(store, study)
    assert store.head(study).status == CLOSED


def test_the_order_of_events_does_not_depend_on_the_clock(store, study, clock):
    clock.now += timedelta(hours=1)
    late = ask(store, study)
    clock.now -= timedelta(hours=2)
    early = tell(store, study, late.seq, 1.0)
    assert early.at < late.at
    assert [event.seq for event in store.events(study)] == [1, 2, 3]
    assert store.events(study)[-1].at == early.at


def test_studies_are_listed_latest_change_first_and_in_pages(store):
    for name in "abcde":
        store.create(name, {}, actor="ada", body={})
    ask(store, "b")
    with store.writing("d") as log:
        log.append("closed", body={}, actor="ada", status=CLOSED)
    assert store.names() == list("abcde")
    assert [head.name for head in store.list()] == list("dbeca")
    assert [head.name for head in store.list(status=OPEN)] == list("beca")
    page = store.list(limit=2)
    assert [head.name for head in page] == ["d", "b"]
    assert [head.name for head in store.list(after=page[-1], limit=2)] == ["e", "c"]
    assert store.list(after=store.list()[-1]) == []
    assert store.list(status="unknown") == []


def test_a_blob_is_kept_once_under_its_digest(store, refusal):
    body = '["é"]' * 1000
    store.put_blob(digest(body), body)
    store.put_blob(digest(body), body)
    assert store.blob(digest(body)) == body
    assert store.blob("0" * 64) is None
    refusal(store.put_blob, "0" * 64, body)


def snap(store, study, state="{}", policy="p", seq=None):
    head = store.head(study)
    seq = head.seq if seq is None else seq
    at = store.events(study, after=seq - 1, limit=1)[0]
    return Snapshot(at.seq, at.hash, policy, state)


def test_the_latest_snapshot_that_fits_is_found(store, study):
    assert store.snapshot(study, "p") is None
    for number in range(3):
        ask(store, study)
        assert store.put_snapshot(study, snap(store, study, f"{number}"))
    assert store.snapshot(study, "p") == snap(store, study, "2")
    assert store.snapshot(study, "another policy") is None
    assert store.put_snapshot(study, snap(store, study, "new", policy="q"))
    assert store.snapshot(study, "q").state == "new"
    assert store.snapshot(study, "p").state == "1"


def test_only_the_newest_snapshots_are_kept(store, study):
    for _ in range(SNAPSHOTS_KEPT + 3):
        ask(store, study)
        store.put_snapshot(study, snap(store, study))
    found = 0
    while snapshot := store.snapshot(study, "p"):
        found += 1
        with store.writing(study) as log:
            log.drop_snapshots(snapshot.seq)
    assert found == SNAPSHOTS_KEPT


def test_a_snapshot_of_another_history_is_not_kept(store, study):
    ask(store, study)
    fitting = snap(store, study)
    assert not store.put_snapshot(study, fitting._replace(hash="0" * 64))
    assert not store.put_snapshot(study, fitting._replace(seq=9))
    assert store.snapshot(study, "p") is None


def test_a_snapshot_is_refused_once_an_earlier_answer_has_changed(store, study):
    ticket = ask(store, study).seq
    tell(store, study, ticket, 1.0)
    stale = snap(store, study)
    assert store.put_snapshot(study, stale)
    with store.writing(study) as log:
        body = {"was": 1.0, "is": 2.0}
        log.append("corrected", ticket=ticket, outcome="sodium", body=body, actor="ada")
        log.drop_snapshots(since=3)
    assert store.snapshot(study, "p") is None
    assert not store.put_snapshot(study, stale)
    assert store.put_snapshot(study, snap(store, study))


def test_a_study_is_adopted_as_it_was_written_elsewhere(store, study):
    asked = ask(store, study, key="k")
    elsewhere = MemoryStore()
    elsewhere.adopt(store.head(study), store.events(study))
    assert elsewhere.head(study) == store.head(study)
    assert elsewhere.events(study) == store.events(study)
    with pytest.raises(StudyExists):
        elsewhere.adopt(store.head(study), store.events(study))
    store.adopt(store.head(study)._replace(name="copy"), elsewhere.events(study))
    assert store.events("copy") == store.events(study)
    assert store.find("copy", "k") == asked


def test_words_can_be_blanked_and_the_chain_holds(store, study):
    with store.writing(study) as log:
        log.append("accepted", body={}, actor="Grace", reason="told me on the phone")
    before = store.events(study)[1]
    with store.writing(study) as log:
        log.blank(2)
        log.append("erased", body={"events": [2]}, actor="admin")
    after = store.events(study)[1]
    assert (after.actor, after.reason) == (ERASED, ERASED)
    assert after.seal.actor_salt is None
    assert after.hash == before.hash == hash_of(after)
    assert words_hold(after)
    assert not any("Grace" in repr((event, event.seal)) for event in store.events(study))


def test_threads_take_turns_and_lose_nothing(store, study):
    threads, each, failed = 4, 10, []

    def work(number):
        try:
            for step in range(each):
                ask(store, study, actor=f"thread {number}", key=f"{number}/{step}")
        except SidestepError as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    events = store.events(study)
    assert [event.seq for event in events] == list(range(1, threads * each + 2))
    assert len({event.key for event in events[1:]}) == threads * each


def test_write_returns_what_its_act_returns(store, study):
    def act(log):
        return log.find("k") or log.append("asked", body={}, actor="ada", key="k")

    assert write(store, study, act) == write(store, study, act)
    assert store.head(study).seq == 2


def test_a_store_is_opened_as_itself(store):
    assert open_store(store) is store


def test_where_nothing_is_named_the_environment_decides(monkeypatch, tmp_path, refusal):
    monkeypatch.delenv("SIDESTEP_STORAGE", raising=False)
    assert "storage must be a path" in refusal(open_store)
    assert isinstance(open_store("memory:"), MemoryStore)
    monkeypatch.setenv("SIDESTEP_STORAGE", str(tmp_path / "env.db"))
    opened = open_store()
    opened.close()
    assert (tmp_path / "env.db").is_file()


def test_input_errors_of_stores_are_input_errors():
    assert issubclass(StudyNotFound, InputError)
