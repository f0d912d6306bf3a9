"""The latest state of the catalog: datasets, lineage, entities, identities, search."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

# Sorts by code point on every server, whatever its locale, as SQLite and Python do.
KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# The words are normalised before they get here; the index only has to keep them whole.
SQLITE_SEARCH = """
CREATE VIRTUAL TABLE search_index USING fts5(
    name, fields, labels, prose,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'",
    prefix = '2 3'
)
"""


def upgrade() -> None:
    _create_datasets()
    _create_lineage_and_entities()
    if op.get_context().dialect.name == "sqlite":
        op.execute(SQLITE_SEARCH)
    else:
        op.create_table(
            "search_index",
            sa.Column("dataset_id", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("words", postgresql.TSVECTOR, nullable=False),
        )
        op.create_index("search_index_words", "search_index", ["words"], postgresql_using="gin")


def downgrade() -> None:
    for table in ("search_index", "identity_map", "entities", "lineage_edges"):
        op.drop_table(table)
    for table in ("dataset_labels", "datasets"):
        op.drop_table(table)


def _create_datasets() -> None:
    identifier = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "datasets",
        sa.Column("id", identifier, sa.Identity(), primary_key=True),
        sa.Column("urn", KEY, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", KEY, nullable=False),
        sa.Column("platform", KEY, nullable=False),
        sa.Column("format", sa.Text),
        sa.Column("contract_hash", sa.Text, nullable=False),
        sa.Column("version", sa.Text),
        sa.Column("quality_score", sa.Double),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
    )
    op.create_index("datasets_platform", "datasets", ["platform"])
    op.create_table(
        "dataset_labels",
        sa.Column(
            "dataset_id",
            identifier,
            sa.ForeignKey("datasets.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("kind", KEY, primary_key=True),
        sa.Column("value", KEY, primary_key=True),
    )
    op.create_index("dataset_labels_value", "dataset_labels", ["kind", "value"])


def _create_lineage_and_entities() -> None:
    op.create_table(
        "lineage_edges",
        # A hash of the three names: together they may exceed what PostgreSQL indexes.
        sa.Column("edge_key", KEY, primary_key=True),
        sa.Column("upstream_urn", KEY, nullable=False),
        sa.Column("downstream_urn", KEY, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
    )
    op.create_index("lineage_edges_upstream", "lineage_edges", ["upstream_urn", "edge_key"])
    op.create_index("lineage_edges_downstream", "lineage_edges", ["downstream_urn"])
    op.create_table(
        "entities",
        sa.Column("kind", KEY, primary_key=True),
        sa.Column("name", KEY, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
    )
    op.create_table(
        "identity_map",
        sa.Column("urn", KEY, primary_key=True),
        sa.Column("catalog", KEY, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
    )
