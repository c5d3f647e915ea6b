"""Passwords: hashed by argon2, checked a few at a time, with a delay after wrong guesses."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from sidestep.errors import InputError
from sidestep.service.problems import TOO_MANY, HttpProblem
from sidestep.studies.values import LONGEST_NAME

T = TypeVar("T")
SHORTEST, LONGEST = 10, 200
TRIES, WINDOW = 5, 300.0  # passwords per name that are tried in WINDOW seconds, unless one is right
NAMES = 10_000  # whose tries are counted; those that were tried least recently are forgotten
AT_ONCE = 2  # each takes 64 MB, and four threads of its own
MOST_WAITING = 200  # people who wait for their passwords to be checked

_HASHER = PasswordHasher()
_NOBODY = _HASHER.hash("a password that nobody has")
_AT_ONCE = threading.Semaphore(AT_ONCE)


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
    """Counts tries of passwords by name before they are checked, and refuses too many for a while.

    Passwords are checked two at a time, on threads of their own: however many people log in at
    once, the threads that answer pages are left alone.
    """

    def __init__(self) -> None:
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()
        self._turn = threading.Lock()
        self._checking = anyio.CapacityLimiter(AT_ONCE)
        self._waiting = 0

    async def log_in(self, name: str, check: Callable[[], T | None]) -> T | None:
        """The result of `check`, which is None if the password is wrong; HttpProblem after too many."""
        name = name[: LONGEST_NAME + 1]  # nobody has a longer one, and it is kept for a while
        if self._waiting >= MOST_WAITING:
            raise _too_many("too many people are logging in; try again in a few seconds", 5)
        self._try(name)
        self._waiting += 1
        try:
            found = await anyio.to_thread.run_sync(check, limiter=self._checking)
        finally:
            self._waiting -= 1
        if found is not None:
            with self._turn:
                self._tries.pop(name, None)
        return found

    def _try(self, name: str) -> None:
        """Count a try, or raise if there were too many recently that were not right."""
        now = time.monotonic()
        with self._turn:
            tries = self._tries.setdefault(name, deque(maxlen=TRIES))
            if len(tries) == TRIES and tries[0] > now - WINDOW:
                wait = max(1, round(WINDOW - (now - tries[0])))
                raise _too_many(
                    f"too many wrong passwords for this name; try again in {wait} seconds", wait
                )
            tries.append(now)
            self._tries.move_to_end(name)
            while len(self._tries) > NAMES:
                self._tries.popitem(last=False)


def _too_many(sentence: str, wait: int) -> HttpProblem:
    return HttpProblem(TOO_MANY, sentence, {"Retry-After": str(wait)})
