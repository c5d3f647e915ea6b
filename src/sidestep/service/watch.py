"""Middleware for every request: a request number, a log line, metrics, security headers."""

import logging
import re
import secrets
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sidestep.service.logs import REQUEST
from sidestep.service.metrics import Metrics
from sidestep.service.problems import plain_kind, problem

LOGGER = logging.getLogger("sidestep.service")
_USABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
NOTED = "something went wrong here; it was noted under the number of this request"
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Watch:
    """Numbers every request, times it, counts it, and adds security headers to the response."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log the result."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number = _number(scope)
        token, began, status = REQUEST.set(number), time.perf_counter(), 500
        began_answer = False

        async def sending(message: Message) -> None:
            nonlocal status, began_answer
            if message["type"] == "http.response.start":
                status, began_answer = message["status"], True
                _dress(MutableHeaders(scope=message), number)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            LOGGER.error("unexpected", exc_info=error)
            if began_answer:
                raise
            await problem(plain_kind(500), NOTED)(scope, receive, sending)
        finally:
            self._note(scope, status, time.perf_counter() - began)
            REQUEST.reset(token)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Log by route, not by address: an address may contain the secret of a link."""
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        route = getattr(scope.get("route"), "path", "(none)")
        self._metrics.requests.labels(method, route, status).inc()
        self._metrics.seconds.labels(method, route).observe(seconds)
        more = {"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 1)}
        name = scope.get("path_params", {}).get("name")
        LOGGER.info("answered", extra={"more": {**more, **({"study": name} if name else {})}})


def _number(scope: Scope) -> str:
    for key, value in scope["headers"]:
        if key == b"x-request-id" and _USABLE.fullmatch(value.decode("latin-1")):
            return str(value, "latin-1")
    return secrets.token_hex(8)


def _dress(headers: MutableHeaders, number: str) -> None:
    headers["X-Request-ID"] = number
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")
