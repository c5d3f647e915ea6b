"""SQL statements that are compiled once per dialect and passed directly to the driver.

SQLAlchemy's work per statement takes several times as long as the database's. Here SQLAlchemy only
compiles the text and keeps the connections. Errors are raised as SQLAlchemy would.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import ClauseElement, Connection, Dialect
from sqlalchemy.exc import DBAPIError

Values = dict[str, Any]


class _Written(NamedTuple):
    """A statement as text for the driver, and its constant values."""

    text: str
    constants: Values


class Ready:
    """One statement, for every dialect it is used on."""

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._written: dict[str, _Written] = {}

    def rows(self, connection: Connection, values: Values) -> list[Any]:
        """All rows of the result."""
        found: list[Any] = self._run(connection, values, "fetchall")
        return found

    def change(self, connection: Connection, values: Values) -> int:
        """The number of rows changed."""
        return int(self._run(connection, values, "rowcount"))

    def text(self, dialect: Dialect) -> str:
        """The SQL text for the driver."""
        return self._for(dialect).text

    def _run(self, connection: Connection, values: Values, wanted: str) -> Any:
        text, constants = self._for(connection.dialect)
        driver: Any = connection.connection.driver_connection
        try:
            cursor = driver.execute(text, {**constants, **values} if constants else values)
            return cursor.fetchall() if wanted == "fetchall" else cursor.rowcount
        except connection.dialect.loaded_dbapi.Error as error:
            raise _as_raised(connection, text, values, error) from error

    def _for(self, dialect: Dialect) -> _Written:
        written = self._written.get(dialect.name)
        if written is None:
            written = self._written[dialect.name] = self._write(dialect)
        return written

    def _write(self, dialect: Dialect) -> _Written:
        kind: Any = type(dialect)
        by_name = dialect if dialect.paramstyle == "pyformat" else kind(paramstyle="named")
        written: Any = self._statement.compile(dialect=by_name)
        constants = {name: bind.value for name, bind in written.binds.items() if not bind.required}
        return _Written(str(written), constants)


@contextmanager
def errors_of(connection: Connection) -> Iterator[None]:
    """Raise the errors of statements that were run on the driver itself as SQLAlchemy raises them."""
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise _as_raised(connection, "", {}, error) from error


def _as_raised(connection: Connection, text: str, values: Values, error: Any) -> BaseException:
    """The error as SQLAlchemy wraps it; a connection that broke is not used again."""
    lost = connection.dialect.is_disconnect(error, connection.connection, None)
    if lost:
        connection.invalidate(error)
    base = connection.dialect.loaded_dbapi.Error
    raised: BaseException = DBAPIError.instance(
        text, values, error, base, connection_invalidated=lost, dialect=connection.dialect
    )
    return raised
