"""A damaged file speaks a sentence, or is found by `verify`, or is damaged where nothing is kept."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from sidestep.errors import SidestepError, StorageError
from sidestep.studies.storage.copies import verified
from sidestep.studies.storage.exchange import export_study
from sidestep.studies.storage.sql import SqlStore

FILE = Path(__file__).parents[1] / "written_by" / "0.2.0" / "studies.sqlite"
WHOLE = FILE.read_bytes()
FLIPS = 40


def contents(path):
    """Every event and blob, as an export has them; None where `verify` finds a flaw."""
    with closing(SqlStore.open(path)) as store:
        if not all(verdict.holds for verdict in verified(store)):
            return None
        return [list(export_study(store, name)) for name in store.names()]


def flipped(path, places):
    damaged = bytearray(WHOLE)
    for place in places:
        damaged[place] ^= 0x20
    path.write_bytes(damaged)
    return path


def test_no_flipped_byte_changes_an_event_without_notice(tmp_path):
    path = tmp_path / "whole.db"
    path.write_bytes(WHOLE)
    before, rng = contents(path), random.Random(7)
    found = {"sentence": 0, "flaw": 0, "as it was": 0}
    for number in range(FLIPS):
        place = rng.randrange(len(WHOLE))
        try:
            now = contents(flipped(tmp_path / f"{number}.db", [place]))
        except SidestepError:
            found["sentence"] += 1
            continue
        assert now in (None, before), place
        found["flaw" if now is None else "as it was"] += 1
    assert all(found.values()), found


@pytest.mark.parametrize("words", [b'"purpose":"learn"', b"misread", b'"outcome":"potassium"'])
def test_a_flipped_byte_in_an_event_is_found(tmp_path, words):
    place = WHOLE.index(words) + 2
    assert contents(flipped(tmp_path / "flipped.db", [place])) is None


def test_damaged_names_of_tables_are_a_sentence(tmp_path):
    """SQLite names what it cannot read, in letters that are none."""
    damaged = WHOLE.replace(b"CREATE TABLE texts", b"CREATE TABLE t\xa0\xa0ts")
    assert damaged != WHOLE
    path = tmp_path / "names.db"
    path.write_bytes(damaged)
    with pytest.raises(StorageError, match="is damaged"):
        contents(path)


def test_a_damaged_table_of_candidates_is_not_read(tmp_path):
    path = tmp_path / "table.db"
    path.write_bytes(WHOLE)
    with closing(SqlStore.open(path)) as store:
        (digest, *_) = store.blobs()
        text = store.blob(digest).encode()
    place = WHOLE.index(text) + 3
    store = SqlStore.open(flipped(path, [place]))
    with pytest.raises(StorageError, match="was edited or damaged"):
        store.blob(digest)
    store.close()
