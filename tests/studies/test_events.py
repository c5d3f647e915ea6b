"""An event says what was written: one JSON text, one hash, words that can be blanked."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestep import __version__
from sidestep.errors import InputError
from sidestep.studies.storage.events import (
    ERASED,
    GENESIS,
    Entry,
    canonical,
    digest,
    hash_of,
    words_hold,
    written,
)

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("aé\0", max_size=3), inner),
    max_leaves=12,
)


@pytest.fixture
def event():
    entry = Entry("answered", {"value": 138.0}, "Grace", 5, "sodium", "key", "read twice")
    return entry.linked(7, "f" * 64, AT)


@pytest.mark.full
@settings(deadline=None)
@given(JSON)
def test_canonical_text_reads_back_as_what_was_written(value):
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text
    assert "\n" not in text


def test_the_order_of_keys_does_not_matter():
    assert canonical({"b": 1, "a": [1.5]}) == canonical({"a": [1.5], "b": 1}) == '{"a":[1.5],"b":1}'


def test_the_hash_is_worked_out_by_hand(event):
    seal = event.seal
    columns = [7, "answered", 5, "key", "sodium", seal.actor, seal.reason]
    columns += ["2026-03-01T12:30:00.000000+00:00", __version__]
    line = json.dumps(columns, separators=(",", ":"))
    assert event.hash == digest(f"{'f' * 64}\n{line}\n" + '{"value":138.0}')
    assert seal.actor == digest(seal.actor_salt + "Grace")


@pytest.mark.parametrize(
    "edit",
    [
        {"seq": 8},
        {"kind": "asked"},
        {"ticket": 6},
        {"ticket": None},
        {"key": None},
        {"outcome": "potassium"},
        {"at": AT + timedelta(microseconds=1)},
        {"code": "9.9.9"},
        {"prev_hash": "0" * 64},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_editing_any_column_is_detected(event, edit):
    assert hash_of(event) == event.hash
    assert hash_of(replace(event, **edit)) != event.hash


@pytest.mark.parametrize("field", ["text", "actor", "reason"])
def test_editing_sealed_text_is_detected(event, field):
    assert hash_of(replace(event, seal=event.seal._replace(**{field: "{}"}))) != event.hash


@pytest.mark.parametrize(
    "words", [{"actor": "Eve"}, {"reason": "other"}, {"reason": None}], ids=str
)
def test_editing_actor_or_reason_is_detected(event, words):
    assert words_hold(event)
    assert not words_hold(replace(event, **words))


def test_blanked_words_are_gone_and_the_hash_holds(event):
    blank = event.blanked()
    assert (blank.actor, blank.reason) == (ERASED, ERASED)
    assert hash_of(blank) == event.hash
    assert words_hold(blank)
    assert "Grace" not in repr((blank, blank.seal))
    assert not words_hold(replace(blank, actor="Eve"))


def test_the_same_words_are_sealed_differently_each_time():
    seals = {Entry("asked", {}, "Grace").linked(1, GENESIS, AT).seal.actor for _ in range(5)}
    assert len(seals) == 5


def test_an_event_without_a_reason_stays_without_one():
    event = Entry("asked", {}, "Grace").linked(1, GENESIS, AT)
    assert (event.reason, event.seal.reason, event.blanked().reason) == (None, None, None)
    assert words_hold(event)
    assert not words_hold(replace(event, reason="made up"))


def test_only_an_ask_is_its_own_ticket():
    assert Entry("asked", {}, "a").linked(4, GENESIS, AT).ticket == 4
    assert Entry("closed", {}, "a").linked(4, GENESIS, AT).ticket is None


def test_times_are_written_in_utc_with_microseconds():
    local = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    assert written(local) == "2026-03-01T12:30:00.000000+00:00"


@settings(max_examples=30, deadline=None)
@given(st.text(st.sampled_from("a \0\ud800\n"), max_size=4))
def test_words_are_refused_exactly_where_they_cannot_be_kept(words):
    bad = not words.strip() or "\0" in words or "\ud800" in words
    if bad:
        with pytest.raises(InputError, match="actor must"):
            Entry("asked", {}, words)
    else:
        Entry("asked", {}, words)
