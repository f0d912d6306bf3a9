"""Alerts on changes, and whether they were sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("channel", KEY, nullable=False),
        sa.Column("urn", KEY, nullable=False),
        sa.Column("version", KEY, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("level", KEY, nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", KEY, nullable=False),
        sa.Column("next_attempt_at", KEY, nullable=False),
        sa.Column("claimed_until", KEY),
        sa.Column("sent_at", KEY),
        sa.Column("error", sa.Text),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("alerts_due", "alerts", ["state", "channel", "next_attempt_at"])
    op.create_index("alerts_version", "alerts", ["urn", "version"])


def downgrade() -> None:
    op.drop_table("alerts")
