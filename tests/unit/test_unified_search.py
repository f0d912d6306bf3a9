"""Several catalogs asked at once: what fails or is late is named, and the others count."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from typing_extensions import override

from doubles.amundsen_database import amundsen_over, publish_orders, sqlite_engine
from given_work import GivenWork, given_project
from lumos.core.controllers.search_controller import SearchController
from lumos.core.errors import (
    LumosError,
    PlatformAuthError,
    PlatformUnavailableError,
    StateError,
    UnknownNameError,
    UsageError,
)
from lumos.core.models import Contributor, LumosDataset
from lumos.core.platform.batch import Batch, Identity, Seen
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import (
    DEFAULT_PAGE,
    Capability,
    MetadataPlatformInterface,
    SearchFilters,
    SearchHit,
    SearchPage,
)
from lumos.core.runtime.settings import LumosSettings
from lumos.core.store.database import StateDatabase
from lumos.feature.search.unified_search import LAST_HIT, MOST_AT_ONCE, Catalog, UnifiedSearch
from lumos.testing.platform_samples import dataset, rich_dataset

if TYPE_CHECKING:
    from pydantic import JsonValue

PATIENT = 60.0


class Scripted(MetadataPlatformInterface):
    """A catalog that finds one dataset, fails, or waits before it does either."""

    name = "scripted"
    capabilities = frozenset({Capability.SEARCH})

    def __init__(
        self,
        *names: str,
        error: Exception | None = None,
        wait_for: threading.Event | threading.Barrier | None = None,
    ) -> None:
        self._names = names
        self._error = error
        self._wait_for = wait_for

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls()

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        raise NotImplementedError

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        raise NotImplementedError

    @override
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        raise NotImplementedError

    @override
    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        if self._wait_for is not None:
            self._wait_for.wait(PATIENT)
        if self._error is not None:
            raise self._error
        found = [dataset(name) for name in self._names]
        hits = tuple(SearchHit(urn=one.urn, name=one.name, platform="s3") for one in found)
        return SearchPage(hits=hits, total=len(hits))


def unified(**settings: object) -> UnifiedSearch:
    given = {"timeout": PATIENT, "identities": lambda _: {}, **settings}
    return UnifiedSearch(**given)  # type: ignore[arg-type]


def test_a_catalog_that_fails_is_named_and_the_others_count() -> None:
    page = unified().search(
        "orders",
        catalogs=[
            Catalog("down", Scripted(error=PlatformUnavailableError("down: nobody there"))),
            Catalog("refusing", Scripted(error=PlatformAuthError("refusing: no token"))),
            Catalog("fine", Scripted("orders")),
        ],
    )

    assert [hit.name for hit in page.hits] == ["orders"]
    assert [(each.catalog, each.code, each.problem) for each in page.catalogs] == [
        ("down", "LUM-401", "down: nobody there"),
        ("refusing", "LUM-405", "refusing: no token"),
        ("fine", None, None),
    ]
    assert [each.catalog for each in page.problems] == ["down", "refusing"]


def test_a_catalog_that_is_late_is_named_and_not_waited_for() -> None:
    released = threading.Event()
    # Begun, then waiting for the first answer, then long past the deadline.
    times = iter([0.0, 0.0, 1e9])
    try:
        page = unified(monotonic=lambda: next(times)).search(
            "orders",
            catalogs=[
                Catalog("slow", Scripted("orders", wait_for=released)),
                Catalog("quick", Scripted("orders")),
            ],
        )
    finally:
        released.set()

    assert [[held.catalog for held in hit.catalogs] for hit in page.hits] == [["quick"]]
    assert [(each.catalog, each.problem) for each in page.problems] == [
        ("slow", "no answer within 60 seconds")
    ]


def test_catalogs_are_asked_at_the_same_time() -> None:
    together = threading.Barrier(3)  # broken, and so an error, unless all three wait at once
    catalogs = [Catalog(name, Scripted(name, wait_for=together)) for name in "abc"]

    page = unified().search("*", catalogs=catalogs)

    assert [hit.name for hit in page.hits] == [*"abc"]


def test_more_catalogs_than_may_be_asked_at_once_are_all_asked() -> None:
    names = [f"c{number:02}" for number in range(3 * MOST_AT_ONCE)]

    page = unified().search("*", catalogs=[Catalog(name, Scripted(name)) for name in names])

    assert page.total == len(names)


def test_no_answer_at_all_is_an_error_that_says_why() -> None:
    down = Scripted(error=PlatformUnavailableError("down: nobody there"))
    with pytest.raises(PlatformUnavailableError, match="one: down: nobody there; two: no state"):
        unified().search(
            "x", catalogs=[Catalog("one", down)], unopened=[("two", StateError("no state"))]
        )


def test_an_error_of_the_program_is_not_taken_for_one_of_a_catalog() -> None:
    with pytest.raises(ZeroDivisionError):
        unified().search("x", catalogs=[Catalog("odd", Scripted(error=ZeroDivisionError()))])


def test_a_page_far_beyond_what_is_looked_at_is_refused() -> None:
    with pytest.raises(UsageError):
        unified().search("x", catalogs=[], limit=1, offset=LAST_HIT)


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedHandler]:
    with EmbeddedHandler(StateDatabase.open(tmp_path / "lumos.db")) as platform:
        yield platform


class _Catalogs(GivenWork):
    """Catalogs of which those with an address cannot be opened."""

    @override
    def platform(
        self, name: str | None = None, *, writing: bool = False, by: Contributor | None = None
    ) -> MetadataPlatformInterface:
        if name is not None and "://" in name:
            raise StateError("no such file")
        return super().platform(name, writing=writing, by=by)


@pytest.fixture
def controller(embedded: EmbeddedHandler, tmp_path: Path) -> Iterator[SearchController]:
    """The embedded catalog, one of Amundsen, and one that cannot be opened."""
    engine = sqlite_engine(tmp_path / "amundsen.db")
    publish_orders(engine)
    with amundsen_over(engine) as amundsen:
        settings = LumosSettings.model_validate(
            {
                "platforms": ["embedded", "amundsen"],
                "platform_config": {"amundsen": {}},
                "search": {"timeout_seconds": PATIENT},
            }
        )
        yield SearchController(
            _Catalogs(
                given_project(tmp_path, settings),
                platforms={"embedded": embedded, "amundsen": amundsen},
            )
        )


def test_the_catalogs_of_the_settings_are_asked_together(
    controller: SearchController, embedded: EmbeddedHandler
) -> None:
    embedded.emit_dataset(rich_dataset("orders"))

    page = controller.search("orders")

    found = {hit.urn: [held.catalog for held in hit.catalogs] for hit in page.hits}
    assert found == {
        "lumos://s3/lake/orders": ["embedded"],
        "lumos://hive/gold/sales/orders": ["amundsen"],
        "lumos://hive/gold/raw/orders": ["amundsen"],
    }
    assert page.hits[0].quality_score == 99.2


def test_the_identity_map_of_the_embedded_catalog_joins_what_is_one(
    controller: SearchController, embedded: EmbeddedHandler
) -> None:
    ours = rich_dataset("orders")
    embedded.emit_dataset(ours)
    embedded.apply(Batch(identities=[Identity(ours.urn, "amundsen", "hive://gold.sales/orders")]))

    page = controller.search("orders")

    (both,) = (hit for hit in page.hits if len(hit.catalogs) == 2)
    assert both.urn == ours.urn
    assert both.catalogs[1].external_id == "hive://gold.sales/orders"
    assert {*both.owners} == {"finance-team", "ada", "ada@example.org"}
    assert page.total == 2


def test_a_search_reads_no_more_of_the_identity_map_than_it_needs(
    controller: SearchController, embedded: EmbeddedHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = rich_dataset("orders")
    embedded.emit_dataset(ours)
    embedded.apply(Batch(identities=[Identity(ours.urn, "amundsen", "hive://gold.sales/orders")]))

    def whole() -> None:
        raise AssertionError("the whole map was read")

    monkeypatch.setattr(embedded, "identity_map", whole)

    assert max(len(hit.catalogs) for hit in controller.search("orders").hits) == 2


def test_a_name_is_a_catalog_or_a_platform_of_data(controller: SearchController) -> None:
    assert controller.search("orders", platforms=["amundsen"]).total == 2
    assert controller.search("orders", platforms=["hive"]).total == 2
    assert controller.search("orders", platforms=["hive", "embedded"]).total == 0
    assert controller.search("orders", platforms=["snowflake"]).total == 0
    with pytest.raises(UsageError, match="hive and s3"):
        controller.search("orders", platforms=["hive", "s3"])


def test_a_catalog_that_is_misspelt_or_not_there_is_told(controller: SearchController) -> None:
    with pytest.raises(UnknownNameError):
        controller.search("orders", catalogs=["embedded", "amundzen"])
    page = controller.search("orders", catalogs=["amundsen", "postgresql://ada:secret@x/y"])

    assert [(each.catalog, each.problem) for each in page.problems] == [
        ("postgresql://x/y", "no such file")
    ]


def test_one_catalog_alone_answers_as_it_always_did(
    controller: SearchController, embedded: EmbeddedHandler
) -> None:
    embedded.emit_dataset(rich_dataset("orders"))

    assert controller.search("orders", catalogs=["embedded"]) == embedded.search("orders")
    with pytest.raises(LumosError, match="no such file"):
        controller.search("orders", catalogs=["postgresql://x/y"])
