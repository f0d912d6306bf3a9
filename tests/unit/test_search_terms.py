"""A search is typed as words and terms, and a slip is answered with the names that are near."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from given_work import GivenWork, given_project
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.search_controller import SearchController
from lumos.core.errors import LumosError, UsageError
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.search_page import SearchFilters, SearchTerms
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import dataset


@pytest.mark.parametrize(
    ("query", "text", "filters"),
    [
        ("orders", "orders", {}),
        ("column:email orders", "orders", {"column": "email"}),
        ('owner:"ada byron" gold', "gold", {"owner": "ada byron"}),
        ("TAG:pii platform:s3", "", {"tag": "pii", "platform": "s3"}),
        ("lumos://s3/a tags:x", "lumos://s3/a tags:x", {}),
        ("tag:pii tag:PII", "", {"tag": "PII"}),
    ],
)
def test_terms_are_taken_out_of_a_query(query: str, text: str, filters: dict[str, str]) -> None:
    terms = SearchTerms.of(query, SearchFilters())

    assert terms.text.split() == text.split()
    assert terms.filters == SearchFilters.from_json(filters)


@pytest.mark.parametrize("query", ["tag:a tag:b", "owner:", 'column:""', "platform:kafka"])
def test_a_term_without_a_value_or_with_two_is_refused(query: str) -> None:
    with pytest.raises(UsageError):
        SearchTerms.of(query, SearchFilters(platform="s3"))


@pytest.fixture
def work(tmp_path: Path) -> Iterator[GivenWork]:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        embedded = EmbeddedHandler(database)
        for name in ("orders", "order_items", "customers"):
            embedded.emit_dataset(dataset(name))
        embedded.emit_dataset(dataset("customers", platform="kafka"))
        yield GivenWork(
            given_project(tmp_path),
            database=database,
            platforms={None: embedded, "embedded": embedded},
        )


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("oders", "orders"),
        ("order_itmes", "order_items"),
        ("ORDRES", "orders"),
        ("custommers", "lumos://kafka/lake/customers"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_names_that_are_near(
    work: GivenWork, typed: str, suggested: str
) -> None:
    assert suggested in SearchController(work).search(typed).suggestions
    for look_up in (CatalogController(work).show, CatalogController(work).history):
        with pytest.raises(LumosError) as refused:
            look_up(typed)
        assert "did you mean" in str(refused.value.hint)
        assert suggested in str(refused.value.hint)


def test_a_misspelt_urn_is_answered_with_a_urn(work: GivenWork) -> None:
    with pytest.raises(LumosError) as refused:
        CatalogController(work).show("lumos://s3/lake/oders")

    assert "did you mean lumos://s3/lake/orders" in str(refused.value.hint)


def test_what_is_like_nothing_gets_no_suggestion(work: GivenWork) -> None:
    assert SearchController(work).search("xyzzy").suggestions == ()
    with pytest.raises(LumosError) as refused:
        CatalogController(work).show("xyzzy")
    assert "did you mean" not in str(refused.value.hint)
