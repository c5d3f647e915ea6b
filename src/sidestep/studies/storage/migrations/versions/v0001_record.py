"""The record: studies, events, texts, blobs, snapshots, and triggers that keep it append-only."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables, their indexes and their triggers."""
    _studies()
    _events()
    _texts()
    op.create_table("blobs", sa.Column("hash", sa.Text, primary_key=True), _needed("body"))
    op.create_table(
        "snapshots",
        *_event_key(),
        _needed("hash"),
        _needed("policy"),
        _needed("state"),
        sa.ForeignKeyConstraint(["study_id", "seq"], ["events.study_id", "events.seq"]),
    )
    if op.get_bind().dialect.name == "sqlite":
        _sqlite_triggers()
    else:
        _postgresql_triggers()


def _studies() -> None:
    op.create_table(
        "studies",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        _needed("status"),
        _needed("config"),
        _needed("head_seq", BIG),
        _needed("head_hash"),
        _needed("updated"),
    )
    op.create_index("studies_by_change", "studies", ["status", sa.text("updated DESC"), "name"])


def _events() -> None:
    op.create_table(
        "events",
        *_event_key(),
        _needed("kind"),
        sa.Column("ticket", BIG),
        sa.Column("key", sa.Text),
        sa.Column("outcome", sa.Text),
        _needed("body"),
        _needed("at"),
        _needed("code"),
        _needed("actor_digest"),
        sa.Column("reason_digest", sa.Text),
        _needed("prev_hash"),
        _needed("hash"),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"]),
    )
    op.create_index("events_key", "events", ["study_id", "key"], unique=True)
    settling = sa.text("kind IN ('answered', 'withdrawn')")
    op.create_index(
        "events_settled",
        "events",
        ["study_id", "ticket", sa.text("coalesce(outcome, '')")],
        unique=True,
        sqlite_where=settling,
        postgresql_where=settling,
    )
    op.create_index("events_ticket", "events", ["study_id", "ticket"])


def _texts() -> None:
    op.create_table(
        "texts",
        *_event_key(),
        sa.Column("actor", sa.Text),
        sa.Column("actor_salt", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("reason_salt", sa.Text),
        sa.ForeignKeyConstraint(["study_id", "seq"], ["events.study_id", "events.seq"]),
        sqlite_with_rowid=False,
    )


def _event_key() -> tuple[sa.Column[int], sa.Column[int]]:
    return (
        sa.Column("study_id", BIG, primary_key=True, autoincrement=False),
        sa.Column("seq", BIG, primary_key=True, autoincrement=False),
    )


def _needed(name: str, kind: object = sa.Text) -> sa.Column[str]:
    return sa.Column(name, kind, nullable=False)  # type: ignore[arg-type]


# What must not happen to a row, as a condition on OLD and NEW; None: nothing may.
GUARDS = {
    ("events", "UPDATE"): None,
    ("events", "DELETE"): None,
    ("blobs", "UPDATE"): None,
    ("blobs", "DELETE"): None,
    ("texts", "DELETE"): None,
    ("texts", "UPDATE"): """
        NEW.study_id <> OLD.study_id OR NEW.seq <> OLD.seq
        OR NOT ((NEW.actor IS NULL AND NEW.actor_salt IS NULL)
                OR COALESCE(NEW.actor = OLD.actor AND NEW.actor_salt = OLD.actor_salt, FALSE))
        OR NOT ((NEW.reason IS NULL AND NEW.reason_salt IS NULL)
                OR COALESCE(NEW.reason = OLD.reason AND NEW.reason_salt = OLD.reason_salt, FALSE))
    """,
    ("studies", "DELETE"): None,
    ("studies", "UPDATE"): """
        NEW.id <> OLD.id OR NEW.name <> OLD.name OR NEW.config <> OLD.config
        OR NEW.head_seq <= OLD.head_seq
    """,
}
SAYING = "the record only grows: no {verb} of {table}"


def _sqlite_triggers() -> None:
    for (table, verb), condition in GUARDS.items():
        when = f"WHEN {condition}" if condition else ""
        op.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {when} BEGIN"
            f" SELECT RAISE(ABORT, '{SAYING.format(verb=verb, table=table)}'); END"
        )


def _postgresql_triggers() -> None:
    op.execute(
        "CREATE FUNCTION sidestep_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'the record only grows: no % of %', TG_OP, TG_TABLE_NAME; END $$"
    )
    for (table, verb), condition in GUARDS.items():
        when = f"WHEN ({condition})" if condition else ""
        op.execute(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}"
            f" FOR EACH ROW {when} EXECUTE FUNCTION sidestep_refuse()"
        )
    for table in ("events", "texts", "blobs", "studies"):
        op.execute(
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION sidestep_refuse()"
        )
