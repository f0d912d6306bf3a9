"""What was measured of datasets, as the state keeps it, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import (
    Contributor,
    LumosDataset,
    Observation,
    ObservationKind,
    Urn,
    with_parts,
)
from lumos.core.models.base import canonical_json
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.catalog.observations import NEVER_TOO_OLD, StoredObservation
from lumos.core.store.catalog.observed_parts import join_document, split_document
from lumos.core.store.checksums import refuse_damage
from lumos.core.store.database import StateDatabase, engine_for
from lumos.core.store.integrity import check_documents
from lumos.core.store.schema_version import downgrade
from lumos.core.store.settings import ObservationSettings
from lumos.core.store.version_states import unpacked
from state_databases import ENGINES, url_for

AT = datetime(2024, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ORDERS = Urn("lumos://s3/lake/orders")
LAKE, OTHER = Contributor.of("source:lake"), Contributor.of("source:other")
DBT = Contributor.of("declared:dbt")
PROFILER = Contributor.of("inferred:profile")
STATISTICS = ObservationKind.STATISTICS
PARTS: dict[str, JsonValue] = {
    "statistics": {"row_count": 3, "total_size_bytes": 70},
    "profile": {"profiled_at": "2024-05-01T00:00:00Z", "row_count": 3, "file_count": 1},
    "quality": {"score": 99.5},
    "cost": {
        "dataset": ORDERS,
        "period": "2024-05",
        "kind": "storage",
        "amount": "1.20",
    },
}


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as opened:
        yield opened


@pytest.fixture
def tables(database: StateDatabase) -> CatalogTables:
    return CatalogTables(database)


def orders(rows: int | None = None, /, **parts: object) -> LumosDataset:
    measured = {} if rows is None else {"statistics": {"row_count": rows}}
    document = {"urn": ORDERS, "name": "orders", "platform": "s3", **measured, **parts}
    return LumosDataset.from_json(document)


def find(tables: CatalogTables, rows: int | None, *, at: datetime, by: Contributor = LAKE) -> None:
    said = tables.contributions.of(ORDERS).stating(by, orders(rows).to_json(), at=at, hash="h")
    tables.put_said(said, at=at)


def measured(rows: int, at: datetime, kind: ObservationKind = STATISTICS) -> Observation:
    return Observation(urn=ORDERS, kind=kind, at=at, document={"row_count": rows})


def shown(tables: CatalogTables) -> LumosDataset:
    dataset = tables.dataset(ORDERS)
    assert dataset is not None
    return dataset


def rows_shown(tables: CatalogTables) -> int | None:
    statistics = shown(tables).statistics
    return statistics.row_count if statistics else None


def series(
    tables: CatalogTables, kind: ObservationKind = STATISTICS, *, since: datetime | None = None
) -> list[StoredObservation]:
    return tables.observations.series(
        ORDERS, kind, since=since, limit=10_000, damaged=refuse_damage
    )


def rows_of(found: list[StoredObservation]) -> list[JsonValue]:
    return [each.observation.document["row_count"] for each in found]


def column(database: StateDatabase, name: str) -> object:
    (row,) = database.query(f"SELECT {name} FROM datasets")  # noqa: S608
    return row[name]


def test_every_new_figure_is_appended_and_the_document_stays(
    tables: CatalogTables, database: StateDatabase
) -> None:
    tables.put_found(orders(3), LAKE, hash="h", at=AT)
    document, fingerprint = column(database, "document"), shown(tables).contract_hash
    tables.put_found(orders(5), LAKE, hash="i", at=AT + DAY)
    tables.put_found(orders(5), LAKE, hash="j", at=AT + 2 * DAY)

    assert rows_of(series(tables)) == [3, 5]
    assert [each.contributor for each in series(tables)] == ["source:lake"] * 2
    assert [each.observation.at for each in series(tables)] == [AT, AT + DAY]
    assert (rows_shown(tables), column(database, "document")) == (5, document)
    assert "row_count" not in str(document)
    assert shown(tables).contract_hash == fingerprint
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "j")]
    assert check_documents(database).damaged == 0


def test_two_measurements_of_one_moment_are_one(tables: CatalogTables) -> None:
    tables.put_found(orders(3), LAKE, hash="h", at=AT)
    tables.put_found(orders(4), LAKE, hash="i", at=AT)
    assert rows_of(series(tables)) == [4]


def test_a_dataset_shows_the_latest_whoever_measured_it(tables: CatalogTables) -> None:
    find(tables, 3, at=AT)
    assert tables.observe(ORDERS, DBT, [measured(9, AT + DAY)], at=AT + 5 * DAY)
    assert rows_shown(tables) == 9
    find(tables, 4, at=AT + 2 * DAY)
    assert rows_shown(tables) == 4
    assert not tables.observe(ORDERS, DBT, [measured(9, AT + DAY)], at=AT + 5 * DAY)
    assert not tables.observe(ORDERS, DBT, [measured(8, AT)], at=AT + 5 * DAY)  # too late
    assert rows_of(series(tables)) == [3, 9, 4]
    assert rows_of(series(tables, since=AT + DAY)) == [9, 4]
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "h")]


def test_all_points_that_a_source_gives_at_once_are_kept(tables: CatalogTables) -> None:
    find(tables, None, at=AT)
    points = [measured(number, AT + number * DAY) for number in range(5)]
    for _ in range(2):
        tables.observe(ORDERS, LAKE, points, at=AT + 9 * DAY)
    assert rows_of(series(tables)) == [0, 1, 2, 3, 4]
    assert rows_shown(tables) == 4


def test_what_no_part_of_a_dataset_shows_is_a_series_too(tables: CatalogTables) -> None:
    find(tables, 3, at=AT)
    assert tables.observe(ORDERS, DBT, [measured(7, AT, ObservationKind.USAGE)], at=AT)
    find(tables, 4, at=AT + DAY)
    assert rows_of(series(tables, ObservationKind.USAGE)) == [7]
    assert {str(each.contributor) for each in tables.contributions.of(ORDERS).said} == {
        "source:lake"
    }


def test_a_dataset_that_is_not_there_is_not_observed(tables: CatalogTables) -> None:
    assert not tables.observe(ORDERS, DBT, [measured(9, AT)], at=AT)
    assert series(tables) == []


def test_one_who_only_measures_does_not_count_as_one_who_found_it(tables: CatalogTables) -> None:
    find(tables, 3, at=AT)
    tables.observe(ORDERS, OTHER, [measured(9, AT + DAY)], at=AT + DAY)
    said = tables.contributions.of(ORDERS)
    assert (said.is_alive, said.without(LAKE).is_alive) == (True, False)
    assert tables.contributions.found_states(OTHER) == []
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "h")]
    tables.put_said(said.without(OTHER), at=AT + 2 * DAY)
    assert not tables.observe(ORDERS, OTHER, [measured(7, AT + DAY)], at=AT + 3 * DAY)
    assert rows_shown(tables) == 3


def test_a_source_that_describes_anew_keeps_what_it_measured(tables: CatalogTables) -> None:
    find(tables, None, at=AT, by=DBT)
    tables.observe(ORDERS, DBT, [measured(9, AT)], at=AT)
    find(tables, None, at=AT + DAY, by=DBT)
    assert (rows_shown(tables), rows_of(series(tables))) == (9, [9])


def test_an_editor_gets_the_dataset_that_it_wrote(tables: CatalogTables) -> None:
    find(tables, 3, at=AT)
    find(tables, 6, at=AT + DAY, by=OTHER)
    for wanted in (orders(5), orders(), orders(3), orders(6), orders(**PARTS)):
        tables.put_dataset(wanted, at=AT + 2 * DAY)
        assert shown(tables) == wanted
    assert len(series(tables, ObservationKind.COST)) == 1


def test_one_who_withdraws_leaves_the_figures_of_the_others(tables: CatalogTables) -> None:
    find(tables, 3, at=AT)
    find(tables, 6, at=AT + DAY, by=OTHER)
    tables.put_said(tables.contributions.of(ORDERS).without(OTHER), at=AT + 2 * DAY)
    assert rows_shown(tables) == 3
    assert rows_of(series(tables)) == [3, 6]
    find(tables, 3, at=AT + 3 * DAY)
    assert rows_shown(tables) == 3


def test_a_series_outlives_a_dataset_that_is_withdrawn_and_not_one_that_is_deleted(
    tables: CatalogTables,
) -> None:
    find(tables, 3, at=AT)
    tables.delete_dataset(ORDERS, left=tables.contributions.of(ORDERS).without(LAKE))
    assert rows_of(series(tables)) == [3]
    find(tables, 4, at=AT + DAY)
    assert rows_of(series(tables)) == [3, 4]
    tables.delete_dataset(ORDERS)
    assert series(tables) == []


def test_what_is_kept_is_bounded_by_number(database: StateDatabase) -> None:
    tables = CatalogTables(database, retention=ObservationSettings(keep_last=3))
    for number in range(10):
        find(tables, number, at=AT + number * DAY)
        assert rows_shown(tables) == number
    assert rows_of(series(tables)) == [7, 8, 9]


def test_what_is_kept_is_bounded_by_age(database: StateDatabase) -> None:
    tables = CatalogTables(database, retention=ObservationSettings(keep_days=40))
    for number in range(60):
        find(tables, number, at=AT + number * DAY)
    assert rows_of(series(tables)) == [*range(19, 60)]


def test_a_clock_that_jumps_removes_none_of_the_newest(database: StateDatabase) -> None:
    tables = CatalogTables(database, retention=ObservationSettings(keep_days=1))
    for number in range(20):
        find(tables, number, at=AT + number * timedelta(hours=1))
    for number in range(20, 25):  # ten years ahead, and back again
        find(tables, number, at=AT + timedelta(days=3650, hours=number))
    for number in range(25, 30):
        find(tables, number, at=AT + timedelta(hours=number))
        assert rows_shown(tables) == number
    assert sorted(map(str, rows_of(series(tables)))) == sorted(map(str, range(NEVER_TOO_OLD)))


def test_a_damaged_measurement_costs_no_other(
    tables: CatalogTables, database: StateDatabase
) -> None:
    for number in range(3):
        find(tables, number, at=AT + number * DAY)
    database.execute(
        "UPDATE observations SET document = :bytes WHERE sequence > 1", {"bytes": b"x"}
    )
    damaged: list[DamagedDocumentError] = []
    found = tables.observations.series(ORDERS, STATISTICS, limit=10, damaged=damaged.append)
    assert (rows_of(found), len(damaged)) == ([0], 2)
    assert rows_shown(tables) == 2
    find(tables, 2, at=AT + 3 * DAY)
    assert rows_shown(tables) == 2


def test_damage_of_what_a_dataset_shows_is_found(
    tables: CatalogTables, database: StateDatabase
) -> None:
    tables.put_found(orders(3), LAKE, hash="h", at=AT)
    database.execute("UPDATE datasets SET observed = replace(observed, '3', '4')")
    with pytest.raises(DamagedDocumentError):
        tables.dataset(ORDERS)
    tables.put_found(orders(5), LAKE, hash="i", at=AT + DAY)
    assert rows_shown(tables) == 5


def test_searches_and_exports_see_the_latest(
    tables: CatalogTables, database: StateDatabase
) -> None:
    wanted = orders(**PARTS)
    tables.put_found(wanted, LAKE, hash="h", at=AT)
    catalog = EmbeddedHandler(database)
    (hit,) = catalog.search("orders").hits
    assert hit.quality_score == 99.5
    before = catalog.content_fingerprint()
    ((_, content),) = catalog.documents()
    assert content == canonical_json(wanted.to_json())
    tables.put_found(with_parts(wanted, quality=None), LAKE, hash="h", at=AT)
    assert catalog.content_fingerprint() != before
    assert catalog.search("orders").hits[0].quality_score is None


@pytest.mark.parametrize("several", [False, True])
def test_a_state_of_an_earlier_lumos_is_split_when_it_is_next_written(
    tables: CatalogTables, database: StateDatabase, *, several: bool
) -> None:
    find(tables, 3, at=AT)
    if several:
        find(tables, 9, at=AT - DAY, by=OTHER)
    whole = join_document(str(column(database, "document")), str(column(database, "observed")))
    as_before(database, whole, several=several)
    assert rows_shown(tables) == 3
    find(tables, 4, at=AT + DAY)
    assert rows_shown(tables) == 4
    assert rows_of(series(tables))[-1] == 4
    assert "row_count" not in str(column(database, "document"))
    (row,) = database.query(
        "SELECT count(*) AS n FROM contributions WHERE document LIKE '%row_count%'"
    )
    assert row.integer("n") == 0


def as_before(database: StateDatabase, whole: str, *, several: bool) -> None:
    """Make a state what it was before there were series."""
    from lumos.core.store.checksums import CONTRIBUTIONS, DATASETS

    database.execute("DELETE FROM observations")
    (row,) = database.query(DATASETS.select())
    given = {name: row[name] for name in DATASETS.keys} | {"document": whole, "observed": None}
    database.execute(
        "UPDATE datasets SET document = :document, observed = NULL, checksum = :checksum",
        {"document": whole, "checksum": DATASETS.checksum(given)},
    )
    figures = {"source:lake": 3, "source:other": 9}
    for row in database.query(CONTRIBUTIONS.select()) if several else ():
        document = json.loads(row.text("document"))
        rows = figures[row.text("contributor")]
        document["facets"]["statistics"] = {"row_count": rows}
        text = canonical_json(document).decode()
        key = {"urn": row["urn"], "contributor": row["contributor"]}
        checksum = CONTRIBUTIONS.checksum({**key, "document": text})
        database.execute(
            "UPDATE contributions SET document = :document, checksum = :checksum "
            "WHERE urn = :urn AND contributor = :contributor",
            {**key, "document": text, "checksum": checksum},
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_earlier_lumos_gets_whole_documents_back(
    engine: str, request: pytest.FixtureRequest
) -> None:
    url = url_for(engine, request)
    with StateDatabase.open(url) as database:
        CatalogTables(database).put_found(orders(**PARTS), LAKE, hash="h", at=AT)
    downgrade(engine_for(url), to="0008")
    with StateDatabase.open(url) as database:
        assert column(database, "observed") is None
        assert shown(CatalogTables(database)) == orders(**PARTS)


_TEXTS = st.text(max_size=8)
_DOCUMENTS = st.fixed_dictionaries(
    {"urn": st.just(ORDERS)},
    optional={
        name: st.recursive(
            st.none() | st.integers(-9, 9) | _TEXTS,
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(_TEXTS | st.sampled_from([*PARTS]), inner, max_size=3)
            ),
            max_leaves=6,
        )
        for name in (*PARTS, "assertions", "name", "properties", "schema", "tags", "version")
    },
)


@given(document=_DOCUMENTS)
def test_a_split_document_joins_to_the_canonical_json(document: dict[str, JsonValue]) -> None:
    text, observed = split_document(document)
    assert not set(PARTS) & set(json.loads(text))
    joined = text if observed is None else join_document(text, observed)
    assert joined.encode() == canonical_json(document)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["find", "observe", "edit", "withdraw"]),
        st.sampled_from([LAKE, OTHER, DBT]),
        st.none() | st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=_STEPS)
def test_what_is_shown_is_the_newest_of_the_series(tmp_path: Path, steps: list[object]) -> None:
    with StateDatabase.open(tmp_path / "state.db") as database:
        database.execute("DELETE FROM observations")
        tables = CatalogTables(database)
        tables.delete_dataset(ORDERS)
        tables.put_found(orders(), LAKE, hash="h", at=AT)
        at = AT
        for action, by, rows, hours in cast(
            "list[tuple[str, Contributor, int | None, int]]", steps
        ):
            at += timedelta(hours=hours)
            if action == "find":
                find(tables, rows, at=at, by=by)
            elif action == "observe":
                tables.observe(ORDERS, by, [measured(rows or 0, at - timedelta(hours=1))], at=at)
            elif action == "edit":
                tables.put_dataset(orders(rows), at=at)
                assert shown(tables) == orders(rows)
            elif (left := tables.contributions.of(ORDERS).without(by)).is_alive:
                tables.put_said(left, at=at)
            assert rows_shown(tables) == newest(database)
        assert check_documents(database).damaged == 0


def newest(database: StateDatabase) -> int | None:
    """Return the latest of what each contributor measured last, computed plainly."""
    last: dict[str, tuple[str, int | None, bool]] = {}
    for row in database.query("SELECT * FROM observations ORDER BY sequence"):
        content = row["document"]
        document = json.loads(unpacked(content)) if isinstance(content, bytes) else None
        rows = (document or {}).get("row_count")
        last[row.text("contributor")] = row.text("at"), rows, content is not None
    speaking = [(at, rows) for at, rows, speaks in last.values() if speaks]
    if not speaking:
        return None
    latest = max(at for at, _ in speaking)
    tied = {rows for at, rows in speaking if at == latest}
    return tied.pop() if len(tied) == 1 else shown_of_tie(database, tied)


def shown_of_tie(database: StateDatabase, tied: set[int | None]) -> int | None:
    """Return what is shown where two measured at one time: either will do."""
    rows = rows_shown(CatalogTables(database))
    assert rows in tied
    return rows
