"""How many requests that may write are worked on at once, so that threads are left for readers.

While another program holds the lock of a SQLite file, whoever writes waits for it in a thread. Reading
needs no lock, but it needs a thread.
"""

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

READING = ("GET", "HEAD", "OPTIONS")
LOGIN = "/login"


class WriterLimit:
    """Lets so many writers at once through that a quarter of the threads is left for readers."""

    def __init__(self, app: ASGIApp, threads: int) -> None:
        self._app = app
        self._room = anyio.CapacityLimiter(max(1, threads - max(1, threads // 4)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when there is room; a login waits elsewhere, and takes no thread."""
        if scope["type"] != "http" or scope["method"] in READING or scope["path"] == LOGIN:
            await self._app(scope, receive, send)
            return
        async with self._room:
            await self._app(scope, receive, send)
