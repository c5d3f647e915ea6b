"""What earlier versions wrote opens: stores on SQLite and PostgreSQL, exports, states of policies.

`tests/written_by` has a folder for every version; each is read and continued here.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

import sidestep as ss
from sidestep.cli.main import app
from sidestep.policies.catalog import from_config
from sidestep.service.passwords import matches
from sidestep.studies.people.accounts import Accounts
from sidestep.studies.people.grants import Grants
from sidestep.studies.storage.copies import backup, restore
from sidestep.studies.storage.doctor import doctor
from sidestep.studies.storage.exchange import export_study, import_study
from sidestep.studies.storage.store import open_store
from written_by.make import ARMS, LEVEL, asked_of

WRITTEN = Path(__file__).parents[1] / "written_by"
VERSIONS = sorted(found.parent.name for found in WRITTEN.glob("*/studies.json"))
FORMULA = {"context": {"age": 44, "sex": "m"}}


class Older(NamedTuple):
    """A storage that an earlier version wrote, and what it counted there."""

    address: str
    counted: dict[str, Any]


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest) -> Path:
    return WRITTEN / request.param


@pytest.fixture(params=["sqlite", "postgresql"])
def older(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Older:
    """A copy of the storage, as it was left."""
    counted = json.loads((folder / "studies.json").read_text())[request.param]
    if request.param == "sqlite":
        return Older(shutil.copy(folder / "studies.sqlite", tmp_path), counted)
    address = request.getfixturevalue("postgres").new_database()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute((folder / "studies.sql").read_text())
    return Older(address, counted)


def test_every_version_left_what_is_opened_here():
    assert "0.2.0" in VERSIONS


def test_studies_are_listed_shown_and_whole(older):
    assert ss.Study.list(older.address) == sorted(older.counted)
    store = open_store(older.address)
    for name, counted in older.counted.items():
        study = ss.Study.open(name, store)
        head = store.head(name)
        assert (head.status, head.seq, head.hash) == tuple(
            counted[key] for key in ("status", "seq", "hash")
        )
        assert [question.id for question in study.questions()] == counted["open"]
        assert study.n_results == counted["results"]
        assert len(study.history()) == counted["seq"]
        assert name in str(study.show()) or study.plan.title in str(study.show())
        assert study.verify(known=counted["hash"]).data["holds"]
    store.close()


def test_studies_ask_tell_and_recommend(older):
    store = open_store(older.address)
    for name, counted in older.counted.items():
        study = ss.Study.open(name, store, actor="a new person")
        here = FORMULA if name == "formula" else {}
        if counted["status"] == "open":
            for question in study.questions():
                waiting = question.waiting
                told = {outcome: LEVEL[outcome] for outcome in waiting}
                study.tell(question.id, told if len(told) > 1 else told[waiting[0]])
            ticket = study.ask(**here)
            told = {outcome: LEVEL[outcome] for outcome in asked_of(ticket)}
            study.tell(ticket.id, told if len(told) > 1 else told[asked_of(ticket)[0]])
            assert study.n_results > counted["results"]
        best = study.best(**here)
        assert (best.action is not None) == (study.n_results > 0)
        assert study.verify(known=counted["hash"]).data["holds"]
        again = ss.Study.open(name, older.address)  # from nothing but the record
        assert again.best(**here).action == best.action
    store.close()


def test_questions_can_be_computed_again_and_a_difference_is_no_damage(older):
    store = open_store(older.address)
    for name in older.counted:
        card = ss.Study.open(name, store).verify(asks=True)
        assert card.data["holds"], name
        assert card.data["differences"] == []
        if card.data["changed"]:
            assert "would be another one today" in str(card)
    store.close()


def test_accounts_and_roles_are_the_same(older):
    store = open_store(older.address)
    accounts, grants = Accounts(store), Grants(store)
    assert [person.name for person in accounts.people()] == ["Ada", "Grace"]
    ada, grace = accounts.people()
    assert matches(ada.password, "correct horse battery")
    assert accounts.has_admin()
    assert grants.of(grace.id) == {("clinic", "tell")}
    assert [token.name for token in accounts.tokens()] == ["device"]
    assert [link.label for link in grants.links("clinic")] == ["the nurse"]
    assert len(accounts.secret("forms")) == 64
    store.close()


def test_a_storage_is_backed_up_and_restored_here(older, tmp_path):
    store = open_store(older.address)
    assert not [found for found in doctor(store) if found.state == "wrong"]
    assert all(verdict.holds for verdict in backup(store, tmp_path / "copy.backup"))
    store.close()
    fresh = open_store(tmp_path / "fresh.db")
    verdicts = restore(tmp_path / "copy.backup", fresh)
    assert {verdict.name: verdict.hash for verdict in verdicts} == {
        name: counted["hash"] for name, counted in older.counted.items()
    }
    fresh.close()


def test_the_terminal_lists_and_shows_them(older):
    run = CliRunner().invoke(app, ["study", "list", "-s", older.address])
    assert run.exit_code == 0, run.output
    for name in older.counted:
        assert name in run.output
    run = CliRunner().invoke(app, ["study", "show", "clinic", "-s", older.address])
    assert run.exit_code == 0, run.output
    assert "Blood pressure" in run.output


@pytest.mark.parametrize("name", ["clinic", "table"])
def test_exports_are_imported_and_written_again_as_they_were(folder, storage, name):
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    store = open_store(storage)
    head = import_study(store, lines)
    assert head.seq == len([line for line in lines if '"seq"' in line]) - 1
    assert list(export_study(store, name)) == lines
    study = ss.Study.open(name, store)
    assert study.verify().data["holds"]
    assert study.best().action is not None
    assert study.ask().id
    store.close()


def test_states_of_policies_go_on(folder):
    for name, kept in json.loads((folder / "states.json").read_text()).items():
        policy = from_config(name, ss.Problem(**kept["problem"]), kept["knobs"])
        state = policy.state_from_json(kept["state"])
        read, written = json.loads(state.to_json()), json.loads(kept["state"])
        assert read["evidence"] == written["evidence"], name
        assert read["fingerprint"] == written["fingerprint"], name
        decision = policy.ask(state, ss.Arms(ARMS), np.random.default_rng(5))
        after = policy.tell(state, decision.query, 0.3)
        assert json.loads(after.to_json()) != json.loads(kept["state"]), name


def test_the_first_cards_say_once_that_the_belief_is_new(older):
    store = open_store(older.address)
    told = []
    for name in older.counted:
        study = ss.Study.open(name, store)
        if study.plan.aim == "clean" or store.head(name).status == "closed":
            continue
        here = FORMULA if study.plan.context else {}
        if study.best(**here).action is not None:
            assert study.best(**here).news
            assert "New since version 0.2" in " ".join(str(study.best(**here)).split())
        ticket = study.ask(new=True, **here)
        assert "New since version 0.2" in " ".join(str(ticket).split())
        assert not study.best(**here).news
        assert "New since version 0.2" not in str(study.ask(new=True, **here))
        told.append(name)
    store.close()
    assert told
