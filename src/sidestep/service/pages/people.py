"""Who may do what: roles in a study, links to one question, and for an admin of all people and tokens."""

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.errors import InputError, SidestepError
from sidestep.service.auth import Caller, Door, Visit
from sidestep.service.pages.forms import Form, Posted
from sidestep.service.pages.shell import go, page, study_path
from sidestep.service.pages.study_view import common
from sidestep.service.pages.views import day_text
from sidestep.service.passwords import hashed
from sidestep.service.routes import Admins, Owner
from sidestep.studies.people.roles import ADMIN, EVERYWHERE, ROLES, Grant, checked_roles
from sidestep.studies.people.tokens import make_token, token_to_json
from sidestep.studies.storage.events import utc_now

people_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@people_pages.get("/studies/{name}/people")
def roles(request: Request, visit: Admins) -> Response:
    """The roles in a study, and its links."""
    return _roles_page(request, visit)


@people_pages.post("/studies/{name}/people")
def give(request: Request, visit: Admins, form: Posted) -> Response:
    """Give a person exactly these roles."""
    door: Door = request.app.state.door
    try:
        _set_roles(door, visit, form)
    except SidestepError as error:
        return _roles_page(request, visit, str(error), 422)
    return go(study_path(visit.study.name, "people"))


@people_pages.post("/studies/{name}/links")
def link(request: Request, visit: Admins, form: Posted) -> Response:
    """Create a link that may answer one question; it is shown once."""
    door: Door = request.app.state.door
    days = form.maybe_number("days", "days") or door.settings.link_days
    try:
        made, secret = door.grants.add_link(
            visit.study.name,
            int(form.number("ticket", "the question")),
            form.text("label"),
            expires=utc_now() + timedelta(days=min(max(days, 0.01), 365)),
            actor=visit.caller.signs(),
        )
    except SidestepError as error:
        return _roles_page(request, visit, str(error), 422)
    shown = f"{str(request.base_url).rstrip('/')}/answer/{secret}"
    context = {**common(visit), "link": made, "shown": shown, "until": day_text(made.expires)}
    return page(request, "link_made.html", context, caller=visit.caller)


@people_pages.post("/studies/{name}/links/{identity}/revoke")
def revoke_link(request: Request, visit: Admins, identity: str, form: Posted) -> Response:
    """Revoke a link."""
    name = visit.study.name
    request.app.state.door.grants.revoke_link(name, identity, actor=visit.caller.signs())
    return go(study_path(name, "people"))


@people_pages.get("/people")
def everybody(request: Request, caller: Owner) -> Response:
    """People and tokens."""
    return _everybody_page(request, caller)


@people_pages.post("/people")
def add(request: Request, caller: Owner, form: Posted) -> Response:
    """Add a person."""
    door: Door = request.app.state.door
    try:
        roles = checked_roles(form.column("role"))
        password = hashed(form.get("password", [""])[0])
        _check_first(door, list(roles))
        person = door.accounts.add_person(form.text("name"), password, actor=caller.id)
        for role in roles:
            grant = Grant(person.id, EVERYWHERE, role)
            door.grants.give(grant, actor=caller.signs(), by=caller.id)
    except SidestepError as error:
        return _everybody_page(request, caller, error=str(error), status=422)
    return go("/people")


@people_pages.post("/people/remove")
def remove(request: Request, caller: Owner, form: Posted) -> Response:
    """Remove a person."""
    door, name = request.app.state.door, form.text("name")
    if name == caller.name:
        return _everybody_page(request, caller, error="you cannot remove yourself", status=422)
    door.accounts.remove_person(name, actor=caller.id)
    return go("/people")


@people_pages.post("/tokens")
def token(request: Request, caller: Owner, form: Posted) -> Response:
    """Create a token for a program; it is shown once."""
    door: Door = request.app.state.door
    try:
        made, text = make_token(
            door.accounts,
            door.grants,
            form.text("name"),
            form.column("role"),
            [form.text("study")] if form.text("study") else [],
            days=form.maybe_number("days", "days"),
            actor=caller.signs(),
            by=caller.id,
        )
    except SidestepError as error:
        return _everybody_page(request, caller, error=str(error), status=422)
    context = {"token": token_to_json(door.grants, made), "shown": text}
    return page(request, "token_made.html", context, caller=caller)


@people_pages.post("/tokens/{identity}/revoke")
def revoke_token(request: Request, caller: Owner, identity: str, form: Posted) -> Response:
    """Revoke a token."""
    request.app.state.door.accounts.revoke_token(identity, actor=caller.id)
    return go("/people")


def _check_first(door: Door, roles: list[str]) -> None:
    """Once there is a person, everybody must log in; so the first person must be an admin."""
    if not door.accounts.has_admin() and ADMIN not in roles:
        raise InputError("the first person must have the role admin, got another")


def _set_roles(door: Door, visit: Visit, form: Form) -> None:
    person, name = door.accounts.known(form.text("name")), visit.study.name
    wanted = set(checked_roles(form.column("role"))) if form.column("role") else set()
    signed = {"actor": visit.caller.signs(), "by": visit.caller.id}
    if person.id == visit.caller.id and ADMIN not in wanted and not visit.caller.rights.everywhere:
        raise InputError(
            "you must leave the role admin to yourself, or let another take it from you"
        )
    for role in ROLES:
        change = door.grants.give if role in wanted else door.grants.take
        change(Grant(person.id, name, role), **signed)


def _roles_page(request: Request, visit: Visit, error: str = "", status: int = 200) -> Response:
    door, name = request.app.state.door, visit.study.name
    here = door.grants.here(name)
    people = [
        {
            "name": person.name,
            "roles": {grant.role for grant in here if grant[:2] == (person.id, name)},
            "everywhere": {grant.role for grant in here if grant[:2] == (person.id, EVERYWHERE)},
        }
        for person in door.accounts.people()
    ]
    now = utc_now()
    links = [
        {**each._asdict(), "good": each.is_good(now), "until": day_text(each.expires)}
        for each in door.grants.links(name)
    ]
    context: dict[str, Any] = {
        "people": people,
        "links": links[::-1],
        "questions": [(each.id, ", ".join(each.waiting)) for each in visit.study.questions()],
        "roles": ROLES,
        "days": door.settings.link_days,
        "error": error,
    }
    return page(request, "people.html", {**common(visit), **context}, status, caller=visit.caller)


def _everybody_page(
    request: Request, caller: Caller, *, error: str = "", status: int = 200
) -> Response:
    door: Door = request.app.state.door
    people = [
        {
            "name": person.name,
            "created": person.created,
            "rights": sorted(door.grants.of(person.id)),
        }
        for person in door.accounts.people()
    ]
    context = {
        "people": people,
        "tokens": [token_to_json(door.grants, token) for token in door.accounts.tokens()][::-1],
        "roles": ROLES,
        "error": error,
        "open_door": not door.needs_login,
    }
    return page(request, "everybody.html", context, status, caller=caller)
