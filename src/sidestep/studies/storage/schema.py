"""Migrates a database to the schema of this version, or raises the reason why not."""

from importlib import resources

import sqlalchemy as sa
from sqlalchemy import Connection

from sidestep.errors import SchemaError
from sidestep.studies.storage.tables import METADATA, SCHEMA, VERSION_TABLE

_VERSION = sa.text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608  # a constant of ours
_UPGRADE_LOCK = sa.text("SELECT pg_advisory_xact_lock(5150119)")  # one upgrade at a time


def is_current(connection: Connection, where: str) -> bool:
    """Whether the tables are of this version; SchemaError if they are newer or not ours."""
    found = _found(connection)
    if found is not None and found > SCHEMA:
        raise SchemaError(
            f"{where} was written by a newer sidestep (its schema is {found}, this version knows"
            f" {SCHEMA}); install a newer version; nothing was changed"
        )
    if found is None:
        _check_nothing_foreign(connection, where)
    return found == SCHEMA


def upgrade(connection: Connection, where: str) -> None:
    """Run the missing migrations, inside the transaction of this connection.

    A new SQLite file is created directly in its final form, without loading the migrations: loading them
    would take most of the time of creating a study.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_UPGRADE_LOCK)
    if is_current(connection, where):
        return  # another process has done it
    if connection.dialect.name == "sqlite" and _found(connection) is None:
        _make_newest(connection)
        return
    from alembic import command  # noqa: PLC0415  # a quarter of a second, once in a file's life
    from alembic.config import Config  # noqa: PLC0415

    settings = Config()
    settings.set_main_option("script_location", "sidestep.studies.storage:migrations")
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")


def newest_statements() -> list[str]:
    """The statements that create a new SQLite file; a test compares them with the migrations."""
    folder = resources.files("sidestep.studies.storage.migrations")
    return folder.joinpath("newest.sql").read_text(encoding="utf-8").strip().split(";\n\n")


def _make_newest(connection: Connection) -> None:
    for statement in newest_statements():
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{SCHEMA}')")  # noqa: S608


def _found(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    row = connection.execute(_VERSION).first()
    return None if row is None else str(row[0])


def _check_nothing_foreign(connection: Connection, where: str) -> None:
    foreign = sorted(set(METADATA.tables) & set(sa.inspect(connection).get_table_names()))
    if foreign:
        raise SchemaError(
            f"{where} has a table {foreign[0]!r} of another program; give sidestep a file, a"
            " database or a schema of its own; nothing was changed"
        )
