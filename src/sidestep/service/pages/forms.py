"""Reads submitted forms: fields with one value or several, and the CSRF token of their page."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from sidestep.errors import InputError
from sidestep.service.auth import check_host, check_origin
from sidestep.service.bodies import check_media
from sidestep.service.pages.shell import BROWSER, is_forms_secret
from sidestep.service.problems import FORBIDDEN, MALFORMED, HttpProblem
from sidestep.studies.factors import Factor
from sidestep.studies.frames import Columns, csv_columns
from sidestep.studies.measurement import read_report
from sidestep.studies.values import checked_positive, read_number

MOST = 3000  # fields
STEP = "step."  # how the fields of largest steps begin
KEYLESS = ("/login", "/logout", "/people", "/tokens", "/links")  # forms that no key makes safe
UNTOLD = ("csrf", "password")  # fields that no page repeats


class Form(dict[str, list[str]]):
    """Fields by name."""

    def text(self, name: str) -> str:
        """The typed text without surrounding spaces; empty if nothing was typed."""
        return self.get(name, [""])[0].strip()

    def maybe(self, name: str) -> str | None:
        """The typed text; None if nothing was typed."""
        return self.text(name) or None

    def number(self, name: str, what: str) -> float:
        """A number as people write it."""
        return read_number(what, self.text(name))

    def maybe_number(self, name: str, what: str) -> float | None:
        """A number as people write it; None if nothing was typed."""
        return self.number(name, what) if self.text(name) else None

    def report(self, name: str, what: str) -> Any:
        """A result as people write it: 2.31, or 2.31 ± 0.12, or < 0.3."""
        return read_report(what, self.text(name))

    def column(self, name: str) -> list[str]:
        """Every value of a field that may come several times."""
        return [value.strip() for value in self.get(name, [])]

    def table(self, name: str) -> Columns | None:
        """A pasted table; None if nothing was pasted. Cells at its end may be empty."""
        return csv_columns(self[name][0], "the table") if self.text(name) else None

    def reason(self) -> str:
        """Why; it must be said."""
        why = self.text("reason")
        if not why:
            raise InputError("a reason must be given, got none")
        return why

    def setting(self, prefix: str, factors: tuple[Factor, ...]) -> dict[str, Any] | None:
        """A value for every factor, also between its steps; None where nothing was typed."""
        typed = {factor.name: self.text(f"{prefix}{n}") for n, factor in enumerate(factors)}
        if not any(typed.values()):
            return None
        return {factor.name: factor.read(typed[factor.name], on_steps=False) for factor in factors}

    def steps(self, factors: tuple[Factor, ...]) -> dict[str, float] | None:
        """The most that factors may change, for those where it was typed; None where for none."""
        typed = {factor.name: self._step(n, factor) for n, factor in enumerate(factors)}
        return {name: step for name, step in typed.items() if step is not None} or None

    def wrong_steps(self, factors: tuple[Factor, ...]) -> list[int]:
        """The places of factors whose largest step cannot be used."""
        found = []
        for n, factor in enumerate(factors):
            try:
                self._step(n, factor)
            except InputError:
                found.append(n)
        return found

    def _step(self, place: int, factor: Factor) -> float | None:
        what = f"the largest step of {factor.name}"
        number = self.maybe_number(f"{STEP}{place}", what)
        return None if number is None else checked_positive(what, number)


async def posted(request: Request) -> Form:
    """The submitted form; refused unless it came from one of our pages."""
    form = await _read(request)
    await run_in_threadpool(check_page, request, form)  # it may look into the storage
    return form


async def typed(request: Request) -> Form:
    """What was typed into a form that could not be worked on, and that may be sent again.

    Empty without one, and for a form of another site: ours would send it again with a valid token. Only a
    form whose key is looked at may be sent twice.
    """
    if request.method != "POST" or request.url.path.endswith(KEYLESS):
        return Form()
    try:
        form = await _read(request)
        check_origin(request)
    except HttpProblem:
        return Form()
    if "key" not in form or not _is_ours(request, form):
        return Form()
    return Form({name: values for name, values in form.items() if name not in UNTOLD})


async def _read(request: Request) -> Form:
    check_media(request, "application/x-www-form-urlencoded")
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=MOST, errors="strict"
        )
    except (ValueError, UnicodeDecodeError):
        raise HttpProblem(MALFORMED, "the form cannot be read") from None
    form = Form()
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    return form


def check_page(request: Request, form: Mapping[str, list[str]]) -> None:
    """Refuse a form of another site, or of an outdated page."""
    check_origin(request)
    door = request.app.state.door
    if not door.needs_login:
        check_host(request)
    if not _is_ours(request, form):
        raise HttpProblem(
            FORBIDDEN, "this form is not from this page; nothing was saved; load the page again"
        )


def _is_ours(request: Request, form: Mapping[str, list[str]]) -> bool:
    """Whether one of our pages in this browser gave the form its token."""
    given = form.get("csrf", [""])[0]
    return is_forms_secret(request.app.state.door, request.cookies.get(BROWSER, ""), given)


Posted = Annotated[Form, Depends(posted)]
