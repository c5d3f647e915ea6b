"""Requests as a parser in C reads them, with a limit on what is not body: heads, and what ends a body."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sidestep.service.bodies import LONGEST_HEAD


class LimitedHttp(HttpToolsProtocol):
    """One connection; whoever sends a head without an end is refused."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._unread = 0  # bytes since the last head or piece of a body

    def data_received(self, data: bytes) -> None:
        """Read on, as long as it leads to something."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of a request must be shorter.")

    def on_headers_complete(self) -> None:
        """A head is read."""
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body is read; how many bytes that may be is for BodyLimit to say."""
        self._unread = 0
        super().on_body(body)
