"""The connection of a client to a service: a request is repeated until it is answered, and done once.

A request that writes has a key (`Idempotency-Key`), so repeating it is safe: after any failure, the entry
exists once or not at all.
"""

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from sidestep.errors import InputError, ServiceError, SidestepError
from sidestep.service.kinds import error_of

AGAIN = (429, 502, 503, 504)  # statuses after which a request is repeated
LONGEST_NAP = 2.0
KEY_PATTERN = r"^[!-~]+$"  # characters that are allowed in a header
KEY_SENTENCE = "must be letters, digits and signs of ASCII, without spaces"


class Answer(NamedTuple):
    """The response of a service."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Wire:
    """Requests to one service, from any number of threads."""

    def __init__(self, url: str, token: str | None, patience: float, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"a service must be at http://... or https://..., got {url!r}")
        self.url, self._parts, self._path = url.rstrip("/"), parts, parts.path.rstrip("/")
        self._token, self._patience, self._timeout = token, patience, timeout
        self._local = threading.local()
        self._open: list[http.client.HTTPConnection] = []

    def send(
        self, method: str, path: str, *, body: bytes | None = None, key: str | None = None
    ) -> Answer:
        """The response of the service; raises one of our exceptions if it refuses."""
        if key and not re.fullmatch(KEY_PATTERN, key):
            raise InputError(f"a key {KEY_SENTENCE}, got {key!r}")
        headers = {"Accept": "application/json"}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"Idempotency-Key": key} if key else {}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        answer = self._patiently(method, f"{self._path}{path}", body, headers)
        if answer.status >= 400:
            raise refused(answer)
        return answer

    def close(self) -> None:
        """Close every connection; a new one is opened when needed."""
        for connection in self._open:
            connection.close()

    def _drop(self) -> None:
        """Drop this thread's broken connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()

    def _patiently(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> Answer:
        deadline, nap = time.monotonic() + self._patience, 0.0
        while True:
            last = time.monotonic() > deadline
            try:
                answer = self._once(method, path, body, headers)
                if answer.status not in AGAIN or last:
                    return answer
                nap = max(nap, _asked_to_wait(answer))
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if last:
                    raise ServiceError(
                        f"{self.url} does not answer ({error or type(error).__name__}); whether the last "
                        "entry was saved is not known; trying again with the same key is safe"
                    ) from error
            time.sleep(min(nap * random.uniform(0.5, 1.0), LONGEST_NAP))  # noqa: S311
            nap = max(0.05, 2 * nap)

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connection_to(self._parts, self._timeout)
            self._open.append(connection)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, dict(response.headers.items()), response.read())


def connection_to(address: SplitResult, timeout: float) -> http.client.HTTPConnection:
    """A connection to the host of an address; it is opened by the first request."""
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    return kind(str(address.hostname), address.port, timeout=timeout)


def refused(answer: Answer) -> SidestepError:
    """The exception that the service raised, with its sentence."""
    try:
        problem = answer.json()
        name, detail = str(problem["type"]).rpartition("/")[2], str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answered with status {answer.status} and no sentence")
    return error_of(name, answer.status)(detail)


def encoded(value: Any) -> bytes:
    """The value as JSON bytes; numpy numbers are accepted."""
    try:
        return json.dumps(value, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"a request must be plain values and finite numbers, got {error}"
        ) from None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of {type(value).__name__}")


def _asked_to_wait(answer: Answer) -> float:
    wait = next((v for k, v in answer.headers.items() if k.lower() == "retry-after"), "")
    return min(float(wait), LONGEST_NAP) if wait.isdecimal() else 0.0
