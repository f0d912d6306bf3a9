"""Answers of several catalogs in one order, each dataset once."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lumos.core.models import Urn
from lumos.core.platform.search_match import tier_of
from lumos.core.platform.search_page import HeldBy, SearchHit, SearchPage
from lumos.feature.search.merging import Answered, merged

EARLY, LATE = (datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2))


def hit(name: str, *, place: str = "lake", **facts: object) -> SearchHit:
    urn = Urn.of("s3", place, name)
    return SearchHit.model_validate({"urn": urn, "name": name, "platform": "s3", **facts})


def answered(catalog: str, *hits: SearchHit, total: int | None = None) -> Answered:
    return Answered(catalog, SearchPage(hits=hits, total=len(hits) if total is None else total))


def names(page: SearchPage) -> list[str]:
    return [found.name for found in page.hits]


def one_page(query: str, *answers: Answered) -> SearchPage:
    return merged(query, answers, identities={}, limit=100, offset=0)


def test_names_that_fit_come_before_all_else_from_whichever_catalog() -> None:
    page = one_page(
        "orders",
        answered("embedded", hit("invoices"), hit("payments")),
        answered("datahub", hit("orders_archive"), hit("other")),
        answered("atlas", hit("orders")),
    )

    assert names(page) == ["orders", "orders_archive", "invoices", "other", "payments"]


def test_among_hits_that_fit_alike_the_best_place_counts_and_then_the_order_of_catalogs() -> None:
    page = one_page(
        "x",
        answered("embedded", hit("a1"), hit("a2"), hit("both")),
        answered("datahub", hit("both"), hit("b2")),
    )

    assert names(page) == ["a1", "both", "a2", "b2"]


def test_a_catalog_that_does_not_put_names_first_spoils_nothing() -> None:
    page = one_page("orders", answered("theirs", hit("prose"), hit("orders")))

    assert names(page) == ["orders", "prose"]


def test_a_dataset_that_several_catalogs_hold_is_one_hit_that_names_them_all() -> None:
    page = one_page(
        "orders",
        answered("embedded", hit("orders", owners=("ada",), tags=("gold",), updated_at=EARLY)),
        answered(
            "datahub",
            hit("orders", owners=("ada", "bob"), quality_score=98.5, updated_at=LATE,
                description="All orders", external_id="urn:li:dataset:1"),
        ),
    )  # fmt: skip

    (found,) = page.hits
    assert found.catalogs == (
        HeldBy(catalog="embedded"),
        HeldBy(catalog="datahub", external_id="urn:li:dataset:1"),
    )
    assert (found.owners, found.tags) == (("ada", "bob"), ("gold",))
    assert (found.quality_score, found.description) == (98.5, "All orders")
    assert found.updated_at == LATE
    assert page.total == 1


def test_the_identity_map_tells_that_two_names_are_one_dataset() -> None:
    ours = hit("orders")
    theirs = hit("ORDERS", place="warehouse", external_id="urn:li:dataset:1")
    answers = (answered("embedded", ours), answered("datahub", theirs))

    page = merged(
        "orders",
        answers,
        identities={("datahub", "urn:li:dataset:1"): ours.urn},
        limit=10,
        offset=0,
    )

    assert [found.urn for found in page.hits] == [ours.urn]
    assert [held.catalog for held in page.hits[0].catalogs] == ["embedded", "datahub"]
    assert one_page("orders", *answers).total == 2


def test_a_search_for_everything_is_in_the_order_of_urns() -> None:
    page = one_page("*", answered("one", hit("b"), hit("d")), answered("two", hit("a"), hit("c")))

    assert names(page) == [*"abcd"]


def test_what_was_not_looked_at_makes_the_total_an_estimate() -> None:
    page = one_page("x", answered("one", hit("a"), total=700), answered("two", hit("a")))

    assert (page.total, page.exact) == (700, False)


def test_what_one_catalog_leaves_out_for_quality_and_another_shows_is_shown() -> None:
    poor, good = hit("orders", quality_score=50.0), hit("orders", quality_score=99.0)
    low = hit("low", quality_score=1.0)
    page = one_page(
        "x",
        Answered("one", SearchPage(excluded=(poor, low), excluded_total=2)),
        Answered("two", SearchPage(hits=(good,), total=1, excluded=(low,), excluded_total=1)),
    )

    assert names(page) == ["orders"]
    assert [found.name for found in page.excluded] == ["low"]
    assert page.excluded_total == 1


@given(
    lists=st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), min_size=1, max_size=4),
    size=st.integers(1, 5),
)
def test_pages_make_a_whole_in_which_each_dataset_is_once(
    lists: list[list[str]], size: int
) -> None:
    answers = [answered(str(number), *map(hit, given_)) for number, given_ in enumerate(lists)]
    everything = {name for given_ in lists for name in given_}

    pages = [
        merged("x", answers, identities={}, limit=size, offset=offset)
        for offset in range(0, len(everything) + 1, size)
    ]

    found = [name for page in pages for name in names(page)]
    assert sorted(found) == sorted(everything)
    assert {page.total for page in pages} == {len(everything)}
    assert all(page.exact for page in pages)


def test_how_well_a_name_fits() -> None:
    assert tier_of("customer_id", "customerId") == 0
    assert tier_of("customer_orders", "cust ord") == 1
    assert tier_of("customer_orders", "customer refunds") == 2
