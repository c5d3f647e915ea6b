"""Who may come in and what they may do: on SQLite and PostgreSQL."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from clinic import clinic
from sidestep.errors import AccountExists, AccountNotFound, InputError, KeyReused, TicketNotFound
from sidestep.studies.people.accounts import Accounts
from sidestep.studies.people.grants import Grants
from sidestep.studies.people.roles import ADMIN, EVERYWHERE, ROLES, Grant, Rights, checked_roles
from sidestep.studies.people.tokens import make_token
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.tables import CHANGES

LATER = datetime.now(UTC) + timedelta(days=2)


@pytest.fixture
def store(storage):
    opened = SqlStore.open(storage, patience=5.0)
    yield opened
    opened.close()


@pytest.fixture
def accounts(store):
    return Accounts(store)


@pytest.fixture
def grants(store):
    return Grants(store)


def changes(store):
    return store.database.read(Ready(CHANGES.select().order_by(CHANGES.c.at)), {})


@pytest.mark.full
def test_a_person_is_added_found_and_removed(accounts, grants, store):
    ada = accounts.add_person("Ada", "hashed", actor="terminal")
    grants.give(Grant(ada.id, EVERYWHERE, ADMIN), actor="terminal", by="terminal")
    assert accounts.person_named("Ada") == accounts.person(ada.id) == ada
    assert accounts.has_admin()
    with pytest.raises(AccountExists, match="'Ada' already"):
        accounts.add_person("Ada", "x", actor="terminal")
    accounts.remove_person("Ada", actor="terminal")
    assert accounts.people() == []
    assert grants.of(ada.id) == Rights()
    assert not accounts.has_admin()
    with pytest.raises(AccountNotFound):
        accounts.remove_person("Ada", actor="terminal")
    assert len(changes(store)) == 3
    assert "Ada" not in repr(changes(store))


@pytest.mark.parametrize("days", [0, -1, 1e12])
def test_a_token_ends_within_ten_years_or_never(accounts, grants, refusal, days):
    signed = {"actor": "terminal", "by": "terminal"}
    words = refusal(make_token, accounts, grants, "robot", ["read"], [], days=days, **signed)
    assert "days must be" in words
    assert accounts.tokens() == []


def test_another_password_voids_what_was_signed_before(accounts):
    before = accounts.add_person("Ada", "hashed", actor="terminal")
    accounts.set_password("Ada", "other", actor="terminal")
    after = accounts.person(before.id)
    assert after.password == "other"
    assert after.stamp != before.stamp


def test_a_token_is_shown_once_and_only_its_digest_is_kept(accounts, store):
    token, shown = accounts.add_token("robot", actor="terminal", key="k")
    prefix, identity, secret = shown.split("_", 2)
    assert (prefix, identity) == ("ss", token.id)
    assert len(secret) == 43
    assert accounts.token_shown(shown) == token
    assert secret not in repr(store.database.read(Ready(CHANGES.select()), {})) + repr(
        accounts.tokens()
    )
    assert accounts.add_token("robot", actor="terminal", key="k") == (token, None)
    with pytest.raises(KeyReused):
        accounts.add_token("another", actor="terminal", key="k")


@pytest.mark.parametrize(
    "wrong", ["", "ss", "ss__", "ss_x_y", "xx_{0}_{1}", "ss_{0}_{1}x", "ss_{0}_"]
)
def test_anything_but_the_token_is_refused(accounts, wrong):
    token, shown = accounts.add_token("robot", actor="terminal")
    assert accounts.token_shown(wrong.format(token.id, shown.split("_", 2)[2])) is None


def test_a_token_ends_when_it_runs_out_or_is_revoked(accounts):
    token, shown = accounts.add_token("robot", actor="terminal", expires=LATER)
    assert accounts.token_shown(shown) is not None
    assert accounts.token_shown(shown, LATER) is None
    revoked = accounts.revoke_token(token.id, actor="terminal")
    assert accounts.token_shown(shown) is None
    assert accounts.revoke_token(token.id, actor="terminal") == revoked
    with pytest.raises(AccountNotFound):
        accounts.revoke_token("nobody", actor="terminal")


def test_roles_for_a_study_are_given_and_taken_in_its_record(store, accounts, grants):
    clinic(store)
    ada = accounts.add_person("Ada", "hashed", actor="terminal")
    for _ in range(2):
        grants.give(Grant(ada.id, "bp", "tell"), actor="Grace", by="p1")
    assert grants.of(ada.id).roles("bp") == {"tell"}
    assert grants.here("bp") == [Grant(ada.id, "bp", "tell")]
    for _ in range(2):
        grants.take(Grant(ada.id, "bp", "tell"), actor="Grace", by="p1")
    entries = store.events("bp", after=1)
    assert [(event.kind, event.actor) for event in entries] == [
        ("granted", "Grace"),
        ("revoked", "Grace"),
    ]
    assert all("Ada" not in event.seal.text for event in entries)
    assert verify(store, "bp").holds


def test_a_role_and_its_entry_are_saved_together_or_not_at_all(store, grants):
    clinic(store)
    with pytest.raises(InputError):
        grants.give(Grant("p1", "bp", "tell"), actor="", by="p1")
    assert grants.of("p1") == Rights()
    assert store.head("bp").seq == 1


@pytest.mark.parametrize("role", ROLES)
def test_an_admin_may_do_all_and_everybody_may_read(role):
    assert Rights({("bp", ADMIN)}).allow(role, "bp")
    assert Rights({(EVERYWHERE, ADMIN)}).allow(role, "bp")
    assert Rights({("bp", role)}).allow("read", "bp")
    assert not Rights({("other", ADMIN)}).allow(role, "bp")
    assert Rights({("bp", "read")}).allow(role, "bp") == (role == "read")


def test_roles_must_exist(refusal):
    assert checked_roles(["tell", "read", "tell"]) == ("read", "tell")
    refusal(checked_roles, ["tel"])
    refusal(checked_roles, [])


def test_a_link_is_for_one_question_and_can_be_revoked(store, grants):
    study = clinic(store)
    ticket = study.ask()
    link, shown = grants.add_link("bp", ticket.id, "Lab, Ward 4", expires=LATER, actor="Ada")
    assert grants.link_shown(shown) == link
    assert grants.link_shown(shown + "x") is None
    assert grants.link_shown("nothing") is None
    assert link.is_good(datetime.now(UTC))
    assert not link.is_good(LATER)
    grants.revoke_link("bp", link.id, actor="Ada")
    assert not grants.link_shown(shown).is_good(datetime.now(UTC))
    entries = [(event.kind, event.body["link"]) for event in store.events("bp", after=2)]
    assert entries == [("granted", link.id), ("revoked", link.id)]
    assert len(grants.links("bp")) == 1
    with pytest.raises(AccountNotFound):
        grants.revoke_link("other", link.id, actor="Ada")


def test_a_link_needs_a_question_and_an_expiry_in_the_future(store, grants, refusal):
    clinic(store)
    with pytest.raises(TicketNotFound):
        grants.add_link("bp", 99, "Lab", expires=LATER, actor="Ada")
    past = datetime.now(UTC) - timedelta(seconds=1)
    refusal(grants.add_link, "bp", 2, "Lab", expires=past, actor="Ada")
    assert grants.links("bp") == []


def test_a_secret_is_made_once_for_all_replicas(storage, accounts):
    other = SqlStore.open(storage, patience=5.0)
    assert len(accounts.secret("cookies")) == 64
    assert Accounts(other).secret("cookies") == accounts.secret("cookies")
    other.close()


def test_changes_are_never_edited(store, accounts):
    accounts.add_person("Ada", "hashed", actor="terminal")
    for statement in (CHANGES.delete(), CHANGES.update().values(actor="nobody")):
        with (
            pytest.raises(DBAPIError, match="the record only grows"),
            store.database.engine.begin() as db,
        ):
            db.execute(statement)
