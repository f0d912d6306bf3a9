"""A renamed dataset keeps its history, its lineage and everything else, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lumos.core.changes import diff_datasets
from lumos.core.models import (
    Contributor,
    ContributorKind,
    DatasetVersion,
    LineageEdge,
    LumosDataset,
    Urn,
)
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.storage.local import LocalSource
from lumos.core.store.catalog.catalog_states import CatalogStates
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.core.store.integrity import check_documents, check_structure
from lumos.core.store.renaming import Renaming, rename_datasets
from lumos.core.store.sync_states import WHOLE_NAME, SentState, SyncStates
from lumos.feature.ingestion.local_names import renamed_datasets
from lumos.feature.ingestion.scan.sources import ScanSource
from lumos.feature.sync.items import edge_name
from state_databases import ENGINES, url_for

if TYPE_CHECKING:
    from lumos.core.errors import DamagedDocumentError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOLDER = Path(__file__).parent  # any that exists
OLD = Urn.of("local", *FOLDER.parts[1:], "orders")
NEW = "lumos://local/lake/orders"
REPORT = "lumos://snowflake/FINANCE/REVENUE"
GONE = Urn.of("local", *FOLDER.parts[1:], "gone")
LAKE = Contributor(ContributorKind.SOURCE, "lake")
EDGE = LineageEdge(upstream_urn=OLD, downstream_urn=Urn(REPORT))


def orders(*fields: str) -> LumosDataset:
    return LumosDataset.from_json(
        {
            "urn": OLD,
            "name": "orders",
            "platform": "local",
            "location": {"path": str(FOLDER), "prefix": "/orders/"},
            "schema": {"fields": [{"name": name, "type": "STRING"} for name in fields]},
            "statistics": {"row_count": 7},
            "extensions": {"lumos": {"source": "lake", "dataset": '["orders"]'}},
        }
    )


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as database:
        filled(database)
        yield database


def filled(database: StateDatabase) -> None:
    """Write a state as Lumos did when local URNs held every folder."""
    tables, history = CatalogTables(database), HistoryRepository(database)
    first, second = orders("id"), orders("id", "total")
    report = LumosDataset.from_json({"urn": REPORT, "name": "REVENUE", "platform": "snowflake"})
    tables.put_found(second, LAKE, hash="found", at=NOW)
    tables.put_dataset(report, at=NOW)
    tables.put_edge(EDGE, at=NOW)
    tables.identities.put(OLD, "datahub", external_id="urn:li:dataset:1")
    for urn, number, dataset in ((OLD, "1.0.0", first), (OLD, "2.0.0", second)):
        version = DatasetVersion(version=number, timestamp=NOW, author="a")
        changes = diff_datasets(first, second) if number == "2.0.0" else ()
        history.append(urn, version, dataset=dataset, changes=changes)
    with_lineage = next(iter(tables.datasets_named([REPORT], damaged=_raise)))
    version = DatasetVersion(version="1.0.0", timestamp=NOW, author="a")
    history.append(REPORT, version, dataset=with_lineage, changes=())
    history.append(GONE, version, dataset=orders("id"), changes=())
    states = SyncStates(database, "datahub")
    states.put("dataset", [SentState(OLD, "h", {"sent": {}})], at=NOW)
    states.put("lineage_edge", [SentState(edge_name(EDGE), "h")], at=NOW)


def _raise(error: DamagedDocumentError) -> None:
    raise error


def renamed(database: StateDatabase, *, root: str = "lake", path: Path = FOLDER) -> int:
    source = ScanSource.of(LocalSource(name="lake", path=str(path), root=root))
    renamings = renamed_datasets(database, [source])
    with database.transaction():
        for renaming in renamings:
            rename_datasets(database, renaming)
    return sum(len(each.names) for each in renamings)


def test_everything_that_named_the_dataset_has_its_new_name(database: StateDatabase) -> None:
    assert renamed(database) == 1

    tables, history = CatalogTables(database), HistoryRepository(database)
    assert tables.dataset(OLD) is None
    dataset = tables.dataset(NEW)
    assert dataset is not None
    assert (dataset.urn, dataset.name) == (NEW, "orders")
    assert dataset.statistics is not None
    assert dataset.statistics.row_count == 7
    assert dataset.location is not None
    assert (dataset.location.path, dataset.location.prefix) == (None, "/orders/")
    assert dataset.extensions["lumos"] == {
        "source": "lake", "dataset": '["orders"]', "folder": str(FOLDER),
    }  # fmt: skip
    assert [each.version for each in history.versions(NEW)] == ["1.0.0", "2.0.0"]
    assert not history.versions(OLD)
    assert tables.identities.all(damaged=_raise) == {
        NEW: {"datahub": "urn:li:dataset:1", "lumos": OLD}
    }
    (edge,) = EmbeddedHandler(database).list_edges()
    assert (edge.upstream_urn, edge.downstream_urn) == (NEW, REPORT)
    assert [hit.urn for hit in EmbeddedHandler(database).search("orders").hits] == [NEW]
    assert not EmbeddedHandler(database).search(FOLDER.name).hits


def test_nothing_looks_changed_and_nothing_is_damaged(database: StateDatabase) -> None:
    renamed(database)

    (page,) = CatalogStates(database).pages(10)
    known = HistoryRepository(database).currents([*page])
    assert page == {urn: version.contract_hash for urn, version in known.items()}
    check_structure(database)
    assert check_documents(database).damaged == 0


def test_a_dataset_that_is_gone_keeps_its_history_under_its_new_name(
    database: StateDatabase,
) -> None:
    renamed(database)
    assert HistoryRepository(database).versions("lumos://local/lake/gone")
    assert not HistoryRepository(database).versions(GONE)


def test_a_second_run_and_the_lake_in_another_folder_rename_nothing(
    database: StateDatabase,
) -> None:
    assert renamed(database) == 1
    assert renamed(database) == 0
    assert renamed(database, path=FOLDER.parent) == 0


def test_another_root_renames_the_datasets_once_more(database: StateDatabase) -> None:
    renamed(database)
    assert renamed(database, root="shop") == 1
    assert CatalogTables(database).dataset("lumos://local/shop/orders") is not None
    assert SyncStates(database, "datahub").former_names() == {"lumos://local/shop/orders": OLD}
    assert check_documents(database).damaged == 0


def test_a_root_that_is_called_like_the_first_folder_is_told_from_it(
    database: StateDatabase,
) -> None:
    root = FOLDER.parts[1]
    assert renamed(database, root=root) == 1
    assert renamed(database, root=root) == 0
    assert CatalogTables(database).dataset(f"lumos://local/{root}/orders") is not None


def test_a_catalog_that_was_sent_the_dataset_keeps_its_name(database: StateDatabase) -> None:
    renamed(database)
    states = SyncStates(database, "datahub")
    assert states.former_names() == {NEW: OLD}
    assert [*states.names("dataset")] == [NEW]
    assert [*states.names("lineage_edge")] == [
        edge_name(LineageEdge(upstream_urn=Urn(NEW), downstream_urn=Urn(REPORT)))
    ]


def test_a_name_that_another_dataset_has_is_not_taken(database: StateDatabase) -> None:
    tables = CatalogTables(database)
    other = LumosDataset.from_json({"urn": NEW, "name": "orders", "platform": "local"})
    tables.put_dataset(other, at=NOW)
    assert renamed(database) == 0
    assert tables.dataset(OLD) is not None


def test_a_damaged_dataset_stays_as_it_is(database: StateDatabase) -> None:
    database.execute("UPDATE datasets SET document = '{' WHERE urn = :urn", {"urn": OLD})
    assert renamed(database) == 0
    assert check_documents(database).damaged == 1


def test_damaged_rows_of_other_tables_end_no_renaming_and_stay_damaged(
    database: StateDatabase,
) -> None:
    tables = CatalogTables(database)
    people = Contributor(ContributorKind.PEOPLE, "datahub")
    tables.put_dataset(orders("id", "total", "note"), at=NOW, by=people)
    database.execute("UPDATE contributions SET document = '{' WHERE urn = :urn", {"urn": OLD})
    database.execute("UPDATE lineage_edges SET document = '{'")
    database.execute("UPDATE versions SET state = :state", {"state": b"no frame"})
    kept = f'{{"{WHOLE_NAME}": '
    database.execute("UPDATE sync_states SET kept = :kept", {"kept": kept})
    damaged = check_documents(database).damaged
    assert damaged >= 4

    assert renamed(database) == 1

    assert database.query("SELECT 1 AS x FROM contributions WHERE urn = :urn", {"urn": NEW})
    assert not database.query("SELECT 1 AS x FROM contributions WHERE urn = :urn", {"urn": OLD})
    assert check_documents(database).damaged == damaged


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'"{OLD}"', f'"{NEW}"'),
        (f"see {OLD}, or {OLD}.", f"see {NEW}, or {NEW}."),
        (f'"{OLD}_2"', f'"{OLD}_2"'),
        ("nothing", "nothing"),
        ('"lumos://local/old/x/y"', '"lumos://local/now/x/y"'),
        ('"lumos://local/old/kept"', '"lumos://local/old/kept"'),
    ],
)
def test_urns_in_text_are_renamed_whole(text: str, expected: str) -> None:
    renaming = Renaming(
        {OLD: NEW},
        {"lumos://local/old/": "lumos://local/now/"},
        frozenset({"lumos://local/old/kept"}),
    )
    assert renaming.in_text(text) == expected
