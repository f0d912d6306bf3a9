"""The part of the platform contract that is about search."""
# ruff: noqa: PLR2004, S101 - these are tests

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

import pytest

from lumos.core.errors import UsageError
from lumos.core.platform.interface import Capability, MetadataPlatformInterface, SearchFilters
from lumos.testing.platform_samples import HOSTILE_QUERIES, dataset, rich_dataset

T = TypeVar("T", bound=Callable[..., object])
_NEEDED = "needed_capabilities"


def requires(capability: Capability) -> Callable[[T], T]:
    """Run a test, or all tests of a class, only where an adapter declares a capability."""

    def mark(tests: T) -> T:
        functions = (
            [value for name, value in vars(tests).items() if name.startswith("test_")]
            if isinstance(tests, type)
            else [tests]
        )
        for function in functions:
            setattr(function, _NEEDED, {*getattr(function, _NEEDED, ()), capability})
        return tests

    return mark


class CapabilityGuard:
    """Skips the tests of what an adapter does not declare."""

    @pytest.fixture(autouse=True)
    def only_what_is_declared(
        self, request: pytest.FixtureRequest, platform: MetadataPlatformInterface
    ) -> None:
        needed: set[Capability] = getattr(request.function, _NEEDED, set())
        missing = needed - platform.capabilities
        if missing:
            pytest.skip(f"{platform.name} does not declare {', '.join(sorted(missing))}")


