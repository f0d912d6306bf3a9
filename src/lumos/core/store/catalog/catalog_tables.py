"""The tables of the latest state: datasets, lineage edges, entities and identities.

Edges are the truth of lineage: a dataset is stored without its neighbours and gets them from the
edges when it is read. Its version comes from the history, where there is one. What was
observed of it is kept as series; the latest of each stands beside its document.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import (
    Contributor,
    ContributorKind,
    DatasetLineage,
    EdgeBasis,
    LineageEdge,
    LumosDataset,
    NeighboursBuilder,
    Urn,
    with_parts,
)
from lumos.core.models.base import canonical_json, sha256_of
from lumos.core.models.contribution import Contribution
from lumos.core.models.dataset_contributions import DatasetContributions
from lumos.core.models.facets import OBSERVED_PARTS
from lumos.core.models.origin import origin_of
from lumos.core.store.catalog.configured_sources import ConfiguredSources
from lumos.core.store.catalog.contributions import SEVERAL, ContributionTable
from lumos.core.store.catalog.edge_contributions import EdgeContributions
from lumos.core.store.catalog.observations import DEFAULT_RETENTION, ObservationTable
from lumos.core.store.catalog.observed_parts import (
    SplitDocument,
    split_document,
    whole_document,
    whole_text,
)
from lumos.core.store.catalog.scan_marks import ScanMarks
from lumos.core.store.catalog.search import SearchIndex, SearchText, label, labels_of
from lumos.core.store.catalog.search_words import name_key
from lumos.core.store.checksums import (
    DATASETS,
    EDGES,
    ENTITIES,
    IDENTITIES,
    current_version,
    refuse_damage,
    rows_with_whole_keys,
    whole_rows,
)
from lumos.core.store.documents import as_model, as_moment, as_object, as_text, checked_key
from lumos.core.store.sql_text import as_key, storable

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Observation
    from lumos.core.store.checksums import NoteDamage
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Parameters, Row, SqlValue
    from lumos.core.store.settings import ObservationSettings

_SELECT_DATASETS = """
SELECT d.urn, d.document, d.observed, d.version, d.contract_hash, d.checksum,
       (SELECT v.version FROM versions v WHERE v.urn = d.urn
        ORDER BY v.sequence DESC LIMIT 1) AS current_version
FROM datasets d
"""
_PUT_DATASET = """
INSERT INTO datasets (urn, name, name_key, platform, format, contract_hash, version,
                      quality_score, document, observed, origin, contributor, found_hash,
                      updated_at, checksum)
VALUES (:urn, :name, :name_key, :platform, :format, :contract_hash, :version,
        :quality_score, :document, :observed, :origin, :contributor, :found_hash,
        :updated_at, :checksum)
ON CONFLICT (urn) DO UPDATE SET
    name = excluded.name, name_key = excluded.name_key, platform = excluded.platform,
    format = excluded.format, contract_hash = excluded.contract_hash, version = excluded.version,
    quality_score = excluded.quality_score, document = excluded.document,
    observed = excluded.observed, origin = excluded.origin, contributor = excluded.contributor,
    found_hash = excluded.found_hash, updated_at = excluded.updated_at,
    checksum = excluded.checksum
"""
_PUT_OBSERVED = """
UPDATE datasets SET quality_score = :quality_score, observed = :observed,
    contributor = :contributor, found_hash = :found_hash, updated_at = :updated_at,
    checksum = :checksum
WHERE urn = :urn
"""
_PUT_EDGE = """
INSERT INTO lineage_edges
    (edge_key, upstream_urn, downstream_urn, document, updated_at, checksum)
VALUES (:edge_key, :upstream_urn, :downstream_urn, :document, :updated_at, :checksum)
ON CONFLICT (edge_key) DO UPDATE SET
    upstream_urn = excluded.upstream_urn, downstream_urn = excluded.downstream_urn,
    document = excluded.document, updated_at = excluded.updated_at, checksum = excluded.checksum
