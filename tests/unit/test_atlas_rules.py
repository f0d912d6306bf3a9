"""What an ordinary Atlas refuses, hides, drops or lists late, on the double that does the same.

`tests/service/test_atlas.py` holds the double to the real server.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from doubles.atlas_server import HIDDEN, STEWARD, AtlasServer, atlas_at
from doubles.atlas_store import business_metadata, obj
from lumos.core.errors import PlatformAuthError, PlatformForbiddenError
from lumos.core.models import Domain, LumosDataset
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import looked_up
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.atlas.mapping.names import BUILT_IN_TYPES
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET
from lumos.core.platform.refusals import ends_run
from lumos.testing.platform_samples import dataset, edge

SECRET = dataset(f"{HIDDEN} table")
OPEN = [dataset(f"t{number}") for number in range(6)]


@pytest.fixture
def server() -> Iterator[AtlasServer]:
    with AtlasServer() as server:
        yield server


@pytest.fixture
def atlas(server: AtlasServer) -> Iterator[AtlasHandler]:
    with atlas_at(server) as platform:
        yield platform


@pytest.fixture
def steward(server: AtlasServer, atlas: AtlasHandler) -> Iterator[AtlasHandler]:
    """The adapter with a login that may write entities, on a server with the types of Lumos."""
    atlas.apply(Batch(datasets=[*OPEN, SECRET]))
    with atlas_at(server, username=STEWARD) as platform:
        yield platform


def unreadable(platform: AtlasHandler) -> list[tuple[str, str, type[Exception]]]:
    return [(each.kind, each.name, type(each.error)) for each in platform.unreadable()]


class TestRights:
    def test_what_may_not_be_read_is_noted_and_all_else_is_listed(
        self, steward: AtlasHandler
    ) -> None:
        assert [*steward.list()] == OPEN
        assert unreadable(steward) == [
            ("dataset", f"1 of type {DATASET}", PlatformForbiddenError),
        ]

    def test_one_that_becomes_forbidden_after_the_search_is_noted_by_its_name(
        self, server: AtlasServer, steward: AtlasHandler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        search = server.store.search

        def without_hiding(asked: dict[str, JsonValue], *, markers: bool) -> dict[str, JsonValue]:
            server.store.hidden = None
            return search(asked, markers=markers)

        monkeypatch.setattr(server.store, "search", without_hiding)

        assert [*steward.list()] == OPEN
        assert unreadable(steward) == [("dataset", str(SECRET.urn), PlatformForbiddenError)]

    def test_entities_and_edges_that_may_not_be_read_are_noted(
        self, atlas: AtlasHandler, steward: AtlasHandler
    ) -> None:
        atlas.apply(Batch(entities=[Domain(name="sales"), Domain(name=f"{HIDDEN} one")]))
        atlas.apply(Batch(edges=[edge(OPEN[0], OPEN[1]), edge(OPEN[0], SECRET)]))

        assert [*steward.list_entities("domain")] == [Domain(name="sales")]
        assert [*steward.list_edges()] == [edge(OPEN[0], OPEN[1])]
        assert {kind for kind, _, _ in unreadable(steward)} == {"domain", "lineage_edge"}

    def test_a_dataset_that_may_not_be_read_is_forbidden_and_not_missing(
        self, steward: AtlasHandler
    ) -> None:
        with pytest.raises(PlatformForbiddenError, match="not authorized"):
            steward.get_dataset(SECRET.urn)

        found = looked_up(steward, [one.urn for one in (*OPEN, SECRET)], workers=1)

        assert [getattr(found[one.urn], "dataset", None) for one in OPEN] == OPEN
        assert isinstance(found[SECRET.urn], PlatformForbiddenError)

    def test_one_that_may_not_be_written_leaves_the_whole_request_undone(
        self, server: AtlasServer, steward: AtlasHandler
    ) -> None:
        before = server.store.writes
        new = [dataset("new"), dataset(f"{HIDDEN} new")]

        with pytest.raises(PlatformForbiddenError) as caught:
            steward.apply(Batch(datasets=new))

        assert not ends_run(caught.value)
        assert server.store.writes == before
        steward.apply(Batch(datasets=new[:1]))
        assert steward.get_dataset(new[0].urn) == new[0]

    def test_a_search_passes_over_what_may_not_be_read(self, steward: AtlasHandler) -> None:
        assert steward.search(HIDDEN).total == 0
        assert steward.search("t3").total == 1

    def test_without_the_types_of_lumos_a_login_that_may_not_define_them_is_told_once(
        self, server: AtlasServer
    ) -> None:
        with atlas_at(server, username=STEWARD) as steward:
            assert [*steward.list()] == []
            with pytest.raises(PlatformAuthError, match="may not define types") as caught:
                steward.emit_dataset(OPEN[0])

        assert ends_run(caught.value)
        assert "administrator" in str(caught.value.hint)

    def test_tags_that_may_not_be_defined_are_kept_and_shown_once_they_are(
        self, server: AtlasServer, atlas: AtlasHandler, steward: AtlasHandler
    ) -> None:
        atlas.emit_dataset(dataset("tagged", tags=["known"]))
        fields = [{"name": "a", "type": "INT64", "tags": ["of column", "known"]}]
        one = dataset("mine", tags=["known", "new"], schema={"fields": fields})
        steward.emit_dataset(one)

        assert steward.get_dataset(one.urn) == one
        assert shown_tags(server, one) == {"known"}
        atlas.apply(Batch(datasets=[dataset("other", tags=["new", "of column"])]))
        with atlas_at(server, username=STEWARD) as later:
            changed = dataset("mine", tags=["known", "new", "x"], schema={"fields": fields})
            later.emit_dataset(changed)
            assert later.get_dataset(one.urn) == changed
        assert shown_tags(server, one) == {"known", "new"}


def shown_tags(server: AtlasServer, one: LumosDataset) -> set[str]:
    held = server.store.find(DATASET, str(one.urn))
    assert held is not None
    given = held["classifications"]
    assert isinstance(given, list)
    return {str(obj(each)["typeName"]) for each in given}


class TestLateIndex:
    def test_what_was_just_written_is_listed_before_the_index_knows_it(
        self, server: AtlasServer, atlas: AtlasHandler
    ) -> None:
        atlas.apply(Batch(datasets=OPEN[:2]))
        server.store.lagging = True
        atlas.apply(Batch(datasets=OPEN[2:]))
        atlas.apply(Batch(edges=[edge(OPEN[0], OPEN[5])]))
        atlas.apply(Batch(entities=[Domain(name="sales")]))

        assert [one.urn for one in atlas.list()] == [one.urn for one in OPEN]
        assert [*atlas.list_edges()] == [edge(OPEN[0], OPEN[5])]
        assert [*atlas.list_entities("domain")] == [Domain(name="sales")]
        atlas.delete(OPEN[4].urn)
        assert [one.urn for one in atlas.list()] == [one.urn for one in OPEN if one != OPEN[4]]

    def test_what_the_index_still_lists_and_is_purged_ends_no_listing(
        self, server: AtlasServer, atlas: AtlasHandler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        atlas.apply(Batch(datasets=OPEN))
        found = server.store.search
        gone = server.store.find(DATASET, str(OPEN[3].urn))
        assert gone is not None

        def purged_afterwards(asked: dict[str, JsonValue], *, markers: bool) -> object:
            answer = found(asked, markers=markers)
            server.store.entities.pop(str(gone["guid"]), None)
            return answer

        monkeypatch.setattr(server.store, "search", purged_afterwards)

        assert [*atlas.list()] == [one for one in OPEN if one != OPEN[3]]
        assert atlas.unreadable() == ()


class TestNamesAndValues:
    @pytest.mark.parametrize("tag", sorted(BUILT_IN_TYPES))
    def test_a_tag_may_be_called_like_a_type_of_values(self, atlas: AtlasHandler, tag: str) -> None:
        atlas.emit_dataset(dataset("t", tags=[tag]))

        assert atlas.get_dataset(dataset("t").urn).tags == (tag,)

    @pytest.mark.parametrize(
        "own",
        [
            {"labels": ["two words", "ok"]},
            {"labels": ["l" * 51]},
            {"customAttributes": {"two words": "1", "ok": "2"}},
            {"customAttributes": {"long": "v" * 501, "number": 7}},
            {"businessAttributes": {"OnHive": {"by": "ada"}}},
            {"businessAttributes": {"OnData": {"by": "ada", "unknown": "x"}}},
            {"businessAttributes": {"OnData": {"by": "a" * 51}}},
            {"businessAttributes": {"OnData": {"by": 7}}},
            {"businessAttributes": {"Nowhere": {"by": "ada"}}},
        ],
    )
    def test_what_atlas_has_rules_against_is_kept_beside(
        self, server: AtlasServer, atlas: AtlasHandler, own: JsonValue
    ) -> None:
        for name, type_name in (("OnHive", "hive_table"), ("OnData", "DataSet")):
            defined = business_metadata(name, attribute="by", kind="string", applies_to=type_name)
            server.store.define(defined, anew=True)
        new, old = (dataset(name, extensions={"atlas": own}) for name in ("new", "old"))
        atlas.emit_dataset(dataset("old"))

        atlas.apply(Batch(datasets=[new, old]))

        assert [*atlas.list()] == [new, old]
        before = server.store.writes
        atlas.apply(Batch(datasets=[new, old]))
        assert server.store.writes == before
