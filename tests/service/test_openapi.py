"""The description of the interface: checked in, so that a change of it is seen; and true."""

import json
from collections import Counter
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import one_of
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks as conformance

from clinic import clinic
from running import Running
from sidestep.studies.people.roles import ADMIN, EVERYWHERE, Grant

DESCRIPTION = Path(__file__).parents[2] / "docs" / "openapi.json"
EXAMPLES = 5  # requests for every operation
CHECKS = [
    schemathesis.checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def as_lines(_, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def described(running):
    return json.loads(json.dumps(running.app.openapi()))


def test_the_description_is_the_one_that_is_checked_in(running):
    kept, made = json.loads(DESCRIPTION.read_text(encoding="utf-8")), described(running)
    kept["info"].pop("version")
    made["info"].pop("version")
    assert made == kept, "write it anew: python tests/service/describe.py"


def test_it_is_of_version_3_1_and_every_refusal_is_a_problem(running):
    description = described(running)
    assert description["openapi"].startswith("3.1")
    for path, operations in description["paths"].items():
        for verb, operation in operations.items():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"], (path, verb)


def test_every_write_takes_a_key(running):
    without = {"/v1/import", "/v1/tokens/{token}"}  # the same again changes nothing by itself
    for path, operations in described(running)["paths"].items():
        for verb in {"post", "put", "patch", "delete"} & set(operations):
            names = {each["name"] for each in operations[verb].get("parameters", [])}
            assert path in without or "Idempotency-Key" in names, path


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with Running(tmp_path_factory.mktemp("fuzz") / "served.db") as running:
        study = clinic(running.store, "s")
        study.tell(study.ask().id, 140.0, measured="systolic pressure")
        study.ask()
        token, shown = running.door.accounts.add_token("fuzz", actor="test")
        running.door.grants.give(Grant(token.id, EVERYWHERE, ADMIN), actor="test", by="test")
        yield running.url, {"Authorization": f"Bearer {shown}"}


def operations():
    schema = schemathesis.openapi.from_path(str(DESCRIPTION))
    found = [each.ok() for each in schema.get_all_operations()]
    return [each for each in found if not each.path.endswith("/events")]  # which never ends


def fuzz(operation, served, examples):
    """Requests that the description allows and that it does not; how often every status came."""
    statuses = Counter()
    both = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @given(case=one_of(both))
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def run(case):
        if "name" in (case.path_parameters or {}):
            case.path_parameters["name"] = "s"
        response = case.call(base_url=served[0], headers=served[1], timeout=60)
        statuses[response.status_code] += 1
        assert response.status_code < 500, response.text
        if response.status_code >= 400:
            assert response.headers["content-type"] == ["application/problem+json"]
        case.validate_response(response, checks=CHECKS)

    run()
    return statuses


@pytest.mark.full
@pytest.mark.parametrize("operation", operations(), ids=lambda each: each.label)
def test_no_generated_request_breaks_the_service(fuzzed, operation):
    assert max(fuzz(operation, fuzzed, EXAMPLES)) < 500


@pytest.mark.slow
@pytest.mark.parametrize("operation", operations(), ids=lambda each: each.label)
def test_no_request_of_a_long_series_breaks_the_service(fuzzed, operation):
    assert max(fuzz(operation, fuzzed, 400)) < 500
