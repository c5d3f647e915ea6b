"""Passwords: hashed by argon2, checked a few at a time, with a delay after wrong guesses."""

import threading
import time
from collections import defaultdict, deque

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from sidestep.errors import InputError
from sidestep.service.problems import TOO_MANY, HttpProblem

SHORTEST, LONGEST = 10, 200
TRIES, WINDOW = 5, 300.0  # wrong passwords per name that are allowed in WINDOW seconds

_HASHER = PasswordHasher()
_NOBODY = _HASHER.hash("a password that nobody has")
_AT_ONCE = threading.Semaphore(2)  # each takes 64 MB


def hashed(password: str) -> str:
    """The hash of a password, as it is stored."""
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        length = len(password) if isinstance(password, str) else "none"
        raise InputError(f"a password must have {SHORTEST} to {LONGEST} characters, got {length}")
    with _AT_ONCE:
        return _HASHER.hash(password)


def matches(kept: str | None, password: str) -> bool:
    """Whether the password is right; takes as long if there is no such person (None)."""
    with _AT_ONCE:
        try:
            return _HASHER.verify(kept or _NOBODY, password[:LONGEST]) and kept is not None
        except (VerificationError, InvalidHashError):
            return False


class Guard:
    """Counts wrong passwords by name, and refuses further attempts for a while."""

    def __init__(self) -> None:
        self._wrong: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=TRIES))
        self._turn = threading.Lock()

    def check(self, name: str) -> None:
        """Raise if there were too many wrong passwords recently."""
        with self._turn:
            tried = list(self._wrong.get(name, ()))
            if len(tried) == TRIES and tried[0] > time.monotonic() - WINDOW:
                wait = round(WINDOW - (time.monotonic() - tried[0]))
                raise HttpProblem(
                    TOO_MANY,
                    f"too many wrong passwords for this name; try again in {wait} seconds",
                    {"Retry-After": str(wait)},
                )

    def note(self, name: str, *, right: bool) -> None:
        """Count a wrong password; a right one resets the count."""
        with self._turn:
            if right:
                self._wrong.pop(name, None)
            else:
                self._wrong[name].append(time.monotonic())
            if len(self._wrong) > 10_000:
                self._wrong.clear()
