"""The tables of the latest state: datasets, lineage edges, entities and identities.

Edges are the truth of lineage: a dataset is stored without its neighbours and gets them from the
edges when it is read. Its version comes from the history, where there is one. What was
observed of it is kept as series; the latest of each stands beside its document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import (
    Contributor,
    DatasetLineage,
    LineageEdge,
    LumosDataset,
    Urn,
    with_parts,
)
from lumos.core.models.base import canonical_json
from lumos.core.models.contribution import Contribution
from lumos.core.models.dataset_contributions import DatasetContributions
from lumos.core.store.catalog.contributions import SEVERAL, ContributionTable
from lumos.core.store.catalog.dataset_rows import (
    EDITOR,
    OBSERVED_COLUMNS,
    PUT_DATASET,
    PUT_OBSERVED,
    SELECT_DATASETS,
    DatasetRow,
    bare_row,
    dataset_row,
    differs_in_observations_alone,
    is_same,
    stored_document,
)
from lumos.core.store.catalog.edge_contributions import EdgeContributions
from lumos.core.store.catalog.edge_table import EdgeTable
from lumos.core.store.catalog.entity_tables import EntityTable, IdentityTable
from lumos.core.store.catalog.observations import DEFAULT_RETENTION, ObservationTable
from lumos.core.store.catalog.observed_parts import (
    SplitDocument,
    whole_document,
)
from lumos.core.store.catalog.search import SearchIndex, SearchText, label, labels_of
from lumos.core.store.catalog.source_tables import ConfiguredSources, ScanMarks
from lumos.core.store.checksums import (
    DATASETS,
    current_version,
    pass_over,
    refuse_damage,
    whole_rows,
)
from lumos.core.store.documents import as_moment, checked_key, stored_object
from lumos.core.store.sql_text import as_key

if TYPE_CHECKING:
    from lumos.core.models import Observation
    from lumos.core.store.checksums import NoteDamage
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue
    from lumos.core.store.settings import ObservationSettings


class CatalogTables:
    """Reads and writes the latest state; each write is one transaction or part of the caller's."""

    def __init__(
        self, database: StateDatabase, *, retention: ObservationSettings = DEFAULT_RETENTION
    ) -> None:
        """Work on a state; `retention` says how much is kept of what was observed."""
        self._database = database
        self._contributions = ContributionTable(database)
        self._observations = ObservationTable(database, retention=retention)
        self._edges = EdgeTable(database)
        self._index = SearchIndex.on(database)
        self._latest: tuple[SplitDocument, LumosDataset] | None = None
        """The document that was written last, and the dataset that it is of."""

    def put_dataset(self, dataset: LumosDataset, *, at: datetime, by: Contributor = EDITOR) -> bool:
        """Make a dataset what one contributor wants it to be, and return whether anything changed.

        Neighbours that it lists become edges where there is none yet; no edge is ever removed.
        """
        checked_key(dataset.urn)
        with self._database.transaction():
            listed = dataset.lineage.ends(dataset.urn)
            added = [self._add_missing_edge(*ends, at=at) for ends in listed]
            whole = self._with_derived_parts(dataset)
            row = dataset_row(whole)
            stored = self._stored(dataset.urn)
            if is_same(stored, row):
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
                    row = dataset_row(whole)
            self._put(whole, row, said=said, stored=stored, at=at, renew=not is_alone)
        return True

    def put_said(self, said: DatasetContributions, *, at: datetime) -> bool:
        """Store what contributors say of a dataset, and the dataset that follows."""
        checked_key(said.urn)
        with self._database.transaction():
            self._contributions.put(said)
            whole = self._with_derived_parts(said.dataset())
            row = dataset_row(whole)
            stored = self._stored(said.urn)
            self._put(whole, row, said=said, stored=stored, at=at)
        return not is_same(stored, row)

    def put_found(
        self,
        dataset: LumosDataset,
        by: Contributor,
        *,
        hash: str,
        at: datetime,
    ) -> bool:
        """Store a dataset of which only one contributor speaks, and return whether it is new."""
        checked_key(dataset.urn)
        with self._database.transaction():
            whole = self._with_derived_parts(dataset)
            row = dataset_row(whole)
            stored = self._stored(dataset.urn)
            self._contributions.forget(dataset.urn)
            said = DatasetContributions(
                dataset.urn, (Contribution(by, {**row.observed}, at),), {by: hash}
            )
            self._put(whole, row, said=said, stored=stored, at=at)
        return not is_same(stored, row)

    def put_bare(self, datasets: Iterable[LumosDataset], *, at: datetime) -> None:
        """Store datasets that are not there yet, all or none, as nothing but their documents.

        For a state that is read once and removed: the datasets are not found by a search, nobody
        is recorded as contributor, their figures are no series, and they keep the neighbours that
        they list.
        """
        self._database.execute_many(PUT_DATASET, (bare_row(each, at=at) for each in datasets))

    def observe(
        self, urn: Urn, by: Contributor, observations: Iterable[Observation], *, at: datetime
    ) -> bool:
        """Append what a contributor measured of a dataset, and return whether anything is new.

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
    def edges(self) -> EdgeTable:
        """The lineage edges; to change one, use `put_edges` and `remove_edge`."""
        return self._edges

    @property
    def entities(self) -> EntityTable:
        """Users, groups, tags, terms, domains and jobs."""
        return EntityTable(self._database)

    @property
    def identities(self) -> IdentityTable:
        """The names of datasets in other catalogs."""
        return IdentityTable(self._database)

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
        row: DatasetRow,
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
        if differs_in_observations_alone(stored, row):
            self._database.execute(PUT_OBSERVED, {name: values[name] for name in OBSERVED_COLUMNS})
        else:
            (written,) = self._database.query(f"{PUT_DATASET} RETURNING id", values)
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
        rows = self._database.query(SELECT_DATASETS + "WHERE d.urn = :urn", {"urn": urn})
        return self._datasets(rows, damaged=refuse_damage)[0] if rows else None

    def datasets_after(
        self, urn: str, *, limit: int, platform: str | None = None, damaged: NoteDamage
    ) -> tuple[list[LumosDataset], str | None]:
        """Return the next datasets in ascending order of URN, and the last URN if there is any.

        Args:
            urn: where the last page ended; `""` for the first.
            limit: how many rows to read.
            platform: only datasets of it.
            damaged: is called with the error of each damaged row; the others are returned.
        """
        text = "WHERE d.urn > :after"
        params: dict[str, SqlValue] = {"after": urn, "limit": limit}
        if platform is not None:
            text += " AND d.platform = :platform"
            params["platform"] = label(platform)
        rows = self._database.query(f"{SELECT_DATASETS} {text} ORDER BY d.urn LIMIT :limit", params)
        last = rows[-1].text("urn") if rows else None
        return self._datasets(rows, damaged=damaged), last

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
            f"{SELECT_DATASETS} WHERE d.urn > :after ORDER BY d.urn LIMIT :limit",
            {"after": urn, "limit": limit},
        )
        last = rows[-1].text("urn") if rows else None
        return self._documents(rows, neighbours=neighbours, damaged=damaged), last

    def documents_named(
        self, urns: Sequence[str], *, neighbours: bool, damaged: NoteDamage
    ) -> list[tuple[Urn, bytes]]:
        """Return the datasets of some URNs as canonical JSON."""
        return self._documents(self._named(urns), neighbours=neighbours, damaged=damaged)

    def delete_dataset(self, urn: str, *, left: DatasetContributions | None = None) -> bool:
        """Remove a dataset with its edges and identities, and return whether there was one.

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

    def lineage_of(self, urn: str) -> DatasetLineage:
        """Return the neighbours of a dataset, whether it is there or not."""
        return self._edges.lineage((urn,))[urn]

    def put_edge(self, edge: LineageEdge, *, at: datetime) -> bool:
        """Store an edge and return whether anything changed."""
        return self.put_edges((edge,), at=at)

    def put_edges(self, edges: Iterable[LineageEdge], *, at: datetime, renew: bool = True) -> bool:
        """Store edges, all or none, and return whether anything changed.

        Without `renew` the hashes of the datasets that they lead to stay as they are.
        """
        led_to: dict[str, None] = {}
        with self._database.transaction():
            for edge in edges:
                if self._edges.put(edge, at=at):
                    led_to[edge.downstream_urn] = None
            for urn in led_to if renew else ():
                self._renew_hash(urn)
        return bool(led_to)

    def remove_edge(self, edge: LineageEdge) -> bool:
        """Remove an edge, whichever contributors state it, and return whether there was one."""
        with self._database.transaction():
            removed = self._edges.remove(edge)
            if removed:
                self._renew_hash(edge.downstream_urn)
        return removed

    def _named(self, urns: Sequence[str]) -> list[Row]:
        given = {f"urn_{number}": urn for number, urn in enumerate(urns)}
        names = ", ".join(f":{name}" for name in given)
        if not names:
            return []
        return self._database.query(
            f"{SELECT_DATASETS} WHERE d.urn IN ({names}) ORDER BY d.urn", given
        )

    def _with_derived_parts(self, dataset: LumosDataset) -> LumosDataset:
        """Give a dataset the lineage of the edges; its version is left to the history's."""
        known = self._database.query(
            "SELECT 1 AS found FROM versions WHERE urn = :urn LIMIT 1", {"urn": dataset.urn}
        )
        lineage = self._edges.lineage((dataset.urn,))[dataset.urn]
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
        if self._edges.connects(upstream, downstream):
            return False
        return self.put_edge(LineageEdge(upstream_urn=upstream, downstream_urn=downstream), at=at)

    def _renew_hash(self, urn: str) -> None:
        """Bring a stored hash up to date with the edges, which are part of the contract.

        A damaged dataset keeps its hash and its checksum, so that it stays known as damaged.
        """
        rows = self._database.query(SELECT_DATASETS + "WHERE d.urn = :urn", {"urn": urn})
        for dataset in self._datasets(rows, damaged=pass_over):
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
        lineage = self._edges.lineage([row.text("urn") for row in whole])
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
            Urn.canonical(row.text("urn")): stored_document(row, current_version(row, damaged))
            for row in whole_rows(rows, DATASETS, damaged)
        }
        for urn, lineage in self._edges.lineage([*found]).items() if neighbours else ():
            if lineage != DatasetLineage():
                whole = {**stored_object(found[Urn(urn)].decode()), "lineage": lineage.to_json()}
                found[Urn(urn)] = canonical_json(whole)
        return [*found.items()]

    def _as_written(self, row: Row) -> LumosDataset | None:
        """Return the dataset of a row that was just written, which need not be built anew."""
        if self._latest is None:
            return None
        texts, dataset = self._latest
        return dataset if texts == (row["document"], row["observed"]) else None


def _said_at(contribution: Contribution) -> datetime:
    return max((contribution.at, *contribution.said_at.values()))
