"""A, model: after any sequence of calls a store answers as a dictionary of lists would."""

import math
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from reference import Client

from sidestep.errors import AlreadyAnswered, InputError, KeyReused, StudyExists
from sidestep.studies.storage.exchange import export_study, import_study
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import Snapshot

NAMES = st.sampled_from(["one", "two"])
ACTORS = st.sampled_from(["ada", "bob"])
VALUES = st.sampled_from([0.0, 1.5])
PICK = st.integers(0, 5)

pytestmark = pytest.mark.full


class Ticket:
    """What a dictionary remembers of a ticket."""

    def __init__(self, seq: int, actor: str) -> None:
        self.seq, self.actor = seq, actor
        self.told: Any = None  # a value, or "withdrawn"
        self.corrected: list[float] = []


class Machine(RuleBasedStateMachine):
    """A store and a dictionary, side by side."""

    opened: ClassVar[Any] = None  # how to open the store; set by the test

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).opened(fresh=True)
        self.kinds: dict[str, list[str]] = {}
        self.tickets: dict[str, list[Ticket]] = {}
        self.snapshots: dict[str, dict[int, str]] = {}
        self.keys: set[tuple[str, str]] = set()

    @rule(name=NAMES)
    def create(self, name):
        if name in self.kinds:
            with pytest.raises(StudyExists):
                self.store.create(name, {}, actor="ada", body={})
            return
        self.store.create(name, {"of": name}, actor="ada", body={})
        self.kinds[name], self.tickets[name], self.snapshots[name] = ["created"], [], {}

    def chosen(self, pick):
        """A study that is there."""
        return sorted(self.kinds)[pick % len(self.kinds)]

    def ticket(self, name, pick):
        return self.tickets[name][pick % len(self.tickets[name])]

    @precondition(lambda self: self.kinds)
    @rule(pick=PICK, actor=ACTORS, new=st.booleans())
    def ask(self, pick, actor, new):
        name = self.chosen(pick)
        asked = Client(self.store, name, actor).ask(new=new)
        mine = [it for it in self.tickets[name] if it.actor == actor and it.told is None]
        if mine and not new:
            assert asked.seq == mine[0].seq
        else:
            assert asked.body["item"] == len(self.tickets[name])
            self.kinds[name].append("asked")
            self.tickets[name].append(Ticket(asked.seq, actor))

    @precondition(lambda self: any(self.tickets.values()))
    @rule(pick=PICK, which=PICK, value=VALUES)
    def tell(self, pick, which, value):
        name = self.chosen(pick)
        if not self.tickets[name]:
            return
        ticket, client = self.ticket(name, which), Client(self.store, name, "lab")
        if ticket.told in (None, value):
            assert client.tell(ticket.seq, value).body == {"value": value}
            if ticket.told is None:
                ticket.told = value
                self.kinds[name].append("answered")
        else:
            with pytest.raises(AlreadyAnswered):
                client.tell(ticket.seq, value)

    @precondition(lambda self: any(self.tickets.values()))
    @rule(pick=PICK, which=PICK, value=VALUES)
    def correct(self, pick, which, value):
        name = self.chosen(pick)
        if not self.tickets[name]:
            return
        ticket, client = self.ticket(name, which), Client(self.store, name, "ada")
        if ticket.told in (None, "withdrawn"):
            with pytest.raises(InputError):
                client.correct(ticket.seq, value, "why")
            return
        body = client.correct(ticket.seq, value, "why").body
        assert body == {"was": [ticket.told, *ticket.corrected][-1], "is": value}
        ticket.corrected.append(value)
        answered = next(e.seq for e in self.store.about(name, ticket.seq) if e.kind == "answered")
        kept = self.snapshots[name]
        self.snapshots[name] = {seq: state for seq, state in kept.items() if seq < answered}
        self.kinds[name].append("corrected")

    @precondition(lambda self: any(self.tickets.values()))
    @rule(pick=PICK, which=PICK)
    def withdraw(self, pick, which):
        name = self.chosen(pick)
        if not self.tickets[name]:
            return
        ticket, client = self.ticket(name, which), Client(self.store, name, "ada")
        if ticket.told is None:
            client.withdraw(ticket.seq, "missed")
            ticket.told = "withdrawn"
            self.kinds[name].append("withdrawn")
        else:
            with pytest.raises(AlreadyAnswered):
                client.withdraw(ticket.seq, "missed")

    @precondition(lambda self: self.kinds)
    @rule(pick=PICK, key=st.sampled_from(["k1", "k2"]))
    def use_a_key(self, pick, key):
        name = self.chosen(pick)
        if (name, key) in self.keys:
            with pytest.raises(KeyReused), self.store.writing(name) as log:
                log.append("accepted", body={}, actor="ada", key=key)
        else:
            with self.store.writing(name) as log:
                made = log.append("accepted", body={}, actor="ada", key=key)
            assert self.store.find(name, key) == made
            self.keys.add((name, key))
            self.kinds[name].append("accepted")

    @precondition(lambda self: self.kinds)
    @rule(pick=PICK)
    def give_up_half_way(self, pick):
        def act():
            with self.store.writing(self.chosen(pick)) as log:
                log.append("accepted", body={}, actor="ada")
                log.append("accepted", body={"value": math.nan}, actor="ada")

        with pytest.raises(InputError):
            act()

    @precondition(lambda self: self.kinds)
    @rule(pick=PICK, state=st.sampled_from(["1", "2"]))
    def take_a_snapshot(self, pick, state):
        name = self.chosen(pick)
        head = self.store.head(name)
        assert self.store.put_snapshot(name, Snapshot(head.seq, head.hash, "p", state))
        self.snapshots[name][head.seq] = state
        self.snapshots[name] = dict(sorted(self.snapshots[name].items())[-4:])

    @precondition(lambda self: self.kinds)
    @rule(pick=PICK)
    def carry_elsewhere(self, pick):
        name, other = self.chosen(pick), MemoryStore()
        lines = list(export_study(self.store, name))
        import_study(other, lines)
        assert list(export_study(other, name)) == lines

    @rule()
    def open_again(self):
        self.store = type(self).opened(fresh=False, old=self.store)

    @invariant()
    def the_record_is_what_was_done(self):
        assert self.store.names() == sorted(self.kinds)
        assert {head.name for head in self.store.list()} == set(self.kinds)
        for name, kinds in self.kinds.items():
            assert [event.kind for event in self.store.events(name)] == kinds
            assert self.store.head(name).seq == len(kinds)
            latest = self.store.snapshot(name, "p")
            kept = self.snapshots[name]
            assert (latest and latest.state) == (kept[max(kept)] if kept else None)

    def teardown(self):
        for name in self.kinds:
            assert verify(self.store, name).holds
        self.store.close()


