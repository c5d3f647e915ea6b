"""People, tokens, grants, links to one question, the changes of all these, and secrets that sign."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables; what was changed is kept by the same triggers that keep the record."""
    _people()
    _grants()
    _links()
    op.create_table(
        "changes",
        sa.Column("id", sa.Text, primary_key=True),
        _needed("at"),
        _needed("actor"),
        _needed("body"),
    )
    op.create_table("secrets", sa.Column("name", sa.Text, primary_key=True), _needed("value"))
    for verb in ("UPDATE", "DELETE"):
        _guard(verb)


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        _needed("password"),
        _needed("stamp"),
        _needed("created"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        _needed("name"),
        _needed("digest"),
        _needed("created"),
        sa.Column("expires", sa.Text),
        sa.Column("revoked", sa.Text),
        sa.Column("key", sa.Text, unique=True),
    )


def _grants() -> None:
    op.create_table(
        "grants",
        sa.Column("holder", sa.Text, primary_key=True),
        sa.Column("study", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, primary_key=True),
    )
    op.create_index("grants_by_study", "grants", ["study"])


def _links() -> None:
    op.create_table(
        "links",
        sa.Column("id", sa.Text, primary_key=True),
        _needed("digest"),
        _needed("study"),
        _needed("ticket", BIG),
        _needed("label"),
        _needed("created"),
        _needed("expires"),
        sa.Column("revoked", sa.Text),
    )
    op.create_index("links_by_study", "links", ["study", "ticket"])


def _needed(name: str, kind: object = sa.Text) -> sa.Column[str]:
    return sa.Column(name, kind, nullable=False)  # type: ignore[arg-type]


def _guard(verb: str) -> None:
    begin = f"CREATE TRIGGER changes_no_{verb.lower()} BEFORE {verb} ON changes"
    if op.get_bind().dialect.name == "sqlite":
        refuse = f"SELECT RAISE(ABORT, 'the record only grows: no {verb} of changes')"
        op.execute(f"{begin} BEGIN {refuse}; END")
    else:
        op.execute(f"{begin} FOR EACH ROW EXECUTE FUNCTION sidestep_refuse()")
