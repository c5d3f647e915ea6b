"""Out and in again, bit for bit; nothing is kept of a file that was changed."""

import json
import time

import pytest
from workers import Worker

from sidestep.errors import ConflictError, InputError, RecordError, StudyExists
from sidestep.studies.storage.doctor import doctor
from sidestep.studies.storage.events import digest
from sidestep.studies.storage.exchange import export_study, import_study, write_lines
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.record import erase, verify
from sidestep.studies.storage.sql import SqlStore

FRAME = '{"dose":[1,2,3]}'


def filled(store):
    """A study with everything in it that an export must carry."""
    for text in (FRAME, "never mentioned"):
        store.put_blob(digest(text), text)
    store.create("pilot", {"candidates": digest(FRAME)}, actor="Zoë", body={}, key="create")
    with store.writing("pilot") as log:
        log.append("asked", body={"x": 0.1 + 0.2, "é": None}, actor="ada", key="ask")
        log.append("answered", ticket=2, outcome="s", body={"value": -0.0}, actor="lab")
        log.append("closed", body={}, actor="ada", reason="line\nbreak", status="closed")
    erase(store, "pilot", [3], actor="admin", reason="asked to")
    return store


@pytest.fixture
def lines():
    return list(export_study(filled(MemoryStore()), "pilot"))


def test_an_import_is_the_export_bit_for_bit(storage, tmp_path):
    first = filled(SqlStore.open(tmp_path / "first.db"))
    lines = list(export_study(first, "pilot"))
    second, third = SqlStore.open(storage), MemoryStore()
    import_study(second, (line + "\n" for line in lines))
    import_study(third, export_study(second, "pilot"))
    for store in (second, third):
        assert list(export_study(store, "pilot")) == lines
        assert store.events("pilot") == first.events("pilot")
        assert [event.seal for event in store.events("pilot")] == [
            event.seal for event in first.events("pilot")
        ]
        assert store.head("pilot") == first.head("pilot")
        assert verify(store, "pilot").holds
        assert store.blobs() == [digest(FRAME)]
    first.close()
    second.close()


def test_an_imported_study_goes_on(lines):
    store = MemoryStore()
    import_study(store, lines)
    with store.writing("pilot") as log:
        log.append("asked", body={}, actor="ada")
    assert verify(store, "pilot").events == 6


def test_the_head_comes_first_and_names_the_end_of_the_chain(lines):
    head, last = json.loads(lines[0]), json.loads(lines[-1])
    assert (head["name"], head["status"], head["seq"]) == ("pilot", "closed", 5)
    assert head["hash"] == last["hash"]
    assert all("\n" not in line for line in lines)


def test_importing_again_changes_nothing(lines):
    store = MemoryStore()
    assert import_study(store, lines) == import_study(store, lines)
    assert store.head("pilot").seq == 5


def test_another_study_of_that_name_is_left_alone(lines):
    store = MemoryStore()
    store.create("pilot", {}, actor="bob", body={})
    with pytest.raises(StudyExists, match="ends with event 1, the import with event 5"):
        import_study(store, lines)
    assert store.head("pilot").seq == 1
    assert issubclass(StudyExists, ConflictError)


def edited(line, **changes):
    return json.dumps({**json.loads(line), **changes})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ls: [], "line 1 of an export must be the head"),
        (lambda ls: ls[1:], "line 1 of an export must be the head"),
        (lambda ls: ["no json"], "line 1 of an export must be JSON"),
        (lambda ls: ["[1]"], "a JSON object"),
        (lambda ls: [edited(ls[0], version=3), *ls[1:]], "of version 1 or 2; a newer sidestep"),
        (lambda ls: [edited(ls[0], name="a/b"), *ls[1:]], "a study's name must"),
        (lambda ls: [edited(ls[0], name="another"), *ls[1:]], "of the name that its head says"),
        (lambda ls: [edited(ls[0], updated="noon"), *ls[1:]], "a time in UTC"),
        (lambda ls: [edited(ls[0], seq="5"), *ls[1:]], "a whole head"),
        (lambda ls: ls[:1], "an event, and the file to go on"),
        (lambda ls: ls[:-1], "end with event 5"),
        (lambda ls: [*ls[:3], *ls[4:]], "must be event 2, linked"),
        (lambda ls: [*ls[:3], ls[4], ls[3], *ls[5:]], "must be event 2, linked"),
        (lambda ls: [*ls, ls[-1]], "must be event 6, linked"),
        (lambda ls: [*ls[:3], edited(ls[3], body={"x": 1}), *ls[4:]], "it was changed since"),
        (lambda ls: [*ls[:3], edited(ls[3], actor="eve"), *ls[4:]], "it was changed since"),
        (lambda ls: [*ls[:3], edited(ls[3], more=1), *ls[4:]], "a whole event"),
        (lambda ls: [*ls[:3], edited(ls[3], key=7), *ls[4:]], "a text as key"),
        (lambda ls: [*ls[:3], ls[3].replace('"seq":2', '"seq":NaN'), *ls[4:]], "must be JSON"),
        (lambda ls: [ls[0], edited(ls[1], body="other"), *ls[2:]], "named by its SHA-256"),
        (lambda ls: [*ls[:2], *ls[3:]], "the event that created a study"),
    ],
)
def test_nothing_is_kept_of_a_file_that_was_changed(storage, lines, change, said):
    store = SqlStore.open(storage)
    with pytest.raises(InputError) as caught:
        import_study(store, change(lines))
    assert said in str(caught.value)
    assert store.names() == []
    store.close()


def export_and_wait(reports, storage, path):
    """An export that stops in the middle, to be killed there."""
    from sidestep.studies.storage import exchange  # noqa: PLC0415

    store = SqlStore.open(storage)

    def lines():
        yield from list(exchange.export_study(store, "pilot"))[:2]
        reports.send("half")
        time.sleep(600)

    exchange.write_lines(path, lines())


def test_a_killed_export_leaves_the_earlier_one_and_doctor_names_what_is_left(tmp_path):
    storage, path = tmp_path / "study.db", tmp_path / "pilot.jsonl"
    store = SqlStore.open(storage)
    store.create("pilot", {}, actor="ada", body={})
    write_lines(path, export_study(store, "pilot"))
    before = path.read_bytes()
    assert not [found for found in doctor(store) if found.what == "left over"]
    worker = Worker(export_and_wait, storage, path)
    worker.until("half")
    worker.kill()
    assert path.read_bytes() == before
    (left,) = [found for found in doctor(store) if found.what == "left over"]
    assert left.state == "warning"
    assert str(tmp_path / ".pilot.jsonl.") in left.sentence
    write_lines(path, export_study(store, "pilot"))
    assert path.read_bytes() == before
    store.close()


def test_an_export_that_fails_leaves_the_earlier_one(tmp_path):
    path = tmp_path / "pilot.jsonl"
    write_lines(path, ["one"])

    def lines():
        yield "two"
        raise RecordError("it cannot be read")

    with pytest.raises(RecordError):
        write_lines(path, lines())
    assert [it.name for it in tmp_path.iterdir()] == ["pilot.jsonl"]
    assert path.read_text() == "one\n"
