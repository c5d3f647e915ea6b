"""What went wrong, for a person: a page with the same sentence that a program gets."""

from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from sidestep.service.kinds import Kind
from sidestep.service.pages.forms import Form
from sidestep.service.pages.shell import file, go, names_of_files, page

PROGRAMS = ("/v1/", "/health", "/ready", "/metrics")
KEEPING = (503, 507)  # statuses after which the same form may be sent again
HIDDEN = ("key", "to", "sure", "question")  # fields that nobody typed
FOREVER = "public, max-age=31536000, immutable"

files = APIRouter(include_in_schema=False)


def is_for_people(request: Request) -> bool:
    """Whether a browser sent the request."""
    return not request.url.path.startswith(PROGRAMS)


def problem_page(request: Request, kind: Kind, detail: str, form: Form) -> Response:
    """The error page; without a login, a redirect to the login page and back.

    While the storage cannot be used, what was typed stays on the page, to be sent again.
    """
    if kind.status == 401 and request.method == "GET":
        to = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return go(f"/login?to={quote(to, safe='/')}")
    kept = form if kind.status in KEEPING else Form()
    context = {"status": kind.status, "title": kind.title, "detail": detail, "kept": kept}
    context |= {"action": request.url.path, "shown": _shown(kept)}
    response = page(request, "problem.html", context, kind.status)
    if kind.status == 503:
        response.headers["Retry-After"] = "1"
    return response


def _shown(form: Form) -> list[str]:
    """What a person typed, without what the page itself put in the form."""
    fields = (values for name, values in form.items() if name not in HIDDEN)
    return [value for values in fields for value in values if value.strip()]


@files.get("/static/{name}")
async def static(name: str) -> Response:
    """A static file; its address changes with its content."""
    if name not in names_of_files():
        return Response(status_code=404)
    content, kind, _ = file(name)
    return Response(content, media_type=kind, headers={"Cache-Control": FOREVER})


@files.get("/guide")
def guide(request: Request) -> Response:
    """How to read a study's page."""
    return page(request, "guide.html")
