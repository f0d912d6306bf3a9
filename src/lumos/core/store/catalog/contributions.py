"""What each contributor says of a dataset, where there are several.

A dataset of which only one contributor speaks needs no row here: its own document says all, and
`datasets.contributor` names who. So reads, and the ingestion of what only one source finds, cost
what they would cost without contributions. What contributors measured is not here but in
`observations`, from where it is joined to what they say.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lumos.core.models import Contributor, ContributorKind, Urn
from lumos.core.models.contribution import Contribution, statements_of
from lumos.core.models.dataset_contributions import EARLIER, DatasetContributions
from lumos.core.store.catalog.observations import ObservationTable
from lumos.core.store.catalog.observed_parts import whole_document
from lumos.core.store.checksums import CONTRIBUTIONS, DATASETS
from lumos.core.store.documents import as_moment, stored_object, stored_text
from lumos.core.store.sql_text import as_key, from_key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

SEVERAL: Final = "*"
"""In `datasets.contributor`: the rows of the table say who."""
_SELECT = CONTRIBUTIONS.select("rank", "found_hash", "confidence", "at")
_PUT = """
INSERT INTO contributions
    (urn, contributor, rank, found_hash, confidence, document, at, checksum)
VALUES (:urn, :contributor, :rank, :found_hash, :confidence, :document, :at, :checksum)
"""
_ONLY_MEASURES = """
(found_hash IS NULL AND document = '{"facets":{}}' AND EXISTS
    (SELECT 1 FROM observations o
     WHERE o.urn = contributions.urn AND o.contributor = contributions.contributor))
"""
_SOLE = DATASETS.select("contributor", "origin", "found_hash", "updated_at") + " WHERE urn = :urn"


def contributor_of(key: str) -> Contributor:
    """Return the contributor that a column names."""
    return Contributor.of(from_key(key))


class ContributionTable:
    """Reads and writes what is said of datasets."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database
        self._observations = ObservationTable(database)

    def of(self, urn: str, *, replacing: Collection[Contributor] = ()) -> DatasetContributions:
        """Return all that is said of a dataset.

        Args:
            urn: the dataset.
            replacing: whose word is about to be replaced; it is not missed where it is damaged.

        Raises:
            DamagedDocumentError: what somebody says is not what was written.
        """
        rows = self._database.query(f"{_SELECT} WHERE urn = :urn", {"urn": urn})
        (sole,) = (None,) if rows else self._database.query(_SOLE, {"urn": urn}) or (None,)
        if rows:
            found = _from_rows(Urn(urn), rows, replacing=replacing)
        elif sole:
            found = _of_one(Urn(urn), sole)
        else:
            return DatasetContributions(Urn(urn))
        return replace(found, said=self._observations.joined(urn, found.said))

    def speaks_alone(self, urn: str, contributor: Contributor) -> bool:
        """Return, without reading any document, whether a dataset has no other contributor."""
        rows = self._database.query(
            "SELECT contributor FROM datasets WHERE urn = :urn UNION ALL "
            "SELECT contributor FROM contributions WHERE urn = :urn",
            {"urn": urn},
        )
        own = as_key(str(contributor))
        return all(row["contributor"] == own for row in rows)

    def put(self, all_said: DatasetContributions) -> None:
        """Replace what is said of a dataset; what only one says is left to its own document."""
        urn = all_said.urn
        self._database.execute("DELETE FROM contributions WHERE urn = :urn", {"urn": urn})
        if all_said.sole is None:
            self._database.execute_many(_PUT, _rows(all_said))

    def forget(self, urn: str) -> None:
        """Forget what anybody said of a dataset."""
        self._database.execute("DELETE FROM contributions WHERE urn = :urn", {"urn": urn})

    def found_states(self, contributor: Contributor) -> list[tuple[str, str]]:
        """Return URN and hash of what a source or declaring file was last found to say.

        The hash is empty where it is not known, or where it was overruled since.
        """
        said = self._database.query(
            "SELECT urn, found_hash FROM contributions "  # noqa: S608
            f"WHERE contributor = :contributor AND document IS NOT NULL AND NOT {_ONLY_MEASURES}",
            {"contributor": as_key(str(contributor))},
        )
        sole = self._database.query(
            "SELECT urn, found_hash FROM datasets WHERE contributor = :contributor",
            {"contributor": as_key(str(contributor))},
        )
        earlier: list[Row] = []
        if contributor.kind is ContributorKind.SOURCE:
            earlier = self._database.query(
                "SELECT urn, found_hash FROM datasets "
                "WHERE origin = :source AND contributor IS NULL",
                {"source": as_key(contributor.name)},
            )
        rows = (*said, *sole, *earlier)
        return sorted((row.text("urn"), row.optional_text("found_hash") or "") for row in rows)

    def outranked_otherwise(self, contributor: Contributor, rank: int) -> list[str]:
        """Return the datasets for which a contributor had another place in the settings."""
        rows = self._database.query(
            "SELECT urn FROM contributions "
            "WHERE contributor = :contributor AND rank <> :rank AND document IS NOT NULL",
            {"contributor": as_key(str(contributor)), "rank": rank},
        )
        return sorted(row.text("urn") for row in rows)

    def put_found_states(self, contributor: Contributor, states: Sequence[tuple[str, str]]) -> None:
        """Keep the hashes of what a contributor was found to say, for `found_states`."""
        name = as_key(str(contributor))
        given = [{"urn": urn, "hash": digest, "contributor": name} for urn, digest in states]
        self._database.execute_many(
            "UPDATE datasets SET found_hash = :hash "
            "WHERE urn = :urn AND (contributor = :contributor OR contributor IS NULL)",
            given,
        )
        self._database.execute_many(
            "UPDATE contributions SET found_hash = :hash "
            "WHERE urn = :urn AND contributor = :contributor",
            given,
        )


