"""The history of datasets and the reports of runs, on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from lumos.core.errors import DamagedDocumentError, StateError, VersionNotFoundError
from lumos.core.models import (
    Bump,
    Change,
    ChangeLevel,
    ChangeScope,
    DatasetVersion,
    LumosDataset,
    Urn,
)
from lumos.core.models.facets import NOT_COMPARED
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.checksums import checksum_of
from lumos.core.store.database import StateDatabase
from lumos.core.store.documents import stored_text
from lumos.core.store.history import HistoryRepository, NewEntry
from lumos.core.store.runs import RunRepository, StoredRun
from lumos.testing.platform_samples import dataset
from state_databases import ENGINES, url_for

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
CUSTOMERS = dataset("customers")


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as database:
        yield database


@pytest.fixture
def history(database: StateDatabase) -> HistoryRepository:
    return HistoryRepository(database)


def version(number: str, **parts: object) -> DatasetVersion:
    return DatasetVersion.model_validate({"version": number, "timestamp": AT, **parts})


def change(path: str, *, old: str | None = None) -> Change:
    return Change(
        dataset=CUSTOMERS.urn,
        path=path,
        rule="field-removed",
        level=ChangeLevel.BREAKING,
        scope=ChangeScope.SCHEMA,
        bump=Bump.MAJOR,
        old=old,
        message="a field was removed\0",
    )


def append(history: HistoryRepository, number: str, **parts: object) -> None:
    history.append(CUSTOMERS.urn, version(number, **parts), dataset=CUSTOMERS, changes=())


def test_versions_come_back_in_the_order_they_were_made(history: HistoryRepository) -> None:
    for number in ("1.0.0", "1.10.0", "1.9.0"):
        append(history, number, author="ada\0", cloud_version=f"S-\0{number}")

    found = history.versions(CUSTOMERS.urn)

    assert [each.version for each in found] == ["1.0.0", "1.10.0", "1.9.0"]
    assert found[0] == version("1.0.0", author="ada\0", cloud_version="S-\x001.0.0")
    assert history.current(CUSTOMERS.urn) == found[-1]


def test_a_dataset_without_history_has_no_version(history: HistoryRepository) -> None:
    assert history.versions(CUSTOMERS.urn) == ()
    assert history.current(CUSTOMERS.urn) is None
    with pytest.raises(VersionNotFoundError, match="no history"):
        history.dataset_at(CUSTOMERS.urn, "1.0.0")


def test_a_dataset_comes_back_as_it_was(history: HistoryRepository) -> None:
    older = dataset("customers", tags=["old"], documentation={"description": "\0"})
    history.append(older.urn, version("1.0.0"), dataset=older, changes=())
    history.append(older.urn, version("2.0.0"), dataset=CUSTOMERS, changes=[change("email")])

    assert history.dataset_at(older.urn, "1.0.0") == older
    assert history.dataset_at(older.urn, "2.0.0") == CUSTOMERS


def test_changes_keep_their_order(history: HistoryRepository) -> None:
    changes = (change("z", old="1"), change("a"), change("m\0"))
    append(history, "1.0.0")
    history.append(CUSTOMERS.urn, version("2.0.0"), dataset=CUSTOMERS, changes=changes)

    assert history.changes(CUSTOMERS.urn, "1.0.0") == ()
    assert history.changes(CUSTOMERS.urn, "2.0.0") == changes


@pytest.mark.parametrize("number", ["3.0.0", "x'; DROP TABLE versions; --", "\0", "\udcff"])
def test_a_missing_version_names_the_known_ones(history: HistoryRepository, number: str) -> None:
    append(history, "1.0.0")
    append(history, "2.0.0")
    for look in (history.dataset_at, history.changes):
        with pytest.raises(VersionNotFoundError) as caught:
            look(CUSTOMERS.urn, number)
        assert caught.value.hint == "it has 1.0.0, 2.0.0"


def test_the_same_version_cannot_be_made_twice(history: HistoryRepository) -> None:
    append(history, "1.0.0")
    with pytest.raises(StateError, match="already has a version"):
        append(history, "1.0.0", author="somebody else")

    assert history.versions(CUSTOMERS.urn) == (version("1.0.0"),)


def test_an_append_falls_with_the_transaction_of_its_caller(
    database: StateDatabase, history: HistoryRepository
) -> None:
    def append_and_fail() -> None:
        history.append(CUSTOMERS.urn, version("1.0.0"), dataset=CUSTOMERS, changes=[change("a")])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), database.transaction():
        append_and_fail()

    assert history.versions(CUSTOMERS.urn) == ()
    assert database.query("SELECT * FROM changes") == []


def test_histories_of_datasets_are_apart(history: HistoryRepository) -> None:
    append(history, "1.0.0")
    other = Urn.of("s3", "lake", "orders")

    assert history.versions(other) == ()


def entry(name: str, sequence: int, number: str, *, tags: Sequence[str] = ()) -> NewEntry:
    state = dataset(name, tags=tags)
    return NewEntry(state.urn, sequence, version(number), state, ())


def test_many_datasets_are_asked_for_at_once(history: HistoryRepository) -> None:
    names = [f"d{number:04}" for number in range(1_100)]
    history.append_many(entry(name, 1, "1.0.0") for name in names)
    history.append_many([entry("d0007", 2, "1.1.0", tags=["new"])])
    urns = [dataset(name).urn for name in names]

    found = history.currents([*urns, Urn.of("s3", "nowhere")])

    assert [*sorted(found)] == urns
    assert {each.version.version for each in found.values()} == {"1.0.0", "1.1.0"}
    changed = found[urns[7]]
    assert (changed.sequence, changed.version.version) == (2, "1.1.0")
    assert changed.contract_hash == dataset("d0007", tags=["new"]).contract_hash
    states = history.current_states(urns[5:9])
    assert states == {urn: dataset(urn.parts[-1]) for urn in urns[5:9]} | {
        urns[7]: dataset("d0007", tags=["new"])
    }
    assert history.count() == 1_100
    assert history.currents([]) == {} == history.current_states([])


def test_the_newest_versions_are_listed_page_by_page(history: HistoryRepository) -> None:
    for name in ("b", "a", "c"):
        history.append_many([entry(name, 1, "1.0.0"), entry(name, 2, "2.0.0")])

    first = history.currents_after("", limit=2)
    second = history.currents_after(first[-1].urn, limit=2)

    listed = [(each.urn, each.version.version) for each in (*first, *second)]
    assert listed == [(dataset(name).urn, "2.0.0") for name in ("a", "b", "c")]
    assert history.currents_after(second[-1].urn, limit=2) == []


def test_the_states_of_a_dataset_come_in_order_however_many(history: HistoryRepository) -> None:
    count = 230
    history.append_many(
        entry("d", number, f"{number}.0.0", tags=[f"t{number}"]) for number in range(1, count + 1)
    )

    told = [(each.version, *state.tags) for each, state in history.states(dataset("d").urn)]

    assert told == [(f"{number}.0.0", f"t{number}") for number in range(1, count + 1)]


def test_a_version_of_an_older_lumos_is_read_from_its_text(
    database: StateDatabase, history: HistoryRepository
) -> None:
    append(history, "1.0.0")
    older = dataset("customers", statistics={"row_count": 7})
    (written,) = database.query("SELECT document FROM versions")
    database.execute(
        "UPDATE versions SET state = NULL, contract_hash = NULL, dataset = :text, "
        "checksum = :checksum, state_checksum = :state_checksum",
        {
            "text": stored_text(older.to_json()),
            "checksum": checksum_of(written.text("document"), CUSTOMERS.urn, 1, "1.0.0", None),
            "state_checksum": checksum_of(stored_text(older.to_json()), CUSTOMERS.urn, 1),
        },
    )

    assert history.dataset_at(CUSTOMERS.urn, "1.0.0") == older
    assert history.current_states([CUSTOMERS.urn]) == {CUSTOMERS.urn: older}
    assert history.currents([CUSTOMERS.urn])[CUSTOMERS.urn].contract_hash is None


@pytest.mark.parametrize("damaged", [b"", b"no zstd", zstandard.compress(b"\xff")])
def test_a_damaged_state_is_told_as_such(
    database: StateDatabase, history: HistoryRepository, damaged: bytes
) -> None:
    append(history, "1.0.0")
    database.execute("UPDATE versions SET state = :state", {"state": damaged})
    with pytest.raises(DamagedDocumentError, match="customers 1 does not match its checksum"):
        history.dataset_at(CUSTOMERS.urn, "1.0.0")

    checksum = checksum_of(damaged, CUSTOMERS.urn, 1)  # it was damaged before it had a checksum
    database.execute("UPDATE versions SET state_checksum = :sum", {"sum": checksum})
    with pytest.raises(StateError, match=r"a stored (version|document) is damaged"):
        history.dataset_at(CUSTOMERS.urn, "1.0.0")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(one=strategies.datasets(), number=st.integers(0, 10**12))
def test_the_contract_of_any_dataset_comes_back_from_history_without_observations(
    history: HistoryRepository, one: LumosDataset, number: int
) -> None:
    name = f"{number}.{len(history.versions(one.urn))}.0"
    history.append(one.urn, version(name), dataset=one, changes=())

    found = history.dataset_at(one.urn, name)
    assert found.contract_hash == one.contract_hash
    kept = {part: value for part, value in one.to_json().items() if part not in NOT_COMPARED}
    assert found.to_json() == kept


def test_the_catalog_shows_the_version_of_the_history(
    database: StateDatabase, history: HistoryRepository
) -> None:
    catalog = EmbeddedHandler(database, clock=lambda: AT)
    catalog.emit_dataset(CUSTOMERS)
    append(history, "1.0.0")
    append(history, "1.1.0")
    shown = catalog.get_dataset(CUSTOMERS.urn)
    later = EmbeddedHandler(database, clock=lambda: AT + timedelta(days=1))
    for known in (shown, CUSTOMERS):
        later.emit_dataset(known)

    assert shown.version == "1.1.0"
    assert [each.version for each in later.list()] == ["1.1.0"]
    (hit,) = later.search("customers").hits
    assert (hit.version, hit.updated_at) == ("1.1.0", AT)


def test_history_outlives_its_dataset(database: StateDatabase, history: HistoryRepository) -> None:
    catalog = EmbeddedHandler(database)
    catalog.emit_dataset(CUSTOMERS)
    append(history, "1.0.0")
    catalog.delete(CUSTOMERS.urn)

    assert [each.version for each in history.versions(CUSTOMERS.urn)] == ["1.0.0"]


def test_runs_dated_in_the_future_come_last(database: StateDatabase) -> None:
    runs = RunRepository(database)
    for name, days in (("before", 0), ("ahead", 365), ("after", 1)):
        runs.save(name, {}, operation="ingest", started_at=AT + timedelta(days=days))

    found = runs.recent(now=AT + timedelta(days=2))

    assert [run.id for run in found] == ["after", "before", "ahead"]
    assert runs.recent(now=AT + timedelta(days=400))[0].id == "ahead"


def test_runs_come_back_newest_first(database: StateDatabase) -> None:
    runs = RunRepository(database)
    for number in range(5):
        runs.save(
            f"run-{number}",
            {"done": number, "text": "\0"},
            operation="ingest",
            started_at=AT + timedelta(seconds=number),
            finished_at=AT + timedelta(seconds=number + 1) if number else None,
        )
    runs.save("run-4", {"done": 40}, operation="ingest", started_at=AT + timedelta(seconds=4))

    assert [run.id for run in runs.recent(3)] == ["run-4", "run-3", "run-2"]
    assert runs.get("run-4") == StoredRun(
        "run-4", "ingest", AT + timedelta(seconds=4), None, {"done": 40}
    )
    assert runs.get("run-1") == StoredRun(
        "run-1",
        "ingest",
        AT + timedelta(seconds=1),
        AT + timedelta(seconds=2),
        {"done": 1, "text": "\0"},
    )
    assert runs.get("run-9") is None
