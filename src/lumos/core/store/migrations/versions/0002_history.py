"""What happened: versions of datasets, the changes that made them, and runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "versions",
        sa.Column("urn", KEY, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", KEY, nullable=False),
        sa.Column("cloud_version", sa.Text),
        sa.Column("timestamp", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.UniqueConstraint("urn", "version", name="versions_version"),
    )
    op.create_table(
        "changes",
        sa.Column("urn", KEY, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("level", KEY, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["urn", "sequence"], ["versions.urn", "versions.sequence"], ondelete="CASCADE"
        ),
    )
    op.create_index("changes_level", "changes", ["level", "urn"])
    op.create_table(
        "runs",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("started_at", KEY, nullable=False),
        sa.Column("finished_at", sa.Text),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("runs_started_at", "runs", ["started_at"])


def downgrade() -> None:
    for table in ("runs", "changes", "versions"):
        op.drop_table(table)
