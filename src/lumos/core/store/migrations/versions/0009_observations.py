"""What was measured of each dataset as series, and the latest beside its document."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from lumos.core.store.catalog.observed_parts import join_document
from lumos.core.store.checksums import checksum_of

revision = "0009"
down_revision = "0008"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "observations",
        sa.Column("urn", KEY, primary_key=True),
        sa.Column("kind", KEY, primary_key=True),
        sa.Column("contributor", KEY, primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("document", sa.LargeBinary),
        sa.Column("checksum", sa.BigInteger),
    )
    op.add_column("datasets", sa.Column("observed", sa.Text))


def downgrade() -> None:
    connection = op.get_bind()
    rows = sa.text(
        "SELECT urn, contract_hash, version, document, observed FROM datasets "
        "WHERE observed IS NOT NULL AND urn > :after ORDER BY urn LIMIT 500"
    )
    put = sa.text("UPDATE datasets SET document = :document, checksum = :checksum WHERE urn = :urn")
    after = ""
    while found := connection.execute(rows, {"after": after}).all():
        for urn, contract_hash, version, document, observed in found:
            whole = join_document(document, observed)
            checksum = checksum_of(whole, urn, contract_hash, version)
            connection.execute(put, {"document": whole, "checksum": checksum, "urn": urn})
        after = found[-1][0]
    op.execute("ALTER TABLE datasets DROP COLUMN observed")
    op.drop_table("observations")
