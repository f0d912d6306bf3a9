"""Edges that sources, files and inferences say, and what becomes of versions when they change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from lumos.core.models import Contributor, EdgeBasis, LineageEdge, LumosDataset, Urn
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.feature.ingestion.state_writer import StateWriter
from lumos.feature.versioning.version_service import VersionManager
from state_databases import ENGINES, url_for

AT = datetime(2024, 5, 1, tzinfo=UTC)
RAW, VIEW, OTHER = (
    Urn(f"lumos://postgres/shop/public/{name}") for name in ("raw", "view", "other")
)
DB, DBT = Contributor.of("source:db"), Contributor.of("declared:dbt")
SQL = Contributor.of("inferred:sql")


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as opened:
        yield opened


@pytest.fixture
def tables(database: StateDatabase) -> CatalogTables:
    tables = CatalogTables(database)
    for urn in (RAW, VIEW, OTHER):
        document = {"urn": urn, "name": urn.parts[-1], "platform": "postgres"}
        tables.put_found(LumosDataset.from_json(document), DB, hash="h", at=AT)
    return tables


def edge(upstream: Urn, downstream: Urn, basis: EdgeBasis = EdgeBasis.FOUND) -> LineageEdge:
    return LineageEdge(upstream_urn=upstream, downstream_urn=downstream, basis=basis)


def say(tables: CatalogTables, by: Contributor, *edges: LineageEdge, gone: bool = True) -> None:
    tables.edge_contributions.replace(by, edges, is_gone=lambda _: gone, at=AT)


def upstream(tables: CatalogTables, urn: Urn = VIEW) -> tuple[Urn, ...]:
    return tables.lineage_of(urn).upstream


def test_an_edge_is_there_as_long_as_anybody_says_so(tables: CatalogTables) -> None:
    say(tables, DB, edge(RAW, VIEW))
    say(tables, DBT, edge(RAW, VIEW, EdgeBasis.DECLARED))
    say(tables, DB)
    assert upstream(tables) == (RAW,)
    say(tables, DBT)
    assert upstream(tables) == ()


def test_an_edge_of_before_stays_when_a_source_no_longer_says_it(tables: CatalogTables) -> None:
    tables.put_edge(edge(RAW, VIEW, EdgeBasis.DECLARED), at=AT)
    say(tables, DB, edge(RAW, VIEW), edge(OTHER, VIEW))
    say(tables, DB)
    assert upstream(tables) == (RAW,)


def test_what_could_not_be_read_keeps_its_edges(tables: CatalogTables) -> None:
    say(tables, DB, edge(RAW, VIEW))
    say(tables, DB, gone=False)
    assert upstream(tables) == (RAW,)


def test_what_is_found_or_declared_outweighs_what_is_inferred(tables: CatalogTables) -> None:
    say(tables, SQL, edge(RAW, VIEW, EdgeBasis.INFERRED))
    assert tables.lineage_of(VIEW).inferred == (RAW,)
    say(tables, DB, edge(RAW, VIEW))
    assert tables.lineage_of(VIEW).inferred == ()
    say(tables, DB)
    assert tables.lineage_of(VIEW).inferred == (RAW,)


def test_an_edge_taken_out_by_hand_is_said_again_by_the_next_scan(tables: CatalogTables) -> None:
    say(tables, DB, edge(RAW, VIEW))
    tables.remove_edge(edge(RAW, VIEW))
    assert upstream(tables) == ()
    say(tables, DB, edge(RAW, VIEW))
    assert upstream(tables) == (RAW,)


def test_a_dataset_that_went_takes_no_edges_of_others_along(tables: CatalogTables) -> None:
    say(tables, DBT, edge(RAW, VIEW, EdgeBasis.DECLARED))
    left = tables.contributions.of(RAW).without(DB)
    tables.delete_dataset(RAW, left=left)
    assert upstream(tables) == (RAW,), "dbt still declares it"
    tables.delete_dataset(VIEW)
    assert upstream(tables) == ()


def test_a_better_parser_raises_no_version(tables: CatalogTables, database: StateDatabase) -> None:
    """Upgrade a parser: it finds other edges in the same SQL, and no contract has changed."""
    versions = VersionManager(HistoryRepository(database), clock=lambda: AT, author="ada")
    writer = StateWriter(database, tables, versions=versions, clock=lambda: AT, author="ada")

    def version() -> str | None:
        writer.refresh(VIEW)
        current = versions.get_current_version(VIEW)
        return current.version if current else None

    first = version()
    for edges in ([edge(RAW, VIEW, EdgeBasis.INFERRED)], [edge(OTHER, VIEW, EdgeBasis.INFERRED)]):
        say(tables, SQL, *edges)
        assert upstream(tables), "the edges are there"
        assert version() == first
    say(tables, DB, edge(OTHER, VIEW))
    assert version() != first, "what the server itself knows is part of the contract"
