"""Who may write now, and runs that have not ended yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("operation", KEY, primary_key=True),
        sa.Column("scope", KEY, primary_key=True),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("host", sa.Text),
        sa.Column("pid", sa.BigInteger),
        sa.Column("machine", sa.Text),
        sa.Column("clock", sa.Text),
        sa.Column("token", sa.Text),
        sa.Column("purpose", sa.Text),
        sa.Column("acquired_at", sa.Text),
        sa.Column("seconds", sa.Double),
        sa.Column("heartbeat_at", sa.Double),
        sa.Column("expires_at", sa.Double),
    )
    op.add_column("runs", sa.Column("state", sa.Text))
    op.add_column("runs", sa.Column("fence", sa.BigInteger))


def downgrade() -> None:
    op.execute("ALTER TABLE runs DROP COLUMN fence")
    op.execute("ALTER TABLE runs DROP COLUMN state")
    op.drop_table("leases")
