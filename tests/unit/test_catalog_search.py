"""How each catalog is asked for words, and what becomes of what its index gives."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubles.amundsen_database import amundsen_over, publish_orders, sqlite_engine
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import DataHubDouble, Fault, datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.openmetadata_store import OpenMetadataStore
from doubles.text_index import terms_of
from lumos.core.errors import PlatformUnavailableError
from lumos.core.models import LumosDataset
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.http import impatient
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.search_match import Candidate, Narrowed, searched
from lumos.core.platform.search_page import SearchFilters
from lumos.testing.platform_samples import dataset, rich_dataset


class Index:
    """An index that gives the same whatever it is asked, and keeps what that was."""

    def __init__(self, *datasets: LumosDataset, total: int | None = None) -> None:
        self._candidates = [Candidate(each) for each in datasets]
        self._total = len(datasets) if total is None else total
        self.asked: list[tuple[str, ...]] = []

    def narrow(self, words: tuple[str, ...]) -> Narrowed:
        self.asked.append(words)
        return Narrowed(self._candidates, self._total)


class TestTheOneRule:
    def test_an_index_is_asked_once_where_something_matches(self) -> None:
        index = Index(rich_dataset())

        page = searched("customers email", None, narrow=index.narrow, limit=5, offset=0)

        assert index.asked == [("customers", "email")]
        assert (page.total, page.exact) == (1, True)

    def test_where_nothing_matches_it_is_asked_once_more_by_beginnings(self) -> None:
        index = Index(rich_dataset())

        page = searched("customerz orders", None, narrow=index.narrow, limit=5, offset=0)

        assert index.asked == [("customerz", "orders"), ("cust", "orde")]
        assert page.total == 0

    def test_a_query_without_words_is_not_asked_at_all(self) -> None:
        index = Index(rich_dataset())

        assert searched("!!", None, narrow=index.narrow, limit=5, offset=0).total == 0
        assert index.asked == []

    def test_filters_narrow_down_as_well_and_are_checked(self) -> None:
        index = Index(rich_dataset(), dataset("customers_raw"))
        filters = SearchFilters(owner="finance-team", tag="Gold")

        page = searched("customers", filters, narrow=index.narrow, limit=5, offset=0)

        assert index.asked == [("customers", "finance", "team", "gold")]
        assert [hit.name for hit in page.hits] == ["customers"]

    def test_what_the_index_has_beyond_is_counted_and_said_to_be_so(self) -> None:
        index = Index(rich_dataset(), dataset("unlike"), total=7_002)

        page = searched("customers", None, narrow=index.narrow, limit=5, offset=0)

        assert (page.total, page.exact) == (7_001, False)

    @given(query=st.text(max_size=40))
    def test_only_letters_digits_and_symbols_reach_an_index(self, query: str) -> None:
        index = Index()
        searched(query, SearchFilters(owner=query), narrow=index.narrow, limit=5, offset=0)

        for words in index.asked:
            terms_of(" AND ".join(f"*{word}*" for word in words) or "*")


class TestDataHub:
    @pytest.fixture
    def server(self) -> Iterator[tuple[str, DataHubDouble]]:
        with datahub_double() as running:
            yield running

    @pytest.fixture
    def platform(self, server: tuple[str, DataHubDouble]) -> Iterator[DataHubHandler]:
        with DataHubHandler.from_config({"gms_server": server[0]}) as platform:
            yield platform

    def test_one_request_finds_and_reads(
        self, platform: DataHubHandler, server: tuple[str, DataHubDouble]
    ) -> None:
        platform.apply(Batch(datasets=[rich_dataset(name) for name in ("customers", "refunds")]))
        platform.search("")  # waits for the index
        server[1].requests.clear()

        (hit,) = platform.search("customers gold").hits

        ((method, target, body),) = server[1].requests
        params = parse_qs(urlsplit(target).query)
        assert (method, urlsplit(target).path) == ("POST", "/openapi/v3/entity/scroll")
        assert params["query"] == ["*customers* AND *gold*"]
        assert params["includeSoftDelete"] == ["false"]
        assert body == {"entities": ["dataset"], "aspects": []}
        assert str(hit.external_id).startswith("urn:li:dataset:(urn:li:dataPlatform:s3,")
        assert hit.updated_at is not None

    def test_what_only_lineage_names_is_not_found(self, platform: DataHubHandler) -> None:
        platform.emit_dataset(rich_dataset())
        platform.emit_lineage(dataset("customers_raw").urn, rich_dataset().urn)

        assert [hit.name for hit in platform.search("customers").hits] == ["customers"]

    def test_who_watches_is_not_kept_waiting_by_repeats(
        self, platform: DataHubHandler, server: tuple[str, DataHubDouble]
    ) -> None:
        fault = Fault(503, times=100)
        server[1].faults.append(fault)

        with impatient(60), pytest.raises(PlatformUnavailableError):
            platform.search("customers")

        assert fault.times == 98

    def test_more_than_a_window_is_said(
        self, platform: DataHubHandler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from lumos.core.platform.impl.datahub import search

        monkeypatch.setattr(search, "WINDOW", 2)
        platform.apply(Batch(datasets=[dataset(f"orders_{number}") for number in range(5)]))

        page = platform.search("orders")

        assert (len(page.hits), page.total, page.exact) == (2, 5, False)


class TestOpenMetadata:
    @pytest.fixture
    def server(self) -> Iterator[tuple[str, OpenMetadataStore]]:
        with openmetadata_server() as running:
            yield running

    @pytest.fixture
    def platform(self, server: tuple[str, OpenMetadataStore]) -> Iterator[OpenMetadataHandler]:
        with openmetadata_at(server[0]) as platform:
            yield platform

    def test_the_index_names_and_the_database_tells(
        self, platform: OpenMetadataHandler, server: tuple[str, OpenMetadataStore]
    ) -> None:
        platform.emit_dataset(rich_dataset())
        platform.emit_dataset(dataset("customers", platform="postgres"))
        server[1].requests.clear()

        page = platform.search("customers")

        assert {hit.external_id for hit in page.hits} == {
            "s3.lake.customers",
            "postgres.default.lake.customers",
        }
        assert server[1].requests.count(("GET", "search/query")) == 2
        assert len(server[1].requests) == 4

    def test_what_lumos_keeps_for_itself_is_not_found(self, platform: OpenMetadataHandler) -> None:
        platform.apply(Batch(identities=[Identity(rich_dataset().urn, "datahub", "customers")]))
        platform.apply(Batch(extensions={"customers": {"raw": "customers"}}))

        assert platform.search("customers").total == 0

    def test_many_words_and_words_in_other_forms_are_found(
        self, platform: OpenMetadataHandler
    ) -> None:
        known = dataset(
            "customers",
            platform="postgres",
            documentation={"description": "Addresses of all buyers, by countries"},
            governance={"domains": ["Sales"]},
            ownership=[{"user": "ada"}],
            tags=["gold"],
            schema={"fields": [{"name": "zip_code", "type": "STRING", "description": "Postal"}]},
        )
        platform.emit_dataset(known)
        many = "customers address buyer countries zip postal ada gold"
        for query in (many, "countries", "addresses", "buy", "postgres", "lake", "sales"):
            assert [hit.urn for hit in platform.search(query).hits] == [known.urn], query

    def test_a_long_stash_keeps_no_dataset_from_the_index(
        self, platform: OpenMetadataHandler, server: tuple[str, OpenMetadataStore]
    ) -> None:
        noise = "".join(sha256(str(number).encode()).hexdigest() for number in range(2_000))
        known = dataset("customers", platform="postgres", properties={"noise": noise})
        platform.emit_dataset(known)

        assert [hit.urn for hit in platform.search("customers").hits] == [known.urn]
        assert platform.get_dataset(known.urn) == known
        server[1].requests.clear()
        platform.emit_dataset(known)
        assert server[1].writes() == []

        short = dataset("customers", platform="postgres", properties={"noise": "none"})
        platform.emit_dataset(short)
        held = server[1].entities["tables"]["postgres.default.lake.customers"]
        assert (platform.get_dataset(known.urn), [*held["extension"]]) == (short, ["lumos"])

    def test_a_search_sees_what_the_index_has_heard_of(
        self, platform: OpenMetadataHandler, server: tuple[str, OpenMetadataStore]
    ) -> None:
        store = server[1]
        platform.emit_dataset(dataset("customers", platform="postgres"))
        store.refresh()
        store.lags = True
        platform.delete(dataset("customers", platform="postgres").urn)
        platform.emit_dataset(dataset("orders", platform="postgres"))

        assert (platform.search("customers").total, platform.search("orders").total) == (0, 0)
        store.refresh()
        assert platform.search("orders").total == 1

    def test_what_is_gone_since_the_index_heard_of_it_is_not_found(
        self,
        platform: OpenMetadataHandler,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi

        platform.emit_dataset(rich_dataset())
        stale = {"_source": {"fullyQualifiedName": "s3.lake.gone"}}
        answer = {"hits": {"total": {"value": 1}, "hits": [stale]}}
        monkeypatch.setattr(OpenMetadataApi, "search", lambda *_, **__: answer)

        assert platform.search("customers").total == 0


class TestAtlas:
    @pytest.fixture
    def server(self) -> Iterator[AtlasServer]:
        with AtlasServer() as server:
            yield server

    @pytest.fixture
    def atlas(self, server: AtlasServer) -> Iterator[AtlasHandler]:
        with atlas_at(server) as atlas:
            yield atlas

    def test_a_word_of_a_column_and_one_of_its_dataset_find_it_together(
        self, atlas: AtlasHandler
    ) -> None:
        atlas.emit_dataset(rich_dataset())
        atlas.emit_dataset(dataset("finance"))

        (hit,) = atlas.search("finance email").hits

        assert hit.urn == rich_dataset().urn
        assert hit.external_id == rich_dataset().urn

    def test_a_table_that_others_wrote_is_found_by_its_own_text(
        self, server: AtlasServer, atlas: AtlasHandler
    ) -> None:
        attributes = {"qualifiedName": "sales.orders@prod", "name": "orders", "comment": "All sold"}
        server.store.put([{"typeName": "hive_table", "guid": "-1", "attributes": {**attributes}}])

        (hit,) = atlas.search("sold").hits

        assert (hit.urn, hit.external_id) == (
            "lumos://hive/sales.orders@prod",
            "sales.orders@prod",
        )

    def test_a_server_that_nothing_was_written_to_has_nothing(self, atlas: AtlasHandler) -> None:
        assert atlas.search("customers").total == 0
        assert atlas.search("").total == 0

    def test_what_only_lineage_names_is_not_found(self, atlas: AtlasHandler) -> None:
        atlas.emit_dataset(rich_dataset())
        atlas.emit_lineage(dataset("customers_raw").urn, rich_dataset().urn)

        assert [hit.name for hit in atlas.search("customers").hits] == ["customers"]


class TestAmundsen:
    @pytest.fixture
    def amundsen(self, tmp_path: Path) -> Iterator[AmundsenHandler]:
        engine = sqlite_engine(tmp_path / "amundsen.db")
        publish_orders(engine)
        with amundsen_over(engine) as platform:
            yield platform

    @pytest.mark.parametrize("query", ["finance", "ada", "euro", "beta", "all orders", "sales"])
    def test_a_table_that_its_own_publisher_wrote_is_found(
        self, amundsen: AmundsenHandler, query: str
    ) -> None:
        found = {hit.external_id for hit in amundsen.search(query).hits}

        assert "hive://gold.sales/orders" in found

    def test_what_belongs_to_the_catalog_as_a_whole_is_not_found(
        self, amundsen: AmundsenHandler
    ) -> None:
        amundsen.apply(Batch(extensions={"customers": {"raw": "customers"}}))

        assert amundsen.search("customers").total == 0
        assert amundsen.search("").total == 2

    def test_more_than_a_window_is_said(
        self, amundsen: AmundsenHandler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from lumos.core.platform.impl.amundsen import search

        monkeypatch.setattr(search, "WINDOW", 1)

        page = amundsen.search("orders")

        assert (len(page.hits), page.total, page.exact) == (1, 2, False)