WHERE lineage_edges.document <> excluded.document OR lineage_edges.checksum <> excluded.checksum
    OR lineage_edges.upstream_urn <> excluded.upstream_urn
    OR lineage_edges.downstream_urn <> excluded.downstream_urn
"""
_PUT_ENTITY = """
INSERT INTO entities (kind, name, document, updated_at, checksum)
VALUES (:kind, :name, :document, :updated_at, :checksum)
ON CONFLICT (kind, name) DO UPDATE SET
    document = excluded.document, updated_at = excluded.updated_at, checksum = excluded.checksum
WHERE entities.document <> excluded.document OR entities.checksum <> excluded.checksum
"""
_PUT_IDENTITY = """
INSERT INTO identity_map (urn, catalog, document, checksum)
VALUES (:urn, :catalog, :document, :checksum)
ON CONFLICT (urn, catalog) DO UPDATE SET
    document = excluded.document, checksum = excluded.checksum
WHERE identity_map.document <> excluded.document OR identity_map.checksum <> excluded.checksum
"""
_SELECT_IDENTITIES = "SELECT urn, catalog, document, checksum FROM identity_map"
_INFERRED = f'%"basis":"{EdgeBasis.INFERRED}"%'
"""What the document of an inferred edge has; inside a text the quotes would be escaped."""
EDITOR = Contributor(ContributorKind.PEOPLE, "embedded")
"""Whoever writes to the catalog without saying who it is."""
_NAMES_AT_ONCE = 500
"""Fewer than the parameters that any version of SQLite takes."""


class EdgePosition(NamedTuple):
    """Where a page of edges ended."""

    upstream: str = ""
    key: str = ""


class CatalogTables:
    """Reads and writes the latest state; each write is one transaction or part of the caller's."""

    def __init__(
        self, database: StateDatabase, *, retention: ObservationSettings = DEFAULT_RETENTION
    ) -> None:
        """Work on a state; `retention` says how much is kept of what was observed."""
        self._database = database
        self._contributions = ContributionTable(database)
        self._observations = ObservationTable(database, retention=retention)
        self._index = SearchIndex.on(database)
        self._latest: tuple[SplitDocument, LumosDataset] | None = None
        """The document that was written last, and the dataset that it is of."""

    def put_dataset(self, dataset: LumosDataset, *, at: datetime, by: Contributor = EDITOR) -> bool:
        """Make a dataset what one contributor wants it to be, and tell whether anything changed.

        Neighbours that it lists become edges where there is none yet; no edge is ever removed.
        """
        checked_key(dataset.urn)
        with self._database.transaction():
            listed = dataset.lineage.ends(dataset.urn)
            added = [self._add_missing_edge(*ends, at=at) for ends in listed]
            whole = self._with_derived_parts(dataset)
            row = _dataset_row(whole)
            stored = self._stored(dataset.urn)
            if _is_same(stored, row):
                return any(added)
            is_alone = self._contributions.speaks_alone(dataset.urn, by)
            if is_alone:
                said = DatasetContributions(dataset.urn, (Contribution(by, {**row.observed}, at),))
            else:
                document = {**row.document, **row.observed}
                said = self._said_of(dataset.urn).wanting(document, by=by, at=at)
                self._contributions.put(said)
                if said.sole is None:
                    whole = self._with_derived_parts(said.dataset())
                    row = _dataset_row(whole)
            self._put(whole, row, said=said, stored=stored, at=at, renew=not is_alone)
        return True

    def put_said(self, said: DatasetContributions, *, at: datetime) -> bool:
        """Store what contributors say of a dataset, and the dataset that follows."""
        checked_key(said.urn)
        with self._database.transaction():
            self._contributions.put(said)
            whole = self._with_derived_parts(said.dataset())
            row = _dataset_row(whole)
            stored = self._stored(said.urn)
            self._put(whole, row, said=said, stored=stored, at=at)
        return not _is_same(stored, row)

    def put_found(
        self,
        dataset: LumosDataset,
        by: Contributor,
        *,
        hash: str,
        at: datetime,
    ) -> bool:
        """Store a dataset of which only one contributor speaks, and tell whether it is new."""
        checked_key(dataset.urn)
        with self._database.transaction():
            whole = self._with_derived_parts(dataset)
            row = _dataset_row(whole)
            stored = self._stored(dataset.urn)
            self._contributions.forget(dataset.urn)
            said = DatasetContributions(
                dataset.urn, (Contribution(by, {**row.observed}, at),), {by: hash}
            )
            self._put(whole, row, said=said, stored=stored, at=at)
        return not _is_same(stored, row)

    def put_bare(self, datasets: Iterable[LumosDataset], *, at: datetime) -> None:
        """Store datasets that are not there yet, all or none, as nothing but their documents.

        For a state that is read once and removed: the datasets are not found by a search, nobody
        is said to speak of them, their figures are no series, and they keep the neighbours that
        they list.
        """
        self._database.execute_many(_PUT_DATASET, (_bare_row(each, at=at) for each in datasets))

    def observe(
        self, urn: Urn, by: Contributor, observations: Iterable[Observation], *, at: datetime
    ) -> bool:
        """Append what a contributor measured of a dataset, and tell whether anything is new.

        A dataset that is not there, or that the contributor once found and finds no more, is
        passed over.
        """
        with self._database.transaction():
            if self._stored(urn) is None or by in self._contributions.of(urn).gone:
                return False
            if not self._observations.append(by, observations, at=at):
                return False
            known = self._contributions.of(urn)
            said = known.said if known.by(by) else (*known.said, Contribution(by, {}, at))
            joined = self._observations.joined(urn, said)
            measuring = (each for each in joined if each.facets or known.by(each.contributor))
            self.put_said(replace(known, said=tuple(measuring)), at=at)
        return True

    def _said_of(self, urn: Urn) -> DatasetContributions:
        """Return what is said of a dataset; a damaged one is replaced as if it were not there."""
        try:
            return self._contributions.of(urn)
        except DamagedDocumentError:
            return DatasetContributions(urn)

    @property
    def configured_sources(self) -> ConfiguredSources:
        """Which sources each settings file has named."""
        return ConfiguredSources(self._database)

    @property
    def scan_marks(self) -> ScanMarks:
        """Where the last scans of sources ended."""
        return ScanMarks(self._database)

    @property
    def edge_contributions(self) -> EdgeContributions:
        """Who says that edges are there."""
        return EdgeContributions(self._database, self)

    @property
    def contributions(self) -> ContributionTable:
        """What each contributor says of the datasets."""
        return self._contributions

    @property
    def observations(self) -> ObservationTable:
        """What was measured of the datasets."""
        return self._observations

    def _put(
        self,
        whole: LumosDataset,
        row: _DatasetRow,
        *,
        said: DatasetContributions,
        stored: Row | None,
        at: datetime,
        renew: bool = False,
    ) -> None:
        sole = said.sole
        values = {
            **row.values,
            "contributor": as_key(str(sole.contributor)) if sole else SEVERAL,
            "found_hash": (said.found.get(sole.contributor) if sole else None) or None,
            "updated_at": as_moment(at),
        }
        self._observations.record(said.urn, said.said, at=at, renew=renew)
        if _differs_in_observations_alone(stored, row):
            self._database.execute(_PUT_OBSERVED, {name: values[name] for name in _OBSERVED})
        else:
            (written,) = self._database.query(f"{_PUT_DATASET} RETURNING id", values)
            self._put_search(whole, written.integer("id"))
        self._latest = row.texts, whole

    def hold_dataset(self, urn: str) -> None:
        """Keep all others from changing a dataset until the caller's transaction ends."""
        self._database.execute("UPDATE datasets SET urn = urn WHERE urn = :urn", {"urn": urn})

    def dataset(self, urn: str) -> LumosDataset | None:
        """Return one dataset, or nothing.

        Raises:
            DamagedDocumentError: it is not what was written.
        """
        rows = self._database.query(_SELECT_DATASETS + "WHERE d.urn = :urn", {"urn": urn})
        return self._datasets(rows, damaged=refuse_damage)[0] if rows else None

    def datasets_after(
        self, urn: str, *, limit: int, platform: str | None = None, damaged: NoteDamage
    ) -> tuple[list[LumosDataset], str | None]:
        """Return the next datasets in ascending order of URN, and the last URN if there is any.

        Args:
            urn: where the last page ended; `""` for the first.
            limit: how many rows to read.
            platform: only datasets of it.
            damaged: is told of each that is not what was written; the others are returned.
        """
        text = "WHERE d.urn > :after"
        params: dict[str, SqlValue] = {"after": urn, "limit": limit}
        if platform is not None:
            text += " AND d.platform = :platform"
            params["platform"] = label(platform)
        rows = self._database.query(
            f"{_SELECT_DATASETS} {text} ORDER BY d.urn LIMIT :limit", params
        )
        return self._datasets(rows, damaged=damaged), _last(rows, "urn")

    def datasets_named(self, urns: Sequence[str], *, damaged: NoteDamage) -> list[LumosDataset]:
        """Return the datasets of some URNs in ascending order."""
        return self._datasets(self._named(urns), damaged=damaged)

    def documents_after(
        self, urn: str, *, limit: int, neighbours: bool, damaged: NoteDamage
    ) -> tuple[list[tuple[Urn, bytes]], str | None]:
        """Return the next datasets as canonical JSON, and the last URN if there is any.

        It is what `to_json` writes of them, with their neighbours or without.
        """
        rows = self._database.query(
            f"{_SELECT_DATASETS} WHERE d.urn > :after ORDER BY d.urn LIMIT :limit",
            {"after": urn, "limit": limit},
        )
        return self._documents(rows, neighbours=neighbours, damaged=damaged), _last(rows, "urn")

    def documents_named(
        self, urns: Sequence[str], *, neighbours: bool, damaged: NoteDamage
    ) -> list[tuple[Urn, bytes]]:
        """Return the datasets of some URNs as canonical JSON."""
        return self._documents(self._named(urns), neighbours=neighbours, damaged=damaged)

    def delete_dataset(self, urn: str, *, left: DatasetContributions | None = None) -> bool:
        """Remove a dataset with its edges and identities, and tell whether there was one.

        Its history stays, so that what comes back under the same URN goes on from there.

        Args:
            urn: the dataset.
            left: what others go on saying of it, in case that it comes back.
        """
        with self._database.transaction():
            self._contributions.forget(urn)
            if left is None:
                self._observations.forget(urn)
            elif left.said:
                self._contributions.put(left)
                last = max(map(_said_at, left.said))
                self._observations.record(urn, left.said, at=last, withdraw=False)
            rows = self._database.query("SELECT id FROM datasets WHERE urn = :urn", {"urn": urn})
            if not rows:
                return False
            self._index.remove(rows[0].integer("id"))
            for statement in (
                "DELETE FROM datasets WHERE urn = :urn",
                "DELETE FROM identity_map WHERE urn = :urn",
            ):
                self._database.execute(statement, {"urn": urn})
            heirs = self._database.query(
                "SELECT DISTINCT downstream_urn FROM lineage_edges WHERE upstream_urn = :urn",
                {"urn": urn},
            )
            ends = "upstream_urn = :urn OR downstream_urn = :urn"
            if left is None:
                self._database.execute(f"DELETE FROM edge_contributions WHERE {ends}", {"urn": urn})  # noqa: S608
            # What others still say is not gone because one source has no such dataset any more.
            self._database.execute(
                f"DELETE FROM lineage_edges WHERE ({ends}) "  # noqa: S608
                "AND NOT EXISTS (SELECT 1 FROM edge_contributions said "
                "WHERE said.edge_key = lineage_edges.edge_key)",
                {"urn": urn},
            )
            for heir in heirs:
                self._renew_hash(heir.text("downstream_urn"))
        return True

    def put_edge(self, edge: LineageEdge, *, at: datetime) -> bool:
        """Store an edge and tell whether anything changed."""
        return self.put_edges((edge,), at=at)

    def put_edges(self, edges: Iterable[LineageEdge], *, at: datetime, renew: bool = True) -> bool:
        """Store edges, all or none, and tell whether anything changed.

        Without `renew` the hashes of the datasets that they lead to stay as they are.
        """
        led_to: dict[str, None] = {}
        with self._database.transaction():
            for edge in edges:
                for urn in edge.key:
                    checked_key(urn)
                row: dict[str, SqlValue] = {
                    "edge_key": sha256_of(edge.key),
                    "upstream_urn": edge.upstream_urn,
                    "downstream_urn": edge.downstream_urn,
                    "document": as_text(edge.to_json()),
                    "updated_at": as_moment(at),
                }
                row["checksum"] = EDGES.checksum(row)
                if self._database.execute(_PUT_EDGE, row):
                    led_to[edge.downstream_urn] = None
            for urn in led_to if renew else ():
                self._renew_hash(urn)
        return bool(led_to)

    def lineage_of(self, urn: str) -> DatasetLineage:
        """Return the neighbours of a dataset, whether it is there or not."""
        return self._lineage((urn,))[urn]

    def edges_with_key(self, key: str) -> list[LineageEdge]:
        """Return the edge of a key, if there is one and it is what was written."""
        rows = self._database.query(
            "SELECT upstream_urn, downstream_urn, edge_key, document, checksum FROM lineage_edges "
            "WHERE edge_key = :key",
            {"key": key},
        )
        return [
            as_model(LineageEdge, row.text("document"))
            for row in whole_rows(rows, EDGES, _pass_over)
        ]

    def remove_edge(self, edge: LineageEdge) -> bool:
        """Remove an edge, whoever says that it is there, and tell whether there was one."""
        with self._database.transaction():
            key = {"edge_key": sha256_of(edge.key)}
            self._database.execute("DELETE FROM edge_contributions WHERE edge_key = :edge_key", key)
            removed = self._database.execute(
                "DELETE FROM lineage_edges WHERE edge_key = :edge_key", key
            )
            if removed:
                self._renew_hash(edge.downstream_urn)
        return bool(removed)

    def edges_after(
        self, position: EdgePosition, *, limit: int, damaged: NoteDamage
    ) -> tuple[list[LineageEdge], EdgePosition | None]:
        """Return the next edges in ascending order of upstream URN, and where they end if any do.

        `damaged` is told of each that is not what was written.
        """
        rows = self._database.query(
            "SELECT upstream_urn, downstream_urn, edge_key, document, checksum FROM lineage_edges "
            "WHERE (upstream_urn, edge_key) > (:upstream, :key) "
            "ORDER BY upstream_urn, edge_key LIMIT :limit",
            {"upstream": position.upstream, "key": position.key, "limit": limit},
        )
        edges = [
            as_model(LineageEdge, row.text("document")) for row in whole_rows(rows, EDGES, damaged)
        ]
        if not rows:
            return edges, None
        return edges, EdgePosition(rows[-1].text("upstream_urn"), rows[-1].text("edge_key"))

    def put_entity(self, kind: str, name: str, *, document: object, at: datetime) -> bool:
        """Store a user, group, tag, term, domain or job and tell whether anything changed."""
        row: dict[str, SqlValue] = {
            "kind": kind,
            "name": checked_key(as_key(name)),
            "document": as_text(document),
            "updated_at": as_moment(at),
        }
        row["checksum"] = ENTITIES.checksum(row)
        return bool(self._database.execute(_PUT_ENTITY, row))

    def entity(self, kind: str, name: str) -> dict[str, JsonValue] | None:
        """Return the document of an entity, if there is one and it is what was written."""
        rows = self._database.query(
            "SELECT kind, name, document, checksum FROM entities "
            "WHERE kind = :kind AND name = :name",
            {"kind": kind, "name": as_key(name)},
        )
        whole = whole_rows(rows, ENTITIES, _pass_over)
        return as_object(whole[0].text("document")) if whole else None

    def entities_after(
        self, kind: str, key: str, *, limit: int, damaged: NoteDamage
    ) -> tuple[list[str], str | None]:
        """Return the documents of the next entities of a kind, and the last key if there is any.

        `damaged` is told of each that is not what was written.
        """
        rows = self._database.query(
            "SELECT kind, name, document, checksum FROM entities "
            "WHERE kind = :kind AND name > :after ORDER BY name LIMIT :limit",
            {"kind": kind, "after": key, "limit": limit},
        )
        found = [row.text("document") for row in whole_rows(rows, ENTITIES, damaged)]
        return found, _last(rows, "name")

    def put_identity(self, urn: str, catalog: str, *, external_id: str) -> bool:
        """Store what another catalog calls a dataset and tell whether anything changed."""
        row: dict[str, SqlValue] = {
            "urn": checked_key(urn),
            "catalog": checked_key(as_key(catalog)),
            "document": as_text({"catalog": catalog, "id": external_id}),
        }
        row["checksum"] = IDENTITIES.checksum(row)
        return bool(self._database.execute(_PUT_IDENTITY, row))

    def identity_map(self, *, damaged: NoteDamage) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset."""
        identities: defaultdict[Urn, dict[str, str]] = defaultdict(dict)
        rows = self._database.query(f"{_SELECT_IDENTITIES} ORDER BY urn")
        for row in whole_rows(rows, IDENTITIES, damaged):
            identity = as_object(row.text("document"))
            identities[Urn(row.text("urn"))][str(identity["catalog"])] = str(identity["id"])
        return dict(identities)

    def find_identities(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Urn]:
        """Return the datasets that some catalogs mean by names of their own."""
        documents = {
            as_text({"catalog": catalog, "id": external_id}): (catalog, external_id)
            for catalog, external_id in names
        }
        found: dict[tuple[str, str], Urn] = {}
        texts = [*documents]
        for start in range(0, len(texts), _NAMES_AT_ONCE):
            part = texts[start : start + _NAMES_AT_ONCE]
            given = {f"name_{number}": document for number, document in enumerate(part)}
            marks = ", ".join(f":{mark}" for mark in given)
            rows = self._database.query(
                f"{_SELECT_IDENTITIES} WHERE document IN ({marks}) ORDER BY urn", given
            )
            found |= {
                documents[row.text("document")]: Urn(row.text("urn"))
                for row in rows
                if IDENTITIES.is_whole(row)
            }
        return found

    def _named(self, urns: Sequence[str]) -> list[Row]:
        given = {f"urn_{number}": urn for number, urn in enumerate(urns)}
        names = ", ".join(f":{name}" for name in given)
        if not names:
            return []
        return self._database.query(
            f"{_SELECT_DATASETS} WHERE d.urn IN ({names}) ORDER BY d.urn", given
        )

    def _with_derived_parts(self, dataset: LumosDataset) -> LumosDataset:
        """Give a dataset the lineage of the edges; its version is left to the history's."""
        known = self._database.query(
            "SELECT 1 AS found FROM versions WHERE urn = :urn LIMIT 1", {"urn": dataset.urn}
        )
        lineage = self._lineage((dataset.urn,))[dataset.urn]
        version = None if known else dataset.version
        if (lineage, version) == (dataset.lineage, dataset.version):
            return dataset
        return with_parts(dataset, lineage=lineage, version=version)

    def _stored(self, urn: str) -> Row | None:
        rows = self._database.query(f"{DATASETS.select()} WHERE urn = :urn", {"urn": urn})
        return rows[0] if rows else None

    def _put_search(self, dataset: LumosDataset, dataset_id: int) -> None:
        self._index.put(dataset_id, SearchText.of(dataset))
        self._database.execute(
            "DELETE FROM dataset_labels WHERE dataset_id = :id", {"id": dataset_id}
        )
        self._database.execute_many(
            "INSERT INTO dataset_labels (dataset_id, kind, value) VALUES (:id, :kind, :value)",
            (
                {"id": dataset_id, "kind": kind, "value": value}
                for kind, value in sorted(labels_of(dataset))
            ),
        )

    def _add_missing_edge(self, upstream: Urn, downstream: Urn, *, at: datetime) -> bool:
        known = self._database.query(
            "SELECT 1 AS found FROM lineage_edges "
            "WHERE upstream_urn = :upstream AND downstream_urn = :downstream LIMIT 1",
            {"upstream": upstream, "downstream": downstream},
        )
        if known:
            return False
        return self.put_edge(LineageEdge(upstream_urn=upstream, downstream_urn=downstream), at=at)

    def _renew_hash(self, urn: str) -> None:
        """Bring a stored hash up to date with the edges, which are part of the contract.

        A damaged dataset keeps its hash and its checksum, so that it stays known as damaged.
        """
        rows = self._database.query(_SELECT_DATASETS + "WHERE d.urn = :urn", {"urn": urn})
        for dataset in self._datasets(rows, damaged=_pass_over):
            row = {
                "urn": urn,
                "contract_hash": dataset.contract_hash,
                "version": rows[0]["version"],
                "document": rows[0]["document"],
                "observed": rows[0]["observed"],
            }
            self._database.execute(
                "UPDATE datasets SET contract_hash = :hash, checksum = :checksum WHERE urn = :urn",
                {"hash": dataset.contract_hash, "checksum": DATASETS.checksum(row), "urn": urn},
            )

    def _datasets(self, rows: Sequence[Row], *, damaged: NoteDamage) -> list[LumosDataset]:
        whole = whole_rows(rows, DATASETS, damaged)
        lineage = self._lineage([row.text("urn") for row in whole])
        datasets = []
        for row in whole:
            neighbours, version = lineage[row.text("urn")], current_version(row, damaged)
            known = self._as_written(row)
            if known and (known.lineage, known.version) == (neighbours, version or known.version):
                datasets.append(known)
                continue
            document: dict[str, object] = {**whole_document(row)}
            document["lineage"] = neighbours
            if version:
                document["version"] = version
            datasets.append(LumosDataset.from_json(document))
        return datasets

    def _documents(
        self, rows: Sequence[Row], *, neighbours: bool, damaged: NoteDamage
    ) -> list[tuple[Urn, bytes]]:
        found = {
            Urn.canonical(row.text("urn")): _document(row, current_version(row, damaged))
            for row in whole_rows(rows, DATASETS, damaged)
        }
        for urn, lineage in self._lineage([*found]).items() if neighbours else ():
            if lineage != DatasetLineage():
                whole = {**as_object(found[Urn(urn)].decode()), "lineage": lineage.to_json()}
                found[Urn(urn)] = canonical_json(whole)
        return [*found.items()]

    def _as_written(self, row: Row) -> LumosDataset | None:
        """Return the dataset of a row that was just written, which need not be built anew."""
        if self._latest is None:
            return None
        texts, dataset = self._latest
        return dataset if texts == (row["document"], row["observed"]) else None

    def _lineage(self, urns: Sequence[str]) -> Mapping[str, DatasetLineage]:
        """Return the neighbours of datasets that are given in ascending order."""
        if not urns:
            return {}
        ends = {"first": urns[0], "last": urns[-1]}
        neighbours = NeighboursBuilder()
        for end in ("downstream_urn", "upstream_urn"):
            for row in self._edges_where(f"{end} BETWEEN :first AND :last", ends):
                neighbours.add(
                    Urn.canonical(row.text("upstream_urn")),
                    Urn.canonical(row.text("downstream_urn")),
                    is_inferred=bool(row.integer("is_inferred")),
                )
        return {urn: neighbours.of(urn) for urn in urns}

    def _edges_where(self, condition: str, params: Parameters) -> list[Row]:
        """Return edges by their ends; one whose ends are damaged leads nowhere.

        It is told by whoever lists the edges.
        """
        rows = self._database.query(
            "SELECT edge_key, upstream_urn, downstream_urn, checksum, "  # noqa: S608
            f"CASE WHEN document LIKE '{_INFERRED}' THEN 1 ELSE 0 END AS is_inferred "
            f"FROM lineage_edges WHERE {condition}",
            params,
        )
        return rows_with_whole_keys(rows, EDGES)


