"""Delays Ctrl-C until a result that is being saved is complete."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

CAN_BLOCK = hasattr(signal, "pthread_sigmask")  # not on Windows


def start_deaf(process: BaseProcess) -> None:
    """Start a process that does not receive Ctrl-C (a terminal sends it to every process at once).

    The process inherits the set of blocked signals. The helper process of multiprocessing, which starts
    with the first process, unblocks Ctrl-C again, so it is started first.
    """
    if CAN_BLOCK:
        resource_tracker.ensure_running()
    with uninterrupted():
        process.start()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block.

    Another thread may receive a signal that is blocked in this one, so the handler is replaced as well.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before: Any = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if CAN_BLOCK else set()
    try:
        yield
    finally:
        if CAN_BLOCK:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
