"""The page of a link that may answer one question, for a laboratory; it shows nothing else."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.service.kinds import Kind
from sidestep.service.pages.forms import Posted
from sidestep.service.pages.receipts import receipt_view
from sidestep.service.pages.shell import page
from sidestep.service.pages.telling import Telling, asked_question, tell
from sidestep.service.pages.views import day_text, question_view
from sidestep.service.problems import HttpProblem
from sidestep.studies.people.grants import Link
from sidestep.studies.storage.events import utc_now

GONE = Kind(410, "gone", "This link is no longer good")
UNKNOWN = Kind(404, "no-such-link", "There is no such link")

link_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@link_pages.get("/answer/{secret}")
def question(request: Request, secret: str) -> Response:
    """The question, or its answer."""
    link = good_link(request, secret)
    study = request.app.state.desk.study(link.study)
    waits = next((each for each in study.questions() if each.id == link.ticket), None)
    asked = waits or asked_question(study, link.ticket)
    settled = [each for each in study.verbs.about(link.ticket) if each.kind != "asked"]
    context: dict[str, Any] = {
        "link": link,
        "title": study.plan.title or study.name,
        "words": study.plan.words,
        "plan": study.plan,
        "question": question_view(study.plan, asked),
        "until": day_text(link.expires),
        "action": f"/answer/{secret}",
        "waits": waits is not None,
        "receipt": receipt_view(study, settled[0].seq, link.label) if settled else None,
    }
    return page(request, "link.html", context)


@link_pages.post("/answer/{secret}")
def answer(request: Request, secret: str, form: Posted) -> Response:
    """Record the result; a surprising one must be confirmed."""
    link = good_link(request, secret)
    study = request.app.state.desk.study(link.study)
    telling = Telling(study, link.ticket, link.label, f"/answer/{secret}", narrow=True)
    return tell(request, telling, form)


def good_link(request: Request, secret: str) -> Link:
    """The link, if it is valid."""
    link: Link | None = request.app.state.door.grants.link_shown(secret)
    if link is None:
        raise HttpProblem(UNKNOWN, "there is no such link; ask whoever sent it for another")
    if not link.is_good(utc_now()):
        raise HttpProblem(GONE, "this link has run out or was revoked; nothing was saved")
    return link
