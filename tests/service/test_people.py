"""People, sessions, tokens, roles and links: who comes in, what they see, and how it ends."""

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from houses import OWNER, PLAUSIBLE, STRANGER, Browser, hashed_once, text_of
from itsdangerous import TimestampSigner

from clinic import clinic
from running import PASSWORD, Running
from sidestep.errors import InputError
from sidestep.service.auth import SESSION
from sidestep.service.passwords import TRIES, hashed, matches
from sidestep.service.server import check_host_allowed
from sidestep.studies.people.roles import ADMIN, EVERYWHERE, Grant
from sidestep.studies.storage.record import verify
from sidestep.studies.study import Study


def csrf_of(page):
    return re.search(r'name="csrf" value="([^"]+)"', page.text)[1]


def log_in(web, name, password=PASSWORD):
    page = web.get("/login")
    return web.post(
        "/login", data={"csrf": csrf_of(page), "name": name, "password": password, "to": "/"}
    )


@pytest.fixture
def visitor(own_house):
    with httpx.Client(base_url=own_house.running.url, timeout=30) as web:
        yield web


def test_on_loopback_nobody_logs_in_until_there_is_somebody(running, web, browser):
    assert web.get("/v1/studies").status_code == 200
    assert "Whose turn is it?" in browser.get("/").text
    running.door.accounts.add_person("Ada", hashed_once(), actor="test")
    running.door._nobody_until = 0.0
    assert web.get("/v1/studies").status_code == 401
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_another_host_is_refused_until_there_is_an_admin(tmp_path, host):
    running = Running(tmp_path / "s.db", host=host)
    with pytest.raises(InputError, match="sidestep user add NAME --admin"):
        check_host_allowed(running.app, running.settings)
    person = running.door.accounts.add_person("Ada", hashed_once(), actor="test")
    with pytest.raises(InputError):
        check_host_allowed(running.app, running.settings)
    running.door.grants.give(Grant(person.id, EVERYWHERE, ADMIN), actor="test", by="test")
    check_host_allowed(running.app, running.settings)
    running.store.close()


def test_a_session_begins_with_the_right_password_and_ends_with_another(own_house, visitor):
    answer = log_in(visitor, OWNER)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert visitor.get("/").status_code == 200
    assert visitor.get("/v1/studies").status_code == 200
    own_house.running.door.accounts.set_password(OWNER, hashed("another password"), actor="test")
    assert visitor.get("/").status_code == 303


def test_over_https_a_cookie_is_secure(tmp_path):
    with (
        Running(tmp_path / "s.db", https=True) as running,
        httpx.Client(base_url=running.url) as web,
    ):
        running.door.accounts.add_person("Ada", hashed_once(), actor="test")
        page = web.get("/login")
        assert "Secure" in page.headers["set-cookie"]


def test_logging_out_ends_a_session(visitor):
    log_in(visitor, OWNER)
    page = visitor.get("/")
    visitor.post("/logout", data={"csrf": csrf_of(page)})
    assert visitor.get("/").status_code == 303


def test_a_copied_cookie_is_worth_nothing_after_logging_out(own_house, visitor):
    log_in(visitor, OWNER)
    copied = {"Cookie": f"{SESSION}={visitor.cookies[SESSION]}"}
    with httpx.Client(base_url=own_house.running.url, timeout=30) as thief:
        assert thief.get("/v1/studies", headers=copied).status_code == 200
        visitor.post("/logout", data={"csrf": csrf_of(visitor.get("/"))})
        assert thief.get("/v1/studies", headers=copied).status_code == 401
    assert log_in(visitor, OWNER).status_code == 303
    assert visitor.get("/v1/studies").status_code == 200


