"""What is logged on stderr: lines of JSON for a collector, short lines for a person at a terminal."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)


class JsonFormatter(logging.Formatter):
    """A line of JSON for every record, with the number of the request it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (request := REQUEST.get()) is not None:
            line["request"] = request
        line |= getattr(record, "more", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class PlainFormatter(logging.Formatter):
    """The time, and what happened: 18:21:44 GET / 200 in 3.7 ms."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback where there is one."""
        said, more = record.getMessage(), getattr(record, "more", {})
        if "route" in more:
            said = "{method} {route} {status} in {ms} ms".format(**more)
        if record.levelno >= logging.WARNING:
            said = f"{record.levelname.lower()}: {said}"
        line = f"{datetime.fromtimestamp(record.created):%H:%M:%S} {said}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def set_up_logs(level: str) -> None:
    """Log ours and the server's messages on stderr; start and stop of the server only at level debug."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter() if sys.stderr.isatty() else JsonFormatter())
    for name in ("sidestep", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        quiet = name != "sidestep" and level == "info"  # `ready` prints the address
        logger.setLevel("WARNING" if quiet else level.upper())