def play(opened, examples):
    """Random stories on one kind of store."""

    class Here(Machine):
        pass

    Here.opened = opened
    bounds = settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(Here, settings=bounds)


def test_the_store_in_memory_behaves_like_a_dictionary():
    play(lambda fresh, old=None: MemoryStore() if fresh else old, 60)


def opener(address):
    """How a machine opens a database at an address that is made empty for every story."""
    kept = {}

    def opened(fresh, old=None):
        if fresh:
            kept["at"] = address()
        else:
            old.close()
        return SqlStore.open(kept["at"])

    return opened


def test_the_store_on_sqlite_behaves_like_a_dictionary(tmp_path):
    numbers = iter(range(10**6))
    play(opener(lambda: tmp_path / f"{next(numbers)}.db"), 12)


def test_the_store_on_postgresql_behaves_like_a_dictionary(postgres):
    play(opener(postgres.emptied), 8)


@pytest.mark.slow
def test_the_store_on_sqlite_behaves_like_a_dictionary_in_many_stories(tmp_path):
    numbers = iter(range(10**6))
    play(opener(lambda: tmp_path / f"{next(numbers)}.db"), 200)


@pytest.mark.slow
def test_the_store_on_postgresql_behaves_like_a_dictionary_in_many_stories(postgres):
    play(opener(postgres.emptied), 100)
