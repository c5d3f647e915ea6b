"""Group commit: waiting entries are saved together, and every caller gets the true result."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from clinic import clinic
from sidestep.errors import AlreadyAnswered, InputError, KeyReused, StorageFull, TicketNotFound
from sidestep.studies.storage.groups import PASSED, Groups
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.study import Study


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
        return
    where = tmp_path / "study.db"
    if request.param == "postgresql":
        where = request.getfixturevalue("postgres").emptied()
    opened = SqlStore.open(where, patience=5.0)
    yield opened
    opened.close()


@pytest.fixture
def held():
    """Groups whose first caller holds up the others until it is let go."""

    class Held:
        def __init__(self):
            self.sizes = []
            self.groups = Groups(watch=self.sizes.append)
            self.gate, self.reached = threading.Event(), threading.Event()

        def hold(self, store, name):
            def act(log):
                self.reached.set()
                self.gate.wait(10)

            self.first = threading.Thread(target=self.groups.write, args=(store, name, act))
            self.first.start()
            self.reached.wait(10)

        def together(self, calls):
            """Run calls so that all of them wait for the same commit."""
            with ThreadPoolExecutor(len(calls)) as pool:
                futures = [pool.submit(call) for call in calls]
                line = next(iter(self.groups._lines.values()))
                while len(line.results) + len(line.questions) < len(calls):
                    pass
                self.gate.set()
            return futures

    made = Held()
    yield made
    made.gate.set()
    made.groups.close()


def append(key, **more):
    return lambda log: log.append("asked", body={}, actor="ada", key=key, **more)


def test_what_waits_together_is_saved_in_one_transaction(store, held):
    store.create("s", {}, actor="ada", body={})
    held.hold(store, "s")
    calls = [lambda n=n: held.groups.write(store, "s", append(f"k{n}")) for n in range(8)]
    events = [future.result() for future in held.together(calls)]
    assert sorted(event.seq for event in events) == list(range(2, 10))
    held.groups.close()
    assert held.sizes == [1, 8]
    assert store.head("s").seq == 9


def test_a_refused_entry_affects_only_its_own_caller(store, held):
    study = clinic(store)
    shared = Study.open("bp", store, writer=held.groups.write)
    ticket = study.ask()
    held.hold(store, "bp")
    calls = [
        lambda: shared.tell(ticket.id, 140.0),
        lambda: shared.tell(999, 140.0),
        lambda: shared.withdraw(ticket.id, reason=""),
    ]
    told, unknown, _ = held.together(calls)
    assert told.result().repeated is False
    with pytest.raises(TicketNotFound):
        unknown.result()
    assert study.history()[-1].body["value"] == 140.0


def test_a_spoilt_transaction_is_taken_apart_and_the_others_are_saved(store, held):
    store.create("s", {}, actor="ada", body={})
    store_first = held.groups.write(store, "s", append("used"))
    held.hold(store, "s")
    calls = [
        lambda key=key: held.groups.write(store, "s", append(key)) for key in ("a", "used", "b")
    ]
    first, second, third = held.together(calls)
    assert {first.result().key, third.result().key} == {"a", "b"}
    with pytest.raises(KeyReused):
        second.result()
    assert next(event.key for event in store.events("s", after=1)) == store_first.key
    assert store.head("s").seq == 4


def test_of_conflicting_answers_in_one_transaction_one_is_acknowledged(store, held):
    study = clinic(store)
    shared = Study.open("bp", store, writer=held.groups.write)
    ticket = study.ask()
    held.hold(store, "bp")
    futures = held.together([lambda n=n: shared.tell(ticket.id, 130.0 + n) for n in range(6)])
    failed = [future.exception() for future in futures]
    assert failed.count(None) == 1
    assert all(isinstance(error, AlreadyAnswered) for error in failed if error)
    answers = [event for event in study.history() if event.kind == "answered"]
    assert answers[0].body["value"] == 130.0 + failed.index(None)


def test_where_the_commit_fails_nobody_is_acknowledged(store, held, monkeypatch):
    study = clinic(store)
    shared = Study.open("bp", store, writer=held.groups.write)
    before = store.head("bp").seq
    held.hold(store, "bp")

    def full(log):
        raise StorageFull("disk full")

    calls = [
        lambda: shared.ask(actor="a"),
        lambda: held.groups.write(store, "bp", full),
    ]
    assert all(isinstance(f.exception(), StorageFull) for f in held.together(calls))
    assert store.head("bp").seq == before
    assert shared.ask(actor="b").id == study.ask(actor="b").id == before + 1
    assert shared.ask(actor="a").round == 2


def test_questions_of_one_transaction_know_of_each_other(store, held):
    clinic(store)
    people = [Study.open("bp", store, writer=held.groups.write) for _ in range(4)]
    held.hold(store, "bp")
    calls = [lambda n=n, it=it: it.ask(actor=f"person {n}") for n, it in enumerate(people)]
    asked = held.together(calls)
    tickets = sorted((future.result() for future in asked), key=lambda ticket: ticket.id)
    assert [ticket.round for ticket in tickets] == [1, 2, 3, 4]
    alone = clinic(MemoryStore())
    assert [alone.ask(actor=f"x{n}").action for n in range(4)] == [t.action for t in tickets]


def test_many_waiting_entries_are_saved_in_groups_and_none_is_left(store, held):
    store.create("s", {}, actor="ada", body={})
    held.groups._most = 3
    held.hold(store, "s")
    calls = [lambda n=n: held.groups.write(store, "s", append(f"k{n}")) for n in range(7)]
    assert {future.result().key for future in held.together(calls)} == {f"k{n}" for n in range(7)}
    held.groups.close()
    assert held.sizes == [1, 3, 3, 1]
    assert not held.groups._lines


def test_results_are_saved_first_and_questions_two_at_a_time(store, held):
    store.create("s", {}, actor="ada", body={})
    held.hold(store, "s")
    calls = [
        lambda n=n: held.groups.write(store, "s", append(f"k{n}"), decides=n < 5) for n in range(8)
    ]
    seqs = [future.result().seq for future in held.together(calls)]
    held.groups.close()
    assert held.sizes == [1, 3, 2, 2, 1]
    assert max(seqs[5:]) < min(seqs[:5])


def test_a_stream_of_results_does_not_keep_a_question_waiting_for_ever(store, held):
    store.create("s", {}, actor="ada", body={})
    held.groups._most = 1
    held.hold(store, "s")
    calls = [
        lambda n=n: held.groups.write(store, "s", append(f"k{n}"), decides=n == 0)
        for n in range(PASSED + 5)
    ]
    question = held.together(calls)[0].result()
    assert question.seq == 1 + PASSED + 1


def test_closing_waits_for_what_was_handed_in(store, held):
    store.create("s", {}, actor="ada", body={})
    held.hold(store, "s")
    later = threading.Timer(0.2, held.gate.set)
    later.start()
    held.groups.close()
    assert held.gate.is_set()
    assert held.sizes == [1]


@pytest.mark.full
def test_many_threads_lose_nothing(store):
    clinic(store)
    groups = Groups()
    shared = Study.open("bp", store, writer=groups.write)

    def work(number):
        for _ in range(5):
            ticket = shared.ask(actor=f"person {number}")
            shared.tell(ticket.id, 140.0 + number, measured="systolic pressure")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    groups.close()
    events = store.events("bp")
    assert [event.seq for event in events] == list(range(1, 82))
    assert sum(event.kind == "answered" for event in events) == 40
    assert shared.verify().data["holds"]


def test_bad_input_never_reaches_the_writer(store):
    clinic(store)
    shared = Study.open("bp", store, writer=Groups().write)
    with pytest.raises(InputError):
        shared.ask(panel=99)
