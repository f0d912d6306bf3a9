"""Rows of the state database that are not what was written: found in every table, on any flip."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import (
    Change,
    Contributor,
    DatasetVersion,
    LineageEdge,
    LumosDataset,
    Urn,
    User,
    with_parts,
)
from lumos.core.models.alert import Alert
from lumos.core.platform.batch import Batch, Identity, Seen
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.alerts import AlertRepository
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.catalog.downstream import Downstream
from lumos.core.store.catalog.edge_contributions import EdgeContributions
from lumos.core.store.checkpoints import CheckpointRepository
from lumos.core.store.checksums import (
    OBSERVATIONS,
    PACKED_STATES,
    TABLES,
    CheckedTable,
    checksum_of,
)
from lumos.core.store.database import StateDatabase, engine_for
from lumos.core.store.history import HistoryRepository
from lumos.core.store.integrity import check_documents, check_structure
from lumos.core.store.runs import RunRepository
from lumos.core.store.schema_version import downgrade
from lumos.core.store.sync_states import SentState, SyncStates
from state_databases import ENGINES, url_for

AT = datetime(2026, 1, 2, tzinfo=UTC)
A, B, C = (Urn(f"lumos://s3/lake/{name}") for name in ("a", "b", "c"))


def dataset(urn: str) -> LumosDataset:
    return LumosDataset.from_json(
        {"urn": urn, "name": urn[-1], "platform": "s3", "statistics": {"row_count": 3}}
    )


def change(urn: str) -> Change:
    return Change.from_json(
        {
            "dataset": urn,
            "path": "id",
            "rule": "field.added",
            "level": "NON_BREAKING",
            "scope": "SCHEMA",
            "bump": "MINOR",
            "message": "the field id was added",
        }
    )


def fill(database: StateDatabase) -> None:
    """Put something into every table."""
    catalog = EmbeddedHandler(database, clock=lambda: AT)
    other = EmbeddedHandler(database, clock=lambda: AT, contributor=Contributor.of("people:other"))
    history = HistoryRepository(database)
    for urn in (A, B, C):
        catalog.emit_dataset(dataset(urn))
        version = DatasetVersion.from_json({"version": "1.0.0", "timestamp": AT.isoformat()})
        history.append(urn, version, dataset=dataset(urn), changes=[change(urn)])
        catalog.apply(Batch(identities=[Identity(urn, "datahub", f"id of {urn}")]))
    for ends in ((A, B), (B, C), (A, C)):
        catalog.apply(Batch(edges=[LineageEdge(upstream_urn=ends[0], downstream_urn=ends[1])]))
    for name in ("ann", "bob"):
        catalog.apply(Batch(entities=[User.from_json({"username": name})]))
    catalog.apply(Batch(extensions={"tool": {"key": "value"}}))
    other.emit_dataset(with_parts(dataset(A), tags=("seen",)))
    EdgeContributions(database, CatalogTables(database)).replace(
        Contributor.of("source:db"),
        [LineageEdge(upstream_urn=A, downstream_urn=B)],
        is_gone=lambda _: True,
        at=AT,
    )
    RunRepository(database).save("1 import", {"done": 1}, operation="import", started_at=AT)
    SyncStates(database, "there").put("dataset", [SentState(A, "hash", {"sent": {}})], at=AT)
    AlertRepository(database).add([alert(A)])
    CheckpointRepository(database).save("import", {"place": 1}, at=AT)


def alert(urn: str) -> Alert:
    finding = {
        "fingerprint": "print",
        "dataset": urn,
        "name": urn[-1],
        "version": "2.0.0",
        "timestamp": AT,
        "rule": "field.removed",
        "level": "BREAKING",
        "message": "the field id was removed",
    }
    return Alert.from_json({"id": "1", "channel": "mail", "created_at": AT, "finding": finding})


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as opened:
        fill(opened)
        yield opened


def test_what_lumos_writes_matches_its_checksums(database: StateDatabase) -> None:
    check_structure(database)
    found = check_documents(database)
    assert (found.damaged, found.named) == (0, ())
    assert found.documents > 20


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_of_an_earlier_lumos_gets_checksums(
    engine: str, request: pytest.FixtureRequest
) -> None:
    url = url_for(engine, request)
    with StateDatabase.open(url) as database:
        fill(database)
    downgrade(engine_for(url), to="0006")
    with StateDatabase.open(url) as database:
        found = check_documents(database)
    assert (found.damaged, found.documents > 20) == (0, True)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_a_change_in_any_table_is_found(database: StateDatabase, table: CheckedTable) -> None:
    if table in (PACKED_STATES, OBSERVATIONS):
        column = table.document
        changed = {
            "sqlite": f"CAST({column} || X'00' AS BLOB)",
            "postgresql": f"{column} || '\\x00'",
        }
        expression = changed[database.dialect]
    else:
        expression = f"replace({table.document}, '\"', '''')"
    statement = f"UPDATE {table.table} SET {table.document} = {expression}"  # noqa: S608
    count = database.execute(statement)
    assert check_documents(database).damaged == count > 0


def test_every_reader_of_a_damaged_row_says_so_or_passes_over_it(database: StateDatabase) -> None:
    for table in TABLES:
        database.execute(f"UPDATE {table.table} SET {table.column} = 1")  # noqa: S608
    catalog = EmbeddedHandler(database)
    history = HistoryRepository(database)
    assert not any(([*catalog.list()], [*catalog.list_edges()], [*catalog.list_entities("user")]))
    assert (catalog.identity_map(), catalog.extensions(), [*catalog.documents()]) == ({}, {}, [])
    assert catalog.find_datasets([A, B]) == {A: Seen(), B: Seen()}
    assert len(catalog.unreadable()) == 3 + 3 + 2 + 3 + 1
    reads: tuple[Callable[[], object], ...] = (
        lambda: catalog.get_dataset(A),
        lambda: catalog.search("a"),
        lambda: history.versions(A),
        lambda: history.current(A),
        lambda: history.since(None, limit=5),
        lambda: history.dataset_at(A, "1.0.0"),
        lambda: history.changes(A, "1.0.0"),
        lambda: history.current_states([A]),
        lambda: [*history.states(A)],
        lambda: history.currents_after("", limit=5, checked=True),
        lambda: RunRepository(database).recent(),
        lambda: SyncStates(database, "there").kept("dataset", A),
    )
    for read in reads:
        with pytest.raises(DamagedDocumentError):
            read()
    assert CheckpointRepository(database).load("import") is None
    assert Downstream(database).of(A, depth=2, limit=9) == ()
    assert Downstream(database).groups_of_users() == {}


def test_a_damaged_alert_is_given_up_and_holds_up_no_other(database: StateDatabase) -> None:
    outbox = AlertRepository(database)
    outbox.add([alert(B).model_copy(update={"id": "2"})])
    database.execute("UPDATE alerts SET document = '{}' WHERE id = '1'")
    claimed = outbox.claim("mail", at=AT, until=AT.replace(hour=1), limit=10)
    assert [each.id for each in claimed] == ["2"]
    (row,) = database.query("SELECT state, error FROM alerts WHERE id = '1'")
    assert row.text("state") == "FAILED"
    assert "does not match its checksum" in row.text("error")
    assert [each.id for each in outbox.list()[1]] == ["2"]


def test_an_edge_to_a_damaged_dataset_can_be_written_and_the_damage_stays_known(
    database: StateDatabase,
) -> None:
    database.execute(
        "UPDATE datasets SET document = replace(document, 's3', 's4') WHERE urn = :u", {"u": C}
    )
    catalog = EmbeddedHandler(database)
    catalog.apply(
        Batch(edges=[LineageEdge(upstream_urn=A, downstream_urn=C, job_urn=Urn(f"{A}-job"))])
    )
    assert [each.name for each in check_documents(database).named] == [C]
    catalog.emit_dataset(dataset(C))
    assert check_documents(database).damaged == 0
    assert catalog.get_dataset(C).lineage.upstream


def test_the_checksum_of_the_migration_is_that_of_the_code() -> None:
    import importlib

    migration = importlib.import_module("lumos.core.store.migrations.versions.0007_checksums")
    for document, keys in (("{}", ("a", "b", None)), (b"\x00\xff", ("é", 1)), (None, ())):
        given = document.encode() if isinstance(document, str) else document
        encoded = [None if key is None else str(key).encode() for key in keys]
        assert migration._checksum(given, *encoded) == checksum_of(document, *keys)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # PostgreSQL refuses the bytes
def test_a_damaged_number_of_a_version_costs_no_dataset(database: StateDatabase) -> None:
    database.execute(
        "UPDATE versions SET version = CAST(X'312E30FF' AS TEXT) WHERE urn = :u", {"u": B}
    )
    catalog = EmbeddedHandler(database)
    assert [each.urn for each in catalog.list()] == [A, B, C]
    assert [urn for urn, _ in catalog.documents()] == [A, B, C]
    assert [(each.kind, each.name) for each in catalog.unreadable()] == [("version", B)]
    assert catalog.find_datasets([B])[B].dataset
    for read in (lambda: catalog.get_dataset(B), lambda: catalog.search("b")):
        with pytest.raises(DamagedDocumentError, match=f"version {B}"):
            read()


@pytest.mark.parametrize(
    ("database", "column"),
    [("sqlite", "quality_score"), ("sqlite", "updated_at"), ("postgresql", "updated_at")],
    indirect=["database"],
)
def test_a_column_beside_the_document_that_cannot_be_read_is_damage(
    database: StateDatabase, column: str
) -> None:
    database.execute(f"UPDATE datasets SET {column} = 'x' WHERE urn = :u", {"u": B})  # noqa: S608
    catalog = EmbeddedHandler(database)
    assert [each.urn for each in catalog.list()] == [A, B, C]
    with pytest.raises(DamagedDocumentError, match=f"dataset {B}"):
        catalog.search("b")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("state") / "lumos.db"
    with StateDatabase.open(path) as database:
        fill(database)
    return path


TEXT_COLUMNS = [
    (table, column)
    for table in TABLES
    for column in (table.document, *((table.more,) if table.more else ()), *table.keys)
    if column not in {"sequence", "position"}
]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    place=st.sampled_from(TEXT_COLUMNS),
    row=st.integers(0, 10),
    byte=st.integers(0, 1000),
    flip=st.integers(1, 255),
)
def test_any_flipped_byte_of_any_row_is_found_and_costs_no_other(
    state: Path, place: tuple[CheckedTable, str], row: int, byte: int, flip: int
) -> None:
    table, column = place
    with TemporaryDirectory(dir=state.parent) as folder:
        path = Path(shutil.copy(state, folder))
        with closing(sqlite3.connect(path)) as raw, raw:
            rows = raw.execute(
                f"SELECT rowid, CAST({column} AS BLOB) FROM {table.table} WHERE {column} <> ''"  # noqa: S608
            ).fetchall()
            assume(rows)
            number, value = rows[row % len(rows)]
            content = bytearray(value)
            content[byte % len(content)] ^= flip
            is_packed = column == table.document and table in (PACKED_STATES, OBSERVATIONS)
            kind = "BLOB" if is_packed else "TEXT"
            try:
                raw.execute(
                    f"UPDATE {table.table} SET {column} = CAST(? AS {kind}) WHERE rowid = ?",  # noqa: S608
                    (bytes(content), number),
                )
            except sqlite3.IntegrityError:  # the key of another row
                reject()
        with StateDatabase.open(path) as database:
            assert check_documents(database).damaged >= 1
            assert_others_can_be_read(database, table)


def assert_others_can_be_read(database: StateDatabase, table: CheckedTable) -> None:
    catalog = EmbeddedHandler(database)
    found = [
        len([*catalog.list()]),
        len([*catalog.list_edges()]),
        len([*catalog.list_entities("user")]) + len(catalog.extensions()),
        sum(map(len, catalog.identity_map().values())),
    ]
    expected = [3, 3, 3, 3]
    lost = [count - number for count, number in zip(expected, found, strict=True)]
    of = ["datasets", "lineage_edges", "entities", "identity_map"]
    for name, missing in zip(of, lost, strict=True):
        assert missing <= (1 if name == table.table else 0)
    assert len([*catalog.documents()]) == found[0]
    for urn in (A, B, C):
        with suppress(DamagedDocumentError):  # and nothing else
            HistoryRepository(database).versions(urn)
            [*HistoryRepository(database).states(urn)]
