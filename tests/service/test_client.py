"""The client: it sends until it is answered, writes nothing twice, and raises what the service raised."""

import inspect
import threading

import pytest

import sidestep as ss
from clinic import clinic
from running import Running
from sidestep.errors import (
    AccessError,
    AlreadyAnswered,
    ConflictError,
    InputError,
    ServiceError,
    StudyNotFound,
)
from sidestep.service.client import Client
from sidestep.service.remote import RemoteStudy
from sidestep.service.wire import Answer, refused
from sidestep.studies.measurement import Measurement
from sidestep.studies.study import Study

# what only a study on this machine has; a page needs them, a program does not
ONLY_HERE = {
    "create",
    "open",
    "list",
    "doubt",
    "doubt_correction",
    "questions",
    "about",
    "response",
    "trajectory",
    "outlook",
}


def verbs_of(kind):
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def call_of(kind, verb):
    """The parameters of a verb and the name of the type that it returns."""
    signature = inspect.signature(getattr(kind, verb))
    returned = signature.return_annotation
    return list(signature.parameters.values()), getattr(returned, "__name__", returned)


def test_a_study_behind_a_service_has_the_verbs_of_one_here():
    assert verbs_of(RemoteStudy) == verbs_of(Study) - ONLY_HERE


@pytest.mark.parametrize("verb", sorted(verbs_of(RemoteStudy)))
def test_a_verb_is_called_alike_here_and_behind_a_service(verb):
    assert call_of(RemoteStudy, verb) == call_of(Study, verb)


def test_the_client_can_be_imported_from_the_package(running):
    with ss.Client(running.url) as client:
        assert client.list() == []


def test_every_study_is_listed_over_many_pages(running, monkeypatch):
    monkeypatch.setattr("sidestep.service.client.PAGE", 2)
    for name in "cab":
        clinic(running.store, name)
    with Client(running.url) as client:
        assert client.list() == ["a", "b", "c"]


def test_a_card_prints_the_same_words_here_and_there(running):
    here = clinic(running.store)
    with Client(running.url) as client:
        there = client.open("bp")
        ticket = there.ask()
        assert str(ticket) == str(here.ask())
        assert str(there.tell(ticket.id, 140.0, reason="a\u2028b")).startswith("Saved")
        assert str(there.best()) == str(here.best())
        assert str(there.explain(top=3)) == str(here.explain(top=3))
        assert there.explain().rows == here.explain().rows
        assert there.best().effects == here.best().effects
        assert str(there.show()) == str(here.show())
        assert there.history() == here.history()
        assert there.history(1, 1) == here.history(1, 1)
        assert list(there.export()) == list(here.export())
        assert there.plan == here.plan
        assert "RemoteStudy('bp'" in repr(there)


def test_a_table_of_candidates_comes_along(running):
    table = {"lisinopril": [0, 10], "amlodipine": [0, 5], "chlortalidone": [0, 25]}
    with Client(running.url) as client:
        study = clinic(client, candidates=table)
        assert study.plan.candidates.rows == ((0.0, 0.0, 0.0), (10.0, 5.0, 25.0))


def test_a_table_twice_and_a_row_of_it_are_named_there_as_here(running):
    table = {
        "lisinopril": [0, 10],
        "amlodipine": [0, 5],
        "chlortalidone": [0, 25],
        "sodium": [138, 139],
    }
    with Client(running.url) as client:
        study = clinic(client)
        study.import_results(table)
        with pytest.raises(ConflictError, match="entry 2"):
            study.import_results(table)
        study.import_results(table, again=True)
        with pytest.raises(InputError, match="entry 2 has 2 results"):
            study.withdraw(2, reason="x")
        study.withdraw(2, row=1, reason="x")
        assert study.history()[-1].body["was"] == 139


def test_a_token_is_sent_and_a_missing_one_is_reported(tmp_path):
    with Running(tmp_path / "s.db") as running:
        _, shown = running.door.accounts.add_token("x", actor="test")
        with Client(running.url, patience=0.1) as client, pytest.raises(AccessError, match="token"):
            client.list()
        with Client(running.url, shown) as client:
            assert client.list() == []
            with pytest.raises(StudyNotFound):
                client.open("bp")