def _last(rows: Sequence[Row], key: str) -> str | None:
    return rows[-1].text(key) if rows else None


def _pass_over(_error: DamagedDocumentError) -> None:
    pass


def _document(row: Row, version: str | None) -> bytes:
    """Return the stored document of a dataset with its newest version, if it has one."""
    text = whole_text(row)
    if version is None:
        return text.encode()
    if row.optional_text("version") is None:  # no other name in a dataset comes after this one
        return f'{text[:-1]},"version":{as_text(version)}}}'.encode()
    return canonical_json({**as_object(text), "version": version})


_OBSERVED: Final = (
    "urn", "quality_score", "observed", "contributor", "found_hash", "updated_at", "checksum",
)  # fmt: skip
"""What is written where nothing but observations changed."""


class _DatasetRow(NamedTuple):
    """A dataset as it is to be stored."""

    values: dict[str, SqlValue]
    document: dict[str, JsonValue]
    """Without what was observed."""
    observed: dict[str, JsonValue]
    texts: SplitDocument


def _dataset_row(dataset: LumosDataset) -> _DatasetRow:
    document = dataset.to_json()
    contract_hash = dataset.contract_hash_of(document)
    document.pop("lineage", None)
    texts = split_document(document)
    observed = {part: document.pop(part) for part in OBSERVED_PARTS if part in document}
    row: dict[str, SqlValue] = {
        "urn": dataset.urn,
        "name": storable(dataset.name),
        "name_key": name_key(dataset.name),
        "platform": label(dataset.platform),
        "format": storable(dataset.format) if dataset.format else None,
        "contract_hash": contract_hash,
        "version": storable(dataset.version) if dataset.version else None,
        "quality_score": dataset.quality.score if dataset.quality else None,
        "document": texts.document,
        "observed": texts.observed,
        "origin": as_key(origin.source) if (origin := origin_of(dataset)) else None,
    }
    row["checksum"] = DATASETS.checksum(row)
    return _DatasetRow(row, document, observed, texts)


def _bare_row(dataset: LumosDataset, *, at: datetime) -> dict[str, SqlValue]:
    row: dict[str, SqlValue] = {
        "urn": checked_key(dataset.urn),
        "name": "",
        "name_key": "",
        "platform": "",
        "format": None,
        "contract_hash": "",
        "version": None,
        "quality_score": None,
        "document": as_text(dataset.document),
        "observed": None,
        "origin": None,
        "contributor": str(EDITOR),
        "found_hash": None,
        "updated_at": as_moment(at),
    }
    row["checksum"] = DATASETS.checksum(row)
    return row


def _is_same(stored: Row | None, row: _DatasetRow) -> bool:
    names = ("document", "observed", "checksum")  # which covers the other columns
    return stored is not None and all(stored[name] == row.values[name] for name in names)


def _differs_in_observations_alone(stored: Row | None, row: _DatasetRow) -> bool:
    if stored is None or not DATASETS.is_whole(stored):
        return False
    return all(stored[name] == row.values[name] for name in ("document", *DATASETS.keys))


def _said_at(contribution: Contribution) -> datetime:
    return max((contribution.at, *contribution.said_at.values()))
