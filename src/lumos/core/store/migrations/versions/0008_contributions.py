"""Who says what of each dataset, where more than one contributor speaks of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "contributions",
        sa.Column("urn", KEY, primary_key=True),
        sa.Column("contributor", KEY, primary_key=True),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("found_hash", sa.Text),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("document", sa.Text),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("checksum", sa.BigInteger),
    )
    op.create_index("contributions_by_contributor", "contributions", ["contributor"])
    op.add_column("datasets", sa.Column("contributor", KEY))
    op.create_index("datasets_by_contributor", "datasets", ["contributor"])


def downgrade() -> None:
    op.drop_index("datasets_by_contributor", "datasets")
    op.execute("ALTER TABLE datasets DROP COLUMN contributor")
    op.drop_table("contributions")