def _of_one(urn: Urn, row: Row) -> DatasetContributions:
    """Return what is said of a dataset that has no rows of contributions."""
    DATASETS.require(row)
    facets = statements_of(whole_document(row))
    at = _moment(row.text("updated_at"))
    name = row.optional_text("contributor")
    if name is not None:
        contributor = contributor_of(name)
        said = (Contribution(contributor, facets, at),)
        return DatasetContributions(urn, said, {contributor: row.optional_text("found_hash") or ""})
    earlier = Contribution(EARLIER, facets, at)
    source = row.optional_text("origin")
    if source is None:
        return DatasetContributions(urn, (earlier,))
    finder = Contributor(ContributorKind.SOURCE, source)
    return DatasetContributions(
        urn,
        (earlier, Contribution(finder, {}, at)),
        {finder: row.optional_text("found_hash") or ""},
    )


def _from_rows(
    urn: Urn, rows: Sequence[Row], *, replacing: Collection[Contributor]
) -> DatasetContributions:
    said: list[Contribution] = []
    found: dict[Contributor, str] = {}
    gone: set[Contributor] = set()
    for row in rows:
        contributor = contributor_of(row.text("contributor"))
        if contributor in replacing and not CONTRIBUTIONS.is_whole(row):
            continue
        CONTRIBUTIONS.require(row)
        text = row.optional_text("document")
        if text is None:
            gone.add(contributor)
            continue
        said.append(_contribution(contributor, stored_object(text), row))
        found[contributor] = row.optional_text("found_hash") or ""
    return DatasetContributions(urn, tuple(said), found, frozenset(gone))


def _contribution(
    contributor: Contributor, document: Mapping[str, JsonValue], row: Row
) -> Contribution:
    facets, said_at = document["facets"], document.get("said_at") or {}
    assert isinstance(facets, dict)  # noqa: S101 - as written
    assert isinstance(said_at, dict)  # noqa: S101
    return Contribution(
        contributor,
        facets,
        _moment(row.text("at")),
        {path: _moment(str(at)) for path, at in said_at.items()},
        confidence=row.optional_number("confidence") or 0.0,
        rank=row.integer("rank"),
    )


def _rows(all_said: DatasetContributions) -> list[dict[str, SqlValue]]:
    rows = [_row(all_said, each) for each in all_said.said]
    return [*rows, *(_tombstone(all_said.urn, each) for each in sorted(all_said.gone))]


def _row(all_said: DatasetContributions, contribution: Contribution) -> dict[str, SqlValue]:
    said = contribution.stated
    document: dict[str, object] = {"facets": said.facets}
    if said.said_at:
        document["said_at"] = {path: as_moment(at) for path, at in said.said_at.items()}
    return _checked(
        {
            "urn": all_said.urn,
            "contributor": as_key(str(said.contributor)),
            "rank": said.rank,
            "found_hash": all_said.found.get(said.contributor) or None,
            "confidence": said.confidence,
            "document": stored_text(document),
            "at": as_moment(said.at),
        }
    )


def _tombstone(urn: Urn, contributor: Contributor) -> dict[str, SqlValue]:
    return _checked(
        {
            "urn": urn,
            "contributor": as_key(str(contributor)),
            "rank": 0,
            "found_hash": None,
            "confidence": 1.0,
            "document": None,
            "at": "",
        }
    )


def _checked(row: dict[str, SqlValue]) -> dict[str, SqlValue]:
    return {**row, "checksum": CONTRIBUTIONS.checksum(row)}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