ENDINGS = {
    "logged out": lambda accounts, ada: accounts.end_sessions(ada, actor="test"),
    "another password": lambda accounts, _: accounts.set_password("Ada", "hashed", actor="test"),
    "removed": lambda accounts, _: accounts.remove_person("Ada", actor="test"),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_sessions_of_a_person_end_on_every_server(storage, ending):
    with Running(storage) as one, Running(storage) as other:
        accounts = one.door.accounts
        accounts.add_person("Grace", "hashed", actor="test")
        ada = accounts.add_person("Ada", "hashed", actor="test")
        cookie = {"Cookie": f"{SESSION}={one.door.session(ada)}"}
        assert httpx.get(f"{other.url}/v1/studies", headers=cookie).status_code == 200
        ending(accounts, ada)
        assert httpx.get(f"{other.url}/v1/studies", headers=cookie).status_code == 401


def test_a_wrong_name_and_a_wrong_password_sound_alike(visitor):
    wrong = log_in(visitor, OWNER, "not the password")
    unknown = log_in(visitor, "nobody at all", "not the password")
    assert wrong.status_code == unknown.status_code == 401
    assert text_of(wrong) == text_of(unknown)


@pytest.mark.full
def test_whoever_guesses_is_made_to_wait(visitor):
    for _ in range(TRIES):
        assert log_in(visitor, OWNER, "guess guess guess").status_code == 401
    assert log_in(visitor, OWNER).status_code == 429
    assert log_in(visitor, STRANGER).status_code == 303


@pytest.mark.full
def test_guesses_at_once_are_not_more_than_guesses_one_by_one(own_house):
    with ThreadPoolExecutor(40) as pool:
        codes = list(pool.map(lambda _: guess(own_house, OWNER).status_code, range(40)))
    assert Counter(codes) == {401: TRIES, 429: 40 - TRIES}


@pytest.mark.full
def test_a_name_of_any_length_is_bounded_and_counted(own_house):
    guard = own_house.running.app.state.guard
    codes = [guess(own_house, "x" * (100_000 + n)).status_code for n in range(TRIES + 1)]
    assert codes == [401] * TRIES + [429]
    assert [len(name) for name in guard._tries] == [101]


@pytest.mark.full
def test_many_logins_leave_the_threads_of_readers_alone(own_house, monkeypatch):
    """Passwords that take their time: a reader is answered while all 90 logins still wait."""
    go_on = threading.Event()
    monkeypatch.setattr("sidestep.service.pages.login.matches", lambda *_: go_on.wait(60) and False)
    limiter = own_house.running.app.state.settings.threads
    assert limiter < 90
    with own_house.as_person(OWNER) as reader, ThreadPoolExecutor(90) as pool:
        waiting = [pool.submit(guess, own_house, f"somebody {n}") for n in range(90)]
        try:
            deadline = time.monotonic() + 30
            while own_house.running.app.state.guard._waiting < 90:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert reader.http.get("/v1/studies", timeout=30).status_code == 200
            assert not any(each.done() for each in waiting)
        finally:
            go_on.set()
        assert {each.result().status_code for each in waiting} == {401}


def guess(house, name):
    with Browser(house.running) as web:
        return web.post("/login", False, name=name, password="not the password")


def test_a_forged_or_old_session_is_none(own_house, visitor, monkeypatch):
    door = own_house.running.door
    good = door.session(own_house.people[OWNER])
    for cookie in ("", "x", good[:-2], good.replace(".", "", 1)):
        assert visitor.get("/", headers={"Cookie": f"{SESSION}={cookie}"}).status_code == 303
    assert visitor.get("/", headers={"Cookie": f"{SESSION}={good}"}).status_code == 200
    later = datetime.now(UTC) + timedelta(hours=door.settings.session_hours, seconds=5)
    monkeypatch.setattr("sidestep.service.auth.utc_now", lambda: later)
    assert visitor.get("/", headers={"Cookie": f"{SESSION}={good}"}).status_code == 303


@pytest.mark.parametrize(("ahead", "status"), [(2, 200), (50, 200), (300, 303)])
def test_a_login_on_a_server_whose_clock_is_ahead_is_good_at_once(
    own_house, visitor, monkeypatch, ahead, status
):
    later = int(time.time()) + ahead
    with monkeypatch.context() as patch:
        patch.setattr(TimestampSigner, "get_timestamp", lambda _: later)
        session = own_house.running.door.session(own_house.people[OWNER])
    assert visitor.get("/", headers={"Cookie": f"{SESSION}={session}"}).status_code == status


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "evil"]
)
def test_nobody_is_sent_elsewhere_after_logging_in(visitor, to):
    page = visitor.get("/login")
    data = {"csrf": csrf_of(page), "name": OWNER, "password": PASSWORD, "to": to}
    assert visitor.post("/login", data=data).headers["location"] == "/"


@pytest.mark.full
def test_a_password_is_hashed_and_long_enough():
    kept = hashed(PASSWORD)
    assert kept.startswith("$argon2id$")
    assert matches(kept, PASSWORD)
    assert not matches(kept, PASSWORD + "x")
    assert not matches(None, "a password that nobody has")
    with pytest.raises(InputError, match="10 to 200 characters"):
        hashed("short")


@pytest.mark.parametrize("csrf", ["", "x", "x.y"])
def test_a_form_of_another_page_changes_nothing(own_house, csrf):
    with own_house.as_person(OWNER) as browser:
        response = browser.post("/studies/bp/ask", csrf=csrf)
        assert response.status_code == 403
        assert "nothing was saved" in response.text
        browser.http.cookies.delete("sidestep_browser")
        assert browser.post("/studies/bp/ask").status_code == 403
    assert own_house.running.store.head("bp").seq == len(own_house.running.store.events("bp"))


