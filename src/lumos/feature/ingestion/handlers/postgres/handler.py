"""The source handler of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.models import Urn
from lumos.feature.ingestion.handlers.base_ingestion_handler import BaseIngestionHandler, Claim
from lumos.feature.ingestion.handlers.postgres.catalog import CatalogReader
from lumos.feature.ingestion.handlers.postgres.connection import read_only_transaction
from lumos.feature.ingestion.handlers.postgres.datasets import (
    PLATFORM,
    RecordBuilder,
    database_parts,
)
from lumos.feature.ingestion.handlers.postgres.settings import PostgresSettings
from lumos.feature.ingestion.records import PreviousScan, ScannedScope, ScanRecord, ScanUnit

if TYPE_CHECKING:
    from collections.abc import Iterable


class PostgreSQLHandler(BaseIngestionHandler[PostgresSettings]):
    """Reads tables and views of a database from its system catalog, and no row of them.

    A database is one unit: its tables are seen at one moment, by one query, and the scope that
    the unit has listed is the whole database.
    """

    source_type = "postgres"
    settings_model = PostgresSettings

    @override
    def claims(self) -> Iterable[Claim]:
        return (Claim(self._prefix(), self.settings.server.address),)

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        with read_only_transaction(self.settings) as connection:
            CatalogReader(connection, self.settings).schemas()
        yield ScanUnit(self.settings.server.database)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        with read_only_transaction(self.settings) as connection:
            reader = CatalogReader(connection, self.settings)
            schemas = reader.schemas()
            builder = RecordBuilder(self.settings, reader.types())
            for row in reader.relations(schemas):
                if self.settings.reads_table(row["schema"], row["name"]):
                    yield from builder.records(row)
        yield ScannedScope(self._prefix())

    def _prefix(self) -> str:
        return str(Urn.of_path(PLATFORM, *database_parts(self.settings)))