def test_an_unreachable_service_is_reported_in_a_sentence():
    client = Client("http://127.0.0.1:9", patience=0.2)
    with pytest.raises(
        ServiceError, match="does not answer .* trying again with the same key is safe"
    ):
        client.list()


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://host", "http://"])
def test_a_wrong_address_is_refused(refusal, url):
    assert "http://" in refusal(Client, url)


@pytest.mark.parametrize("key", ["visit 7", "é", "日本", "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent(refusal, running, key):
    with Client(running.url) as client:
        study = clinic(client)
        assert "without spaces" in refusal(study.ask, key=key)


def test_a_response_that_is_not_from_the_service_is_reported():
    assert isinstance(refused(Answer(502, {}, b"<html>")), ServiceError)
    assert isinstance(refused(Answer(418, {}, b'{"type":"x/new","detail":"d"}')), InputError)


def test_what_the_service_raised_is_raised_here(running):
    with Client(running.url) as client:
        study = clinic(client)
        ticket = study.ask()
        study.tell(ticket, 140.0)
        with pytest.raises(AlreadyAnswered, match=r"140.*141"):
            study.tell(ticket, 141.0)


class Flaky:
    """A connection that breaks a number of times after the service has done its work."""

    def __init__(self, wire, times):
        self.once, self.left, self.seen = wire._once, times, 0

    def __call__(self, *request):
        answer = self.once(*request)
        self.seen += 1
        if self.left > 0:
            self.left -= 1
            raise ConnectionResetError("the cable")
        return answer


@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_written_twice(
    running, monkeypatch, times
):
    with Client(running.url) as client:
        study = clinic(client)
        for act in (
            lambda: study.ask(new=True),
            lambda: study.tell(2, 140.0, measured="sodium"),
            lambda: study.tell(None, 4.1, measured="potassium", given=study.plan.baseline),
            lambda: study.correct(2, 139.0, reason="misread"),
            lambda: study.withdraw(2, reason="lost"),
        ):
            before = running.store.head("bp").seq
            flaky = Flaky(client._wire, times)
            with monkeypatch.context() as patch:
                patch.setattr(client._wire, "_once", flaky)
                act()
            assert flaky.seen == times + 1
            assert running.store.head("bp").seq == before + 1


def test_a_busy_service_is_asked_again(running, monkeypatch):
    with Client(running.url) as client:
        study, once, said = clinic(client), client._wire._once, [503, 429]

        def busy(*request):
            if said:
                return Answer(said.pop(), {"Retry-After": "0"}, b"{}")
            return once(*request)

        monkeypatch.setattr(client._wire, "_once", busy)
        assert study.ask().id == 2


def test_threads_share_a_client(running):
    with Client(running.url) as client:
        study = clinic(client)
        threads = [
            threading.Thread(target=lambda n=n: study.ask(new=True, actor=f"p{n}"))
            for n in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(study.history()) == 7


def test_results_with_errors_limits_and_controls_go_over_http_as_they_are(running):
    here = clinic(running.store)
    with Client(running.url) as client:
        there = client.open("bp")
        given = {**here.plan.baseline, "lisinopril": 10}
        there.tell(None, 4.1, se=0.12, measured="potassium", given=given, block="lab B")
        there.tell(None, below=3.3, measured="potassium", given=given)
        there.tell(None, measured="potassium", change=-0.4, against={"lisinopril": 30}, given=given)
        panel = {"sodium": {"value": 139.0, "repeats": 3}, "heart rate": 70.0}
        told = there.tell(None, panel, given=given)
        there.correct(told.entries[0], 139.5, repeats=2, reason="two of them")
        with pytest.raises(InputError, match="se or repeats"):
            there.tell(None, 4.1, se=0.1, repeats=2, measured="potassium", given=given)
    kept = [result.measured for result in here._live.follow().results.values()]
    assert kept == [
        Measurement(4.1, se=0.12, block="lab B"),
        Measurement(3.3, "below"),
        Measurement(-0.4, "change", against={**here.plan.baseline, "lisinopril": 30.0}),
        Measurement(139.5, repeats=2),
        Measurement(70.0),
    ]
