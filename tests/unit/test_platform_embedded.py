"""What the embedded catalog promises beyond the contract, on both engines."""

from __future__ import annotations

import random
import string
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from lumos.core.errors import InvalidModelError, StateReadOnlyError, UsageError
from lumos.core.models import (
    DatasetLineage,
    DatasetVersion,
    LineageEdge,
    LumosDataset,
    Tag,
    Urn,
    with_parts,
)
from lumos.core.models.base import canonical_json
from lumos.core.platform.abilities import IdentityAbility
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import SearchFilters
from lumos.core.store.catalog.search_words import query_words, words_of
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.testing.platform_samples import dataset, edge, rich_dataset
from state_databases import ENGINES, url_for

NUMBERS = count(1)


class Clock:
    """A clock that moves on by a second with each look."""

    def __init__(self) -> None:
        self.now = datetime(2024, 1, 15, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    return url_for(request.param, request)


@pytest.fixture
def database(url: str) -> Iterator[StateDatabase]:
    with StateDatabase.open(url) as database:
        yield database


@pytest.fixture
def catalog(database: StateDatabase) -> EmbeddedHandler:
    return EmbeddedHandler(database, clock=Clock())


def everything(database: StateDatabase) -> list[object]:
    """All rows of all tables, to see whether anything at all changed."""
    tables = ("datasets", "dataset_labels", "lineage_edges", "entities", "identity_map")
    return [
        sorted(str(row._values) for row in database.query(f"SELECT * FROM {table}"))  # noqa: S608
        for table in tables
    ]


def test_emitting_again_writes_nothing_at_all(
    database: StateDatabase, catalog: EmbeddedHandler
) -> None:
    upstream = dataset("upstream")

    def emit_all() -> None:
        catalog.emit_dataset(upstream)
        catalog.emit_dataset(with_parts(rich_dataset(), lineage={"upstream": [upstream.urn]}))
        catalog.apply(Batch(edges=[edge(upstream, dataset("x"), provenance="sql")]))
        catalog.emit_ownership(upstream.urn, "ada")
        catalog.apply(Batch(entities=[Tag(name="gold")]))
        catalog.apply(Batch(identities=[Identity(upstream.urn, "datahub", "u")]))
        catalog.emit_dataset(catalog.get_dataset(upstream.urn))

    emit_all()
    catalog.emit_dataset(catalog.get_dataset(upstream.urn))
    before = everything(database)
    for _ in range(2):
        catalog.apply(Batch(edges=[edge(upstream, dataset("x"), provenance="sql")]))
        catalog.emit_dataset(catalog.get_dataset(upstream.urn))
        catalog.emit_dataset(rich_dataset())
        catalog.emit_ownership(upstream.urn, "ada")
        catalog.apply(Batch(entities=[Tag(name="gold")]))
        catalog.apply(Batch(identities=[Identity(upstream.urn, "datahub", "u")]))

    assert everything(database) == before


def test_the_time_of_the_last_change_is_that_of_the_clock(catalog: EmbeddedHandler) -> None:
    catalog.emit_dataset(rich_dataset())
    (first,) = catalog.search("customers").hits
    catalog.emit_dataset(rich_dataset())
    (second,) = catalog.search("customers").hits
    catalog.emit_dataset(with_parts(rich_dataset(), tags=("new",)))
    (third,) = catalog.search("customers").hits

    assert first.updated_at == second.updated_at == datetime(2024, 1, 15, 0, 0, 1, tzinfo=UTC)
    assert third.updated_at == datetime(2024, 1, 15, 0, 0, 3, tzinfo=UTC)


def test_the_stored_hash_follows_the_edges(
    database: StateDatabase, catalog: EmbeddedHandler
) -> None:
    upstream, downstream = dataset("upstream"), dataset("downstream")

    def stored() -> dict[str, str]:
        rows = database.query("SELECT urn, contract_hash FROM datasets")
        return {row.text("urn"): row.text("contract_hash") for row in rows}

    def derived() -> dict[str, str]:
        return {str(each.urn): each.contract_hash for each in catalog.list()}

    steps: tuple[Callable[[], None], ...] = (
        lambda: catalog.emit_dataset(upstream),
        lambda: catalog.emit_dataset(downstream),
        lambda: catalog.emit_lineage(upstream.urn, downstream.urn),
        lambda: catalog.emit_dataset(downstream),
        lambda: catalog.delete(upstream.urn),
    )
    for step in steps:
        step()
        assert stored() == derived()


def test_a_dataset_that_lists_itself_gets_no_edge_to_itself(catalog: EmbeddedHandler) -> None:
    itself = dataset("orders")
    catalog.emit_dataset(with_parts(itself, lineage=DatasetLineage(upstream=(itself.urn,))))

    assert [*catalog.list_edges()] == []
    assert catalog.get_dataset(itself.urn) == itself


def test_more_than_a_page_of_everything_is_listed_once(
    database: StateDatabase, catalog: EmbeddedHandler
) -> None:
    hub = dataset("hub")
    with database.transaction():
        for number in random.Random(7).sample(range(1_003), 1_003):
            catalog.apply(Batch(entities=[Tag(name=f"{number}")]))
            catalog.apply(
                Batch(edges=[LineageEdge(upstream_urn=hub.urn, downstream_urn=_urn(number))])
            )
            catalog.emit_dataset(dataset(f"{number}"))

    tags = [entity.name for entity in catalog.list_entities("tag") if isinstance(entity, Tag)]
    assert tags == sorted(str(number) for number in range(1_003))
    edges = [each.downstream_urn for each in catalog.list_edges()]
    assert sorted(edges) == sorted(_urn(number) for number in range(1_003))
    listed = [each.urn for each in catalog.list()]
    assert listed == sorted(_urn(number) for number in range(1_003))
    assert all(each.lineage.upstream == (hub.urn,) for each in catalog.list(page_size=100))


def test_a_name_at_the_limit_is_kept_and_one_above_is_refused(catalog: EmbeddedHandler) -> None:
    # Random text: PostgreSQL compresses what repeats, and so hides how long a key may be.
    letters = random.Random(3).choices(string.ascii_letters + string.digits + "_-.~", k=3_000)
    longest = dataset("".join(letters)[:2_484])
    other = dataset("".join(letters[::-1])[:2_484])
    catalog.emit_dataset(with_parts(longest, lineage={"upstream": [other.urn]}))
    catalog.apply(Batch(identities=[Identity(longest.urn, "datahub", "x" * 10_000)]))

    assert len(longest.urn) == 2_500
    assert catalog.get_dataset(longest.urn).lineage.upstream == (other.urn,)
    calls: tuple[Callable[[], None], ...] = (
        lambda: catalog.emit_dataset(dataset("".join(letters))),
        lambda: catalog.apply(Batch(edges=[edge(longest, dataset("".join(letters)))])),
        lambda: catalog.apply(Batch(entities=[Tag(name="".join(letters))])),
    )
    for call in calls:
        with pytest.raises(InvalidModelError, match="2,500 bytes"):
            call()


def test_a_large_dataset_is_kept_and_found(catalog: EmbeddedHandler) -> None:
    fields = [
        {"name": f"column_{number}", "type": "STRING", "description": f"word{number} " * 20}
        for number in range(5_000)
    ]
    prose = " ".join(f"thing{number}" for number in range(100_000))
    large = dataset("large", schema={"fields": fields}, documentation={"description": prose})
    catalog.emit_dataset(large)

    assert catalog.get_dataset(large.urn) == large
    assert catalog.search("column_4999").total == 1


def test_a_listing_sees_a_change_made_while_it_runs_without_repeating_anything(
    catalog: EmbeddedHandler,
) -> None:
    for name in "bdfh":
        catalog.emit_dataset(dataset(name))
    seen = []
    for found in catalog.list(page_size=2):
        seen.append(found.name)
        if found.name == "d":
            catalog.delete(dataset("b").urn)
            catalog.emit_dataset(dataset("a"))
            catalog.emit_dataset(dataset("g"))

    assert seen == ["b", "d", "f", "g", "h"]


def test_a_read_only_catalog_answers_and_refuses_to_write(
    url: str, catalog: EmbeddedHandler
) -> None:
    catalog.emit_dataset(rich_dataset())
    with EmbeddedHandler.from_config({"database_url": url, "read_only": True}) as reader:
        assert reader.get_dataset(rich_dataset().urn) == rich_dataset()
        assert reader.search("cust", SearchFilters(min_quality=50)).total == 1
        assert len(reader.export_all(at=Clock().now).datasets) == 1
        with pytest.raises(StateReadOnlyError):
            reader.emit_dataset(dataset("new"))


def test_pages_and_kinds_that_cannot_be_are_refused(catalog: EmbeddedHandler) -> None:
    with pytest.raises(UsageError):
        catalog.list(page_size=0)
    with pytest.raises(UsageError):
        catalog.list_entities("robot")  # type: ignore[arg-type]


def test_threads_can_emit_at_once(catalog: EmbeddedHandler) -> None:
    def emit(thread: int) -> None:
        for number in range(10):
            catalog.emit_dataset(dataset(f"{thread}-{number}"))
            catalog.emit_ownership(dataset(f"{thread}-{number}").urn, "ada")
            catalog.search("lake")

    threads = [threading.Thread(target=emit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert catalog.search("", SearchFilters(owner="ada")).total == 40


def test_processes_can_emit_the_same_datasets_at_once(url: str, catalog: EmbeddedHandler) -> None:
    script = (
        "import sys\n"
        "from lumos.core.platform.impl.embedded_handler import EmbeddedHandler as E\n"
        "from lumos.core.models import LumosDataset, Urn\n"
        "from lumos.core.store import sqlite_engine\n"
        "sqlite_engine.BUSY_SECONDS = 600.0\n"  # on a busy machine one may be overtaken for long
        "catalog = E.from_config({'database_url': sys.argv[1]})\n"
        "for number in range(60):\n"
        "    urn = Urn.of('s3', str(number))\n"
        "    tags = (sys.argv[2],)\n"
        "    catalog.emit_dataset(LumosDataset(urn=urn, name='n', platform='s3', tags=tags))\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, url, name], stderr=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    errors = [process.communicate()[1].decode() for process in processes]

    assert errors == [""] * 3
    page = catalog.search("", limit=100)
    assert page.total == 60
    found = sum(catalog.search("", SearchFilters(tag=tag)).total for tag in ("one", "two", "three"))
    assert found == 60


def test_owners_that_two_processes_add_at_once_are_all_kept(
    url: str, catalog: EmbeddedHandler
) -> None:
    catalog.emit_dataset(dataset())
    script = (
        "import sys\n"
        "from lumos.core.platform.impl.embedded_handler import EmbeddedHandler as E\n"
        "from lumos.core.store import sqlite_engine\n"
        "sqlite_engine.BUSY_SECONDS = 600.0\n"  # on a busy machine one may be overtaken for long
        "catalog = E.from_config({'database_url': sys.argv[1]})\n"
        "for number in range(80):\n"
        "    catalog.emit_ownership(sys.argv[2], f'{sys.argv[3]}-{number}')\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, url, dataset().urn, name], stderr=subprocess.PIPE
        )
        for name in ("one", "two")
    ]
    errors = [process.communicate()[1].decode() for process in processes]

    assert errors == [""] * 2
    assert len(catalog.get_dataset(dataset().urn).ownership.owners) == 160


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(query=st.text(max_size=40))
def test_any_query_is_answered(catalog: EmbeddedHandler, query: str) -> None:
    catalog.emit_dataset(rich_dataset())

    assert catalog.search(query).total in {0, 1}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(one=strategies.datasets(), data=st.data())
def test_every_dataset_is_found_by_each_beginning_of_its_name(
    catalog: EmbeddedHandler, one: LumosDataset, data: st.DataObject
) -> None:
    catalog.emit_dataset(one)
    words = [*words_of(one.name)]
    if words:
        word = data.draw(st.sampled_from(words))
        query = word[: data.draw(st.integers(1, len(word)))]
        total = catalog.search(query, limit=0).total
        hits = catalog.search(query, limit=total).hits
        assert one.urn in {hit.urn for hit in hits} or not query_words(query)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("customer_id", ["customer", "id", "customerid"]),
        ("customerId", ["customer", "id", "customerid"]),
        ("HTTPServer2", ["http", "server2", "httpserver2"]),
        ("events.customer-signup", ["events", "customer", "signup"]),
        ("Größe café", ["grosse", "cafe"]),
        ("\ufb01ne \uff21\uff22\uff23", ["fine", "abc"]),
        ("顧客 データ", ["顧客", "データ"]),
        ("__a__", ["a"]),
        ("'; DROP--", ["drop"]),
        ("\0\udcff", []),
        ("🔥hot", ["🔥hot"]),
    ],
)
def test_words_are_those_that_people_type(text: str, words: list[str]) -> None:
    assert [*words_of(text)] == words


def _urn(number: int) -> Urn:
    return dataset(f"{number}").urn


def test_what_other_catalogs_call_datasets_is_found_by_their_names(
    catalog: EmbeddedHandler,
) -> None:
    names = {("datahub", f"urn:li:{number} ' ä"): dataset(f"t{number}").urn for number in range(7)}
    for (there, external_id), urn in names.items():
        catalog.apply(Batch(identities=[Identity(urn, there, external_id)]))
    catalog.apply(Batch(identities=[Identity(dataset("t1").urn, "atlas", "guid")]))
    unknown = {("atlas", "urn:li:1 ' ä"), ("datahub", "guid"), ("other", "")}
    many = {("datahub", f"nobody {number}") for number in range(1_200)}

    found = catalog.find_identities({*names, ("atlas", "guid"), *unknown, *many})

    assert found == {**names, ("atlas", "guid"): dataset("t1").urn}
    assert catalog.find_identities(set()) == {}
    assert IdentityAbility.find_identities(catalog, {*names}) == names


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(one=strategies.datasets(), stored=st.sampled_from([None, "0.1"]), has_history=st.booleans())
def test_a_document_is_the_dataset_as_it_is_written(
    database: StateDatabase, one: LumosDataset, stored: str | None, has_history: bool
) -> None:
    catalog = EmbeddedHandler(database)
    catalog.emit_dataset(with_parts(one, version=stored))
    if has_history:
        entry = DatasetVersion(
            version=f"{next(NUMBERS)}.0.0", timestamp=datetime(2024, 1, 1, tzinfo=UTC)
        )
        HistoryRepository(database).append(one.urn, entry, dataset=one, changes=())
    written = canonical_json(catalog.get_dataset(one.urn).to_json())

    assert dict(catalog.documents())[one.urn] == written
    assert dict(catalog.documents([one.urn])) == {one.urn: written}
