"""Who says what of each dataset and edge, and where the last scan of a source ended."""

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
    op.create_table(
        "edge_contributions",
        sa.Column("edge_key", KEY, primary_key=True),
        sa.Column("contributor", KEY, primary_key=True),
        sa.Column("upstream_urn", KEY, nullable=False),
        sa.Column("downstream_urn", KEY, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("checksum", sa.BigInteger),
    )
    op.create_index("edge_contributions_by_contributor", "edge_contributions", ["contributor"])
    op.create_table(
        "scan_marks",
        sa.Column("source", KEY, primary_key=True),
        sa.Column("mark", KEY, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "configured_sources",
        sa.Column("settings", KEY, primary_key=True),
        sa.Column("contributor", KEY, primary_key=True),
    )
    op.add_column("datasets", sa.Column("contributor", KEY))
    op.create_index("datasets_by_contributor", "datasets", ["contributor"])


def downgrade() -> None:
    op.drop_index("datasets_by_contributor", "datasets")
    op.execute("ALTER TABLE datasets DROP COLUMN contributor")
    op.drop_table("configured_sources")
    op.drop_table("scan_marks")
    op.drop_table("edge_contributions")
    op.drop_table("contributions")
