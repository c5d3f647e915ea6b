"""The HTTP parser in C, with a limit on the bytes outside the body: heads and trailers."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sidestep.service.bodies import LONGEST_HEAD


class LimitedHttp(HttpToolsProtocol):
    """One connection; a head that is too long is refused."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._unread = 0  # bytes since the last head or piece of a body

    def data_received(self, data: bytes) -> None:
        """Read data, unless too many bytes came without a complete head or a piece of a body."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of a request must be shorter.")

    def on_headers_complete(self) -> None:
        """A head is complete."""
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body was read; BodyLimit limits the size of bodies."""
        self._unread = 0
        super().on_body(body)
