"""The embedded catalog as hashes first: what a bulk scan reads before it reads any dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.checksums import DATASETS

if TYPE_CHECKING:
    from lumos.core.errors import DamagedDocumentError
    from lumos.core.models import LumosDataset
    from lumos.core.store.database import StateDatabase

_URNS_AT_A_TIME = 500


class CatalogStates:
    """Pages of the datasets that a catalog holds, by URN and hash of the contract."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database
        self._tables = CatalogTables(database)
        self.damaged: list[DamagedDocumentError] = []
        """What `load` passed over."""

    def count(self) -> int:
        """Return how many datasets there are."""
        rows = self._database.query("SELECT count(*) AS n FROM datasets")
        return rows[0].integer("n")

    def pages(self, size: int) -> Iterator[dict[str, str]]:
        """Yield hashes by URN, in ascending order of URN, in pages of a size."""
        after = ""
        while True:
            rows = self._database.query(
                "SELECT urn, contract_hash FROM datasets WHERE urn > :after "
                "ORDER BY urn LIMIT :limit",
                {"after": after, "limit": size},
            )
            if not rows:
                return
            yield {row.text("urn"): row.text("contract_hash") for row in rows}
            after = rows[-1].text("urn")

    def damaged_names(self) -> int:
        """Count the rows whose URN or hash is not what was written: whose they are is not known."""
        number, after = 0, ""
        while True:
            rows = self._database.query(
                "SELECT urn, contract_hash, version, checksum FROM datasets WHERE urn > :after "
                "ORDER BY urn LIMIT :limit",
                {"after": after, "limit": _URNS_AT_A_TIME},
            )
            if not rows:
                return number
            number += sum(not DATASETS.has_whole_keys(row) for row in rows)
            after = rows[-1].text("urn")

    def load(self, urns: Sequence[str]) -> dict[str, LumosDataset]:
        """Return the datasets of URNs of one page; a damaged one is left out and noted."""
        ordered = sorted(urns)
        found: dict[str, LumosDataset] = {}
        for start in range(0, len(ordered), _URNS_AT_A_TIME):
            some = self._tables.datasets_named(
                ordered[start : start + _URNS_AT_A_TIME], damaged=self.damaged.append
            )
            found.update((dataset.urn, dataset) for dataset in some)
        return found
