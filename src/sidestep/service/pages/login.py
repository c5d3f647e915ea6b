"""Login and logout."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.service.auth import SESSION, Door
from sidestep.service.pages.forms import Posted
from sidestep.service.pages.shell import go, page, set_cookie
from sidestep.service.passwords import matches
from sidestep.studies.people.accounts import Person

WRONG = "This name and this password do not belong together."
login_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@login_pages.get("/login")
def login(request: Request, to: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """The login form."""
    door: Door = request.app.state.door
    context = {"to": _inside(to), "error": "", "anybody": bool(door.accounts.people())}
    return page(request, "login.html", context)


@login_pages.post("/login")
async def logged_in(request: Request, form: Posted) -> Response:
    """Start a session; a wrong name and a wrong password give the same message."""
    door: Door = request.app.state.door
    name, password = form.text("name"), form.get("password", [""])[0]
    to = _inside(form.text("to"))

    def check() -> Person | None:
        person = door.accounts.person_named(name)
        return person if matches(person.password if person else None, password) else None

    person = await request.app.state.guard.log_in(name, check)
    if person is None:
        return page(request, "login.html", {"to": to, "error": WRONG, "anybody": True}, 401)
    response = go(to)
    age = int(3600 * door.settings.session_hours)
    set_cookie(response, door, SESSION, door.session(person), age)
    return response


@login_pages.post("/logout")
def logged_out(request: Request, form: Posted) -> Response:
    """End every session of this person: a copy of their cookie is worth nothing either."""
    door: Door = request.app.state.door
    person = door.person(request)
    if person is not None:
        door.accounts.end_sessions(person, actor=person.id)
    response = go("/login")
    response.delete_cookie(SESSION, httponly=True, samesite="strict")
    return response


def _inside(to: str) -> str:
    """A local address: after a login nobody is redirected to another site."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"
