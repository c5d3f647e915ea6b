"""The entry point of Alembic; `schema.upgrade` passes the connection, which holds its lock."""

from alembic import context

from sidestep.studies.storage.tables import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=True,  # SQLite's is too, inside BEGIN IMMEDIATE
)
context.run_migrations()