def test_people_without_a_common_grant_do_not_see_each_others_studies(own_house):
    for login in (own_house.as_person, own_house.as_program):
        with login(STRANGER) as theirs, login("read") as ours:
            listed = theirs.get("/v1/studies").json()["studies"]
            assert [line["study"] for line in listed] == ["other"]
            assert [line["study"] for line in ours.get("/v1/studies").json()["studies"]] == ["bp"]
            unknown, foreign = (theirs.get(f"/v1/studies/{name}") for name in ("bq", "bp"))
            assert foreign.status_code == 404
            assert foreign.text.replace("'bp'", "'bq'") == unknown.text
    with own_house.as_person(STRANGER) as theirs:
        page = theirs.get("/")
        assert "/studies/other" in page.text
        assert "/studies/bp" not in page.text


def test_a_key_of_one_study_says_nothing_of_another(own_house):
    with own_house.as_program("ask") as ours, own_house.as_program(STRANGER) as theirs:
        key = {"Idempotency-Key": "k"}
        first = ours.post("/v1/studies/bp/tickets", json={"new": True}, headers=key)
        second = theirs.post("/v1/studies/other/tickets", json={"new": True}, headers=key)
        assert (first.status_code, second.status_code) == (200, 200)
        assert first.json()["study"] != second.json()["study"]


def test_who_did_it_is_in_the_record_and_cannot_be_made_up(own_house):
    with own_house.as_person("ask") as browser:
        browser.http.post("/v1/studies/bp/tickets", json={"new": True, "actor": "the Queen"})
    with own_house.as_program("ask") as program:
        program.post("/v1/studies/bp/tickets", json={"new": True, "actor": "Dr No"})
    signers = [
        event.actor for event in own_house.running.store.events("bp") if event.kind == "asked"
    ]
    assert signers == ["somebody", "ask", "ask: Dr No"]


def test_a_token_is_made_once_and_ends_when_it_is_revoked(own_house):
    with own_house.as_program(OWNER) as owner:
        body = {"name": "lims", "roles": ["tell"], "studies": ["bp"], "days": 1}
        made = owner.post("/v1/tokens", json=body, headers={"Idempotency-Key": "t"})
        assert made.status_code == 201
        again = owner.post("/v1/tokens", json=body, headers={"Idempotency-Key": "t"})
        assert (again.json()["id"], again.json()["token"]) == (made.json()["id"], None)
        token = {"Authorization": f"Bearer {made.json()['token']}"}
        path = "/v1/studies/bp/tickets/2/answer"
        assert owner.post(path, json={"value": 140}, headers=token).status_code == 200
        assert owner.post("/v1/studies/bp/tickets", json={}, headers=token).status_code == 403
        listed = owner.get("/v1/tokens").json()["tokens"][-1]
        assert (listed["roles"], listed["studies"], "token" in listed) == (["tell"], ["bp"], False)
        owner.delete(f"/v1/tokens/{made.json()['id']}")
        assert owner.post(path, json={"value": 140}, headers=token).status_code == 401
        assert owner.post("/v1/tokens", json={**body, "studies": ["nope"]}).status_code == 404
        assert owner.post("/v1/tokens", json={**body, "roles": ["king"]}).status_code == 422
        assert owner.delete("/v1/tokens/nope").status_code == 404


def test_roles_are_given_and_taken_on_the_page(own_house):
    with own_house.as_person(ADMIN) as admin, own_house.as_person(STRANGER) as guest:
        assert guest.get("/studies/bp").status_code == 404
        admin.post("/studies/bp/people", name=STRANGER, role=["read", "tell"])
        assert guest.get("/studies/bp").status_code == 200
        admin.post("/studies/bp/people", name=STRANGER, role=[])
        assert guest.get("/studies/bp").status_code == 404
        assert (
            "you must leave the role admin"
            in text_of(admin.post("/studies/bp/people", name=ADMIN, role=["read"])).lower()
        )
        assert admin.post("/studies/bp/people", name="nobody", role=["read"]).status_code == 422
    kinds = [event.kind for event in own_house.running.store.events("bp")][-4:]
    assert kinds == ["granted", "granted", "revoked", "revoked"]


def test_the_first_person_must_be_able_to_let_others_in(running, browser):
    answer = browser.post("/people", name="Ada", password=PASSWORD, role=["read"])
    assert "first person must have the role admin" in text_of(answer)
    assert running.door.accounts.people() == []
    assert (
        browser.post("/people", False, name="Ada", password=PASSWORD, role=["admin"]).status_code
        == 303
    )
    running.door._nobody_until = 0.0
    assert browser.get("/people").headers["location"].startswith("/login")


