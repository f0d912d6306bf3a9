"""What ingestion last found of each dataset, so that a run looks only at what differs."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("datasets", sa.Column("origin", KEY))
    op.add_column("datasets", sa.Column("found_hash", sa.Text))
    op.create_index("datasets_origin", "datasets", ["origin"])
    datasets = sa.table("datasets", sa.column("urn"), sa.column("document"), sa.column("origin"))
    connection = op.get_bind()
    for urn, document in connection.execute(sa.select(datasets.c.urn, datasets.c.document)).all():
        found_by = json.loads(document).get("extensions", {}).get("lumos")
        if isinstance(found_by, dict) and "source" in found_by:
            named = datasets.update().where(datasets.c.urn == urn)
            connection.execute(named.values(origin=str(found_by["source"])))


def downgrade() -> None:
    op.drop_index("datasets_origin", "datasets")
    with op.batch_alter_table("datasets") as table:
        table.drop_column("found_hash")
        table.drop_column("origin")
