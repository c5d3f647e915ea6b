"""A notice to an allowed host when an answer arrives: which study and question; no value, no name."""

import hmac
import http.client
import json
import queue
import threading
import time
from hashlib import sha256
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from sidestep.errors import InputError
from sidestep.service.metrics import Metrics
from sidestep.service.settings import Settings
from sidestep.service.watch import LOGGER
from sidestep.service.wire import connection_to
from sidestep.studies.recording import Written
from sidestep.studies.storage.events import written

TOLD = ("answered", "corrected", "withdrawn", "imported")
WAITING = 1000  # length of the queue; further notices are dropped, since the record has the answers
TRIES, TIMEOUT = 4, 5.0


class Notices:
    """Sends notices one after another, in a separate thread, if a webhook is set."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._to = checked_address(settings) if settings.webhook else None
        self._key = settings.webhook_secret.encode()
        self._metrics = metrics
        self._line: queue.Queue[dict[str, Any] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._send_all, name="notices", daemon=True)
        if self._to is not None:
            self._thread.start()

    def saw(self, study: str, done: object) -> None:
        """Queue notices of the answers that were saved."""
        if self._to is None or not isinstance(done, Written) or done.repeated:
            return
        for event in done.events:
            if event.kind in TOLD:
                self._put(
                    {
                        "study": study,
                        "entry": event.seq,
                        "kind": event.kind,
                        "question": event.ticket,
                        "at": written(event.at),
                    }
                )

    def close(self) -> None:
        """Send the queued notices, then stop."""
        if self._to is not None:
            self._line.put(None)
            self._thread.join(TIMEOUT)

    def _put(self, notice: dict[str, Any]) -> None:
        try:
            self._line.put_nowait(notice)
        except queue.Full:
            self._metrics.notices.labels("dropped").inc()

    def _send_all(self) -> None:
        while (notice := self._line.get()) is not None:
            result = "sent" if self._sent(notice) else "failed"
            self._metrics.notices.labels(result).inc()

    def _sent(self, notice: dict[str, Any]) -> bool:
        body = json.dumps(notice).encode()
        for attempt in range(TRIES):
            try:
                if self._post(body) < 400:
                    return True
            except (OSError, http.client.HTTPException) as error:
                LOGGER.warning("a notice was not sent: %s", error)
            time.sleep(0.2 * 2**attempt)
        return False

    def _post(self, body: bytes) -> int:
        """The HTTP status of one attempt; redirects are not followed."""
        assert self._to is not None
        connection = connection_to(self._to, TIMEOUT)
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["X-Sidestep-Signature"] = hmac.new(self._key, body, sha256).hexdigest()
        try:
            address = urlunsplit(("", "", self._to.path or "/", self._to.query, ""))
            connection.request("POST", address, body, headers)
            return connection.getresponse().status
        finally:
            connection.close()


def checked_address(settings: Settings) -> SplitResult:
    """The address of the webhook; raises if its host is not allowed."""
    address = urlsplit(settings.webhook)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InputError(f"webhook must be http://... or https://..., got {settings.webhook!r}")
    if address.hostname not in settings.webhook_hosts:
        raise InputError(
            f"webhook must be at one of webhook_hosts ({', '.join(settings.webhook_hosts) or 'none'}), "
            f"got {address.hostname!r}"
        )
    return address
