"""States of versions, compressed and without observations, found by the hash of the contract.

Versions that are there already stay as they are: their state is the text in `dataset`, which is
empty where there is a `state`.
"""

from __future__ import annotations

import sqlalchemy as sa
import zstandard
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("versions", sa.Column("contract_hash", sa.Text))
    op.add_column("versions", sa.Column("state", sa.LargeBinary))


def downgrade() -> None:
    versions = sa.table(
        "versions",
        sa.column("urn", sa.Text),
        sa.column("sequence", sa.BigInteger),
        sa.column("dataset", sa.Text),
        sa.column("state", sa.LargeBinary),
    )
    connection = op.get_bind()
    packed = sa.select(versions.c.urn, versions.c.sequence, versions.c.state)
    for urn, sequence, state in connection.execute(packed.where(versions.c.state.is_not(None))):
        text = zstandard.ZstdDecompressor().decompress(bytes(state)).decode()
        one = (versions.c.urn == urn) & (versions.c.sequence == sequence)
        connection.execute(versions.update().where(one).values(dataset=text))
    # Never by a copy of the table: dropping the old one would take the changes along.
    op.execute("ALTER TABLE versions DROP COLUMN state")
    op.execute("ALTER TABLE versions DROP COLUMN contract_hash")
