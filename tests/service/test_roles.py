"""Every route and every role: the table is made from the app itself, so that no route is forgotten."""

from collections import Counter
from inspect import unwrap

import pytest
from fastapi.routing import APIRoute
from houses import CALLERS, NOBODY, OWNER, STRANGER

from sidestep.service.auth import Needs, known_caller, known_owner
from sidestep.studies.people.roles import ADMIN, READ, ROLES

PUBLIC = {"/health", "/ready", "/login", "/logout", "/guide", "/static/{name}"}
PUBLIC |= {"/answer/{secret}", "/v1/openapi.json"}
NEVER_ENDS = "/v1/studies/{name}/events"
BODIES = {"/v1/import": ("application/x-ndjson", "{}")}


def routes(app):
    return [route for route in app.routes if isinstance(route, APIRoute)]


def needs(route):
    """What a route asks of its caller: ("study", role), ("all", role), ("anybody", None) or None."""
    for dependency in _dependencies(route.dependant):
        if isinstance(dependency, Needs):
            return "study", set(dependency.roles)
        if dependency is known_owner:
            return "all", {ADMIN}
    if known_caller in _dependencies(route.dependant):
        return "anybody", None
    return None


def _dependencies(dependant):
    found = [unwrap(each.call) for each in dependant.dependencies]
    for each in dependant.dependencies:
        found += _dependencies(each)
    return found


def expected(need, caller):
    """The status that a caller must get: a refusal, or None where nothing refuses them."""
    if need is None:
        return None
    if caller == NOBODY:
        return 401
    where, roles = need
    if where == "anybody" or caller == OWNER:
        return None
    if where == "all":
        return 403
    if caller == STRANGER:
        return 404
    return None if roles <= {READ, caller} or caller == ADMIN else 403


def call(client, route, method, csrf=""):
    path = route.path_format.format(
        name="bp" if "studies" in route.path else "style.css",
        id=2,
        number=2,
        verb="withdraw",
        part="best",
        identity="nothing",
        token="nothing",
        secret="nothing",
    )
    if method == "GET":
        return client.get(path)
    if route.path.startswith("/v1"):
        kind, body = BODIES.get(route.path, ("application/json", "[]"))
        return client.request(method, path, content=body, headers={"Content-Type": kind})
    return client.post(path, data={"csrf": csrf})


@pytest.fixture(scope="module")
def table(house):
    return [
        (route, method)
        for route in routes(house.running.app)
        for method in sorted(route.methods - {"HEAD"})
        if route.path != NEVER_ENDS
    ]


def test_every_route_says_what_it_needs_or_is_known_to_be_public(house):
    unguarded = {route.path for route in routes(house.running.app) if needs(route) is None}
    assert unguarded <= PUBLIC


@pytest.mark.parametrize("caller", CALLERS)
def test_a_program_gets_what_its_role_allows_and_nothing_else(house, table, caller):
    refused = Counter()
    with house.as_program(caller) as client:
        for route, method in table:
            if not route.path.startswith("/v1") and route.path != "/metrics":
                continue
            response, wanted = call(client, route, method), expected(needs(route), caller)
            where = f"{method} {route.path} as {caller}: {response.status_code}"
            if wanted is None:
                assert response.status_code not in (401, 403), where
                assert response.status_code < 500, where
            else:
                assert response.status_code == wanted, where
            refused[wanted] += 1
    assert sum(refused.values()) >= 18


@pytest.mark.parametrize("caller", CALLERS)
def test_a_person_gets_what_their_role_allows_and_nothing_else(house, table, caller):
    from sidestep.service.pages.shell import forms_secret  # noqa: PLC0415

    with house.as_person(caller) as browser:
        for route, method in table:
            if route.path.startswith("/v1") or route.path in PUBLIC:
                continue
            csrf = forms_secret(house.running.door, "a-browser")
            response, wanted = (
                call(browser.http, route, method, csrf),
                expected(needs(route), caller),
            )
            where = f"{method} {route.path} as {caller}: {response.status_code}"
            if wanted == 401 and method == "GET" and route.path != "/metrics":
                assert response.status_code == 303, where
                assert response.headers["location"].startswith("/login?to="), where
            elif wanted is None:
                assert response.status_code not in (401, 403), where
                assert response.status_code < 500, where
            else:
                assert response.status_code == wanted, where


def test_who_may_listen_may_read(house):
    for caller in CALLERS:
        with (
            house.as_program(caller) as client,
            client.stream("GET", "/v1/studies/bp/events?after=0") as response,
        ):
            wanted = {NOBODY: 401, STRANGER: 404}.get(caller, 200)
            assert response.status_code == wanted
            if wanted == 200:
                assert next(response.iter_lines()) == "retry: 2000"


def test_roles_are_those_of_the_record():
    assert set(CALLERS) - {NOBODY, STRANGER, OWNER} == set(ROLES)
