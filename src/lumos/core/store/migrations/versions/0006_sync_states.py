"""What each catalog was last sent, so that a sync sends only what differs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "sync_states",
        sa.Column("target", KEY, primary_key=True),
        sa.Column("kind", KEY, primary_key=True),
        sa.Column("name", KEY, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("kept", sa.Text),
        sa.Column("updated_at", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("sync_states")