@requires(Capability.SEARCH)
class SearchContract(CapabilityGuard):
    """Datasets are found by the words that people know of them."""

    not_indexed: ClassVar[frozenset[str]] = frozenset()
    """Queries that find nothing, as the catalog's own index does not have what is stashed."""

    @pytest.mark.parametrize(
        "query",
        [
            "customers",
            "CUSTOMERS",
            "cust",
            "customer_id",
            "customer id",
            "customerId",
            "customerid",
            "id customers",
            "email",
            "total",
            "bought",
            "ever bought",
            "write",
            "billing",
            "gold",
            "finance-team",
            "finance",
            "ada",
            "s3 customers",
            "lake",
            "parquet",
            "sales",
            "",
            "*",
        ],
    )
    def test_a_dataset_is_found_by_what_it_says(
        self, platform: MetadataPlatformInterface, query: str
    ) -> None:
        platform.emit_dataset(rich_dataset())

        page = platform.search(query)

        found = [] if query in self.not_indexed else [rich_dataset().urn]
        assert [hit.urn for hit in page.hits] == found
        assert page.total == len(found)

    @pytest.mark.parametrize("query", ["orderz", "ustomers", "customers orderz", "cust0mers", "!!"])
    def test_what_it_does_not_say_does_not_find_it(
        self, platform: MetadataPlatformInterface, query: str
    ) -> None:
        platform.emit_dataset(rich_dataset())

        page = platform.search(query)

        assert (page.hits, page.total) == ((), 0)

    def test_a_hit_tells_what_people_choose_by(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())

        (hit,) = platform.search("customers").hits

        assert (hit.name, hit.platform, hit.format) == ("customers", "s3", "parquet")
        assert {*hit.owners} == {"finance-team", "ada"}
        assert {*hit.tags} == {"gold", "pii"}
        assert hit.quality_score == rich_dataset().quality.score  # type: ignore[union-attr]
        assert hit.description == "All who ever bought"

    def test_a_match_in_the_name_comes_first(self, platform: MetadataPlatformInterface) -> None:
        prose = "orders " * 40
        platform.emit_dataset(dataset("aaa", documentation={"description": prose}))
        platform.emit_dataset(dataset("bbb", schema={"fields": [_column("orders")]}))
        platform.emit_dataset(dataset("zzz_orders_archive"))
        platform.emit_dataset(dataset("orders"))

        names = [hit.name for hit in platform.search("orders").hits]

        assert names[:2] == ["orders", "zzz_orders_archive"]
        assert {*names[2:]} == {"aaa", "bbb"}

    @pytest.mark.parametrize("query", HOSTILE_QUERIES, ids=range(len(HOSTILE_QUERIES)))
    def test_no_query_is_an_error_or_harms(
        self, platform: MetadataPlatformInterface, query: str
    ) -> None:
        platform.emit_dataset(rich_dataset())

        page = platform.search(query)

        assert page.total == len(page.hits)
        assert [*platform.list()] == [rich_dataset()]
        filters = SearchFilters.model_construct(
            platform=query, owner=query, tag=query, column=query
        )
        assert platform.search("customers", filters).hits == ()

    def test_filters_leave_out_the_rest(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(dataset("a", platform="kafka", tags=["Gold"]))
        platform.emit_dataset(dataset("b", ownership=[{"group": "finance"}]))
        platform.emit_dataset(dataset("c", tags=["gold", "silver"]))

        def found(**filters: str) -> list[str]:
            page = platform.search("lake", SearchFilters.from_json(filters))
            return [hit.name for hit in page.hits]

        assert sorted(found(tag="gold")) == ["a", "c"]
        assert found(tag="GOLD", platform="s3") == ["c"]
        assert found(owner="Finance") == ["b"]
        assert found(owner="fin") == []
        assert found(platform="kafka") == ["a"]

    def test_a_column_is_found_by_its_name_alone(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())
        platform.emit_dataset(dataset("emails", documentation={"description": "every email"}))
        platform.emit_dataset(dataset("contacts", schema={"fields": [_column("email_address")]}))

        def found(query: str, column: str) -> set[str]:
            page = platform.search(query, SearchFilters(column=column))
            assert page.total == len(page.hits)
            return {hit.name for hit in page.hits}

        assert found("", "email") == {"customers", "contacts"}
        assert found("", "emailAddress") == {"contacts"}
        assert found("bought", "email") == {"customers"}
        assert found("", "total") == {"customers"}
        assert found("", "gold") == set()
        assert found("", "!!") == set()

    @pytest.mark.parametrize(
        ("query", "place"),
        [
            ("customers", "name"),
            ("email", "column email"),
            ("gold", "tag gold"),
            ("ada", "owner ada"),
            ("sales", "domain sales"),
            ("bought", "description"),
            ("write", "description of column email"),
            ("lake", "path"),
        ],
    )
    def test_a_hit_says_where_the_words_were_found(
        self, platform: MetadataPlatformInterface, query: str, place: str
    ) -> None:
        platform.emit_dataset(rich_dataset())

        (hit,) = platform.search(query).hits

        assert hit.matched == (place,)

    def test_a_quality_threshold_says_what_it_left_out(
        self, platform: MetadataPlatformInterface
    ) -> None:
        for name, score in (("high", 99.2), ("edge", 95.0), ("low", 72.0)):
            platform.emit_dataset(dataset(name, quality={"overall_score": score}))
        platform.emit_dataset(dataset("unknown"))
        platform.emit_dataset(dataset("other", platform="kafka"))

        filters = SearchFilters(platform="s3", min_quality=95)
        page = platform.search("lake", filters, limit=1)

        assert page.total == 2
        assert len(page.hits) == 1
        assert page.excluded_total == 2
        assert {hit.name for hit in page.excluded} == {"low", "unknown"}

    def test_pages_of_a_search_make_a_whole(self, platform: MetadataPlatformInterface) -> None:
        names = [f"customers {number}" for number in range(7)]
        for name in names:
            platform.emit_dataset(dataset(name))

        pages = [platform.search("customers", limit=3, offset=offset) for offset in (0, 3, 6, 9)]

        assert [len(page.hits) for page in pages] == [3, 3, 1, 0]
        assert {page.total for page in pages} == {7}
        assert sorted(hit.name for page in pages for hit in page.hits) == names

    @pytest.mark.parametrize(("limit", "offset"), [(-1, 0), (1, -1)])
    def test_a_page_that_cannot_be_is_refused(
        self, platform: MetadataPlatformInterface, limit: int, offset: int
    ) -> None:
        with pytest.raises(UsageError):
            platform.search("customers", limit=limit, offset=offset)

    def test_a_search_follows_changes(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())
        platform.emit_dataset(dataset("customers", documentation={"description": "retired"}))

        assert platform.search("bought").total == 0
        assert platform.search("", SearchFilters(tag="gold")).total == 0
        assert platform.search("retired").total == 1

    @requires(Capability.DELETE)
    def test_what_is_deleted_is_not_found(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())
        platform.delete(rich_dataset().urn)

        assert platform.search("customers").total == 0
        assert platform.search("").total == 0


def _column(name: str) -> dict[str, str]:
    return {"name": name, "type": "STRING"}