@pytest.mark.full
def test_people_are_let_in_and_removed(own_house):
    with own_house.as_person(OWNER) as owner:
        page = owner.post("/people", name="Grace", password=PASSWORD, role=["read"])
        assert "Grace" in page.text
        assert "already" in text_of(
            owner.post("/people", name="Grace", password=PASSWORD, role=["read"])
        )
        assert "Grace" not in owner.post("/people/remove", name="Grace").text
        assert "cannot remove yourself" in text_of(owner.post("/people/remove", name=OWNER)).lower()
        made = owner.post("/tokens", name="robot", role=["tell"], study="bp", days="30")
        assert re.search(r"ss_[0-9a-f]{12}_[\w-]{43}", made.text)
        token = own_house.running.door.accounts.tokens()[-1]
        assert "revoked" in text_of(owner.post(f"/tokens/{token.id}/revoke"))


@pytest.fixture
def linked(own_house):
    """A link that may answer question 2 of bp, as its admin made it on the page."""
    with own_house.as_person(ADMIN) as admin:
        page = admin.post("/studies/bp/links", ticket="2", label="Lab, Ward 4", days="2")
        return re.search(r"/answer/([\w-]+)", page.text)[0]


def test_a_link_answers_its_one_question_and_shows_nothing_else(own_house, linked):
    with Browser(own_house.running) as lab:
        page = lab.get(linked)
        assert page.status_code == 200
        assert "Please measure" in page.text
        for hidden in ("/studies/bp", "lisinopril", "candidates", "somebody@"):
            assert hidden not in page.text
        field = PLAUSIBLE[own_house.running.store.events("bp")[1].body["measure"][0]]
        saved = lab.post(linked, **field)
        assert "Saved as entry" in text_of(saved)
        assert "Saved as entry" in text_of(lab.get(linked))
        other = {name: "1" + value for name, value in field.items()}
        assert lab.post(linked, sure="1", reason="x", **other).status_code == 409
        assert lab.get("/studies/bp").status_code == 303
    last = own_house.running.store.events("bp")[-1]
    assert (last.kind, last.actor, last.ticket) == ("answered", "Lab, Ward 4", 2)


def test_a_link_to_a_panel_is_answered_one_result_after_another(own_house):
    store = own_house.running.store
    ticket = Study.open("bp", store).ask(new=True, panel=["sodium", "potassium"], actor="Grace").id
    with own_house.as_person(ADMIN) as admin, Browser(own_house.running) as lab:
        page = admin.post("/studies/bp/links", ticket=str(ticket), label="Lab", days="2")
        link = re.search(r"/answer/([\w-]+)", page.text)[0]
        given = {f"given__{place}": "0" for place in range(3)}
        assert lab.post(link, value__0="150", **given).status_code == 422  # nobody asked for that
        page = lab.post(link, **PLAUSIBLE["sodium"], **given)
        assert "Please measure potassium" in text_of(page)
        assert "Saved as entry" in text_of(page)
        page = lab.post(link, **PLAUSIBLE["potassium"])
        assert "This question has its answer" in text_of(page)
    told = store.events("bp")[-2:]
    assert [event.outcome for event in told] == ["sodium", "potassium"]
    assert not any(event.body.get("given") for event in told)


def test_a_link_ends_when_it_is_revoked_or_runs_out(own_house, linked, monkeypatch):
    with Browser(own_house.running) as lab, own_house.as_person(ADMIN) as admin:
        later = datetime.now(UTC) + timedelta(days=3)
        with monkeypatch.context() as patch:
            patch.setattr("sidestep.service.pages.link.utc_now", lambda: later)
            assert lab.get(linked).status_code == 410
        assert lab.get(linked).status_code == 200
        link = own_house.running.door.grants.links("bp")[0]
        assert "revoked" in text_of(admin.post(f"/studies/bp/links/{link.id}/revoke"))
        assert lab.get(linked).status_code == 410
        gone = lab.post(linked, value__0="140")
        assert gone.status_code == 410
        assert "nothing was saved" in text_of(gone)
        assert lab.get("/answer/nothing-at-all").status_code == 404
        assert lab.get(linked + "x").status_code == 404


def test_words_are_erased_on_request_and_the_chain_holds(own_house):
    store = own_house.running.store
    with own_house.as_person(ADMIN) as admin:
        assert "somebody" in admin.get("/studies/bp/erase").text
        assert admin.post("/studies/bp/erase", who="nobody", reason="x").status_code == 422
        assert admin.post("/studies/bp/erase", who="somebody", reason="").status_code == 422
        asked = {"who": "somebody", "reason": "they asked for it", "key": "once"}
        for _ in range(2):
            assert "Words were erased" in text_of(admin.post("/studies/bp/erase", **asked))
    assert "somebody" not in repr([(e.actor, e.reason, e.body) for e in store.events("bp")])
    assert store.events("bp")[-1].kind == "erased"
    assert verify(store, "bp").holds


def test_the_login_and_set_up_pages_ask_for_no_names_of_patients(running, web, browser):
    clinic(running.store)
    for path in ("/login", "/new"):
        assert "No names of patients" in browser.get(path).text
