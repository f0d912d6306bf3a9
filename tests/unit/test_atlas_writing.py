"""How Atlas is written: many things by one request, lineage of columns, types by version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from pydantic import JsonValue

from doubles.atlas_server import AtlasServer, atlas_at
from doubles.atlas_store import AtlasRefusalError, Json, obj, objs
from lumos.core.errors import PlatformConflictError
from lumos.core.models import GlossaryTerm, Tag, with_parts
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.atlas.mapping.typedefs import (
    COLUMN,
    COLUMN_EDGE,
    DATASET,
    TYPE_VERSION,
)
from lumos.core.platform.impl.atlas.writer import datasets as writing
from lumos.testing.platform_samples import dataset, edge, rich_dataset


@pytest.fixture
def server() -> Iterator[AtlasServer]:
    with AtlasServer() as server:
        yield server


@pytest.fixture
def atlas(server: AtlasServer) -> Iterator[AtlasHandler]:
    with atlas_at(server) as platform:
        yield platform


def of_type(server: AtlasServer, name: str) -> list[Json]:
    return [each for each in server.store.entities.values() if each["typeName"] == name]


def requests(server: AtlasServer, method: str, path: str) -> int:
    return sum(asked == (method, path) for asked in server.requests)


def test_many_datasets_are_read_and_written_by_few_requests(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    many = [rich_dataset(f"t{number:02}") for number in range(40)]
    atlas.apply(Batch(datasets=many))

    assert requests(server, "POST", "v2/entity/bulk") == 1
    assert [*atlas.list()] == many
    changed = [with_parts(one, documentation={"description": "new"}) for one in many[:3]]
    before = requests(server, "POST", "v2/entity/bulk")
    atlas.apply(Batch(datasets=[*changed, *many[3:]]))
    assert requests(server, "POST", "v2/entity/bulk") == before + 1
    assert [*atlas.list()] == [*changed, *many[3:]]


def test_a_request_holds_no_more_entities_than_its_limit(
    server: AtlasServer, atlas: AtlasHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_ENTITIES", 9)
    atlas.apply(Batch(datasets=[rich_dataset(f"t{number}") for number in range(5)]))

    assert requests(server, "POST", "v2/entity/bulk") == 3
    assert len([*atlas.list()]) == 5


def test_a_server_that_finds_no_several_names_at_once_is_asked_one_by_one(
    server: AtlasServer, atlas: AtlasHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [rich_dataset(f"t{number}") for number in range(3)]
    atlas.apply(Batch(datasets=many))
    monkeypatch.setattr(server, "older", True)
    before = server.store.writes
    atlas.apply(Batch(datasets=many))

    assert server.store.writes == before


def looked_up(server: AtlasServer) -> int:
    paths = [path for method, path in server.requests if method == "GET"]
    return sum("/uniqueAttribute/type/" in path for path in paths)


@pytest.mark.parametrize(("missing", "most"), [(0, 1), (1, 13), (2, 26)])
def test_a_server_that_finds_nothing_where_one_is_missing_is_asked_for_halves(
    server: AtlasServer, atlas: AtlasHandler, missing: int, most: int
) -> None:
    there = [dataset(f"t{number:02}") for number in range(32)]
    atlas.apply(Batch(datasets=there))
    wanted = [*there[missing:], *(dataset(f"n{number}") for number in range(missing))]
    server.strict = True
    server.requests.clear()

    found = atlas._client.named(DATASET, [one.urn for one in wanted])

    assert {*found} == {one.urn for one in there[missing:]}
    assert looked_up(server) <= most


def test_a_server_that_never_finds_several_at_once_is_soon_no_longer_asked_to(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    names = [dataset(f"t{number:02}").urn for number in range(32)]
    atlas.apply(Batch(datasets=[dataset(f"t{number:02}") for number in range(32)]))
    server.older = True
    assert len(atlas._client.named(DATASET, names)) == 32
    server.requests.clear()

    assert len(atlas._client.named(DATASET, names)) == 32
    assert looked_up(server) == 32


def test_what_people_added_to_a_type_of_lumos_stays_when_it_is_brought_up_to_date(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.emit_dataset(dataset())
    old = server.store.types[DATASET]
    old["typeVersion"] = "1.0"
    old["attributeDefs"] = [*objs(old["attributeDefs"]), {"name": "theirs", "typeName": "string"}]
    with atlas_at(server) as later:
        later.emit_dataset(dataset("two"))

    names = [each["name"] for each in objs(server.store.types[DATASET]["attributeDefs"])]
    assert names.count("theirs") == 1
    assert server.store.types[DATASET]["typeVersion"] == TYPE_VERSION


def test_a_term_that_somebody_else_defines_meanwhile_is_used(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    with atlas_at(server) as other:
        assert [*atlas.list_entities("glossary_term")] == []
        other.apply(Batch(entities=[GlossaryTerm(name="Net", definition="after tax")]))
        atlas.emit_dataset(dataset("one", governance={"glossary_terms": ["Net"]}))
        assert [*other.list_entities("glossary_term")] == [
            GlossaryTerm(name="Net", definition="after tax")
        ]
        other.apply(Batch(entities=[GlossaryTerm(name="Gross")]))
        atlas.apply(Batch(entities=[GlossaryTerm(name="Gross", definition="before tax")]))

    assert atlas.get_dataset(dataset("one").urn).governance.glossary_terms == ("Net",)
    assert [*atlas.list_entities("glossary_term")] == [
        GlossaryTerm(name="Gross", definition="before tax"),
        GlossaryTerm(name="Net", definition="after tax"),
    ]


def edited(server: AtlasServer, name: str, **attributes: JsonValue) -> None:
    """Change an entity as somebody at Atlas's pages does."""
    held = server.store.find(DATASET, str(dataset(name).urn))
    assert held is not None
    obj(held["attributes"]).update(attributes)


def test_what_people_change_between_look_up_and_write_is_a_conflict(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.apply(Batch(datasets=[dataset("one"), dataset("two")]))
    wanted = [dataset(name, tags=("gold",)) for name in ("one", "two", "three")]
    seen = atlas.find_datasets([one.urn for one in wanted])
    assert [each.dataset is not None for each in seen.values()] == [True, True, False]
    edited(server, "two", description="by hand")
    before = server.store.writes

    with pytest.raises(PlatformConflictError, match=r"lake/two"):
        atlas.apply(Batch(datasets=wanted), seen)

    assert server.store.writes == before
    atlas.apply(Batch(datasets=wanted), atlas.find_datasets([one.urn for one in wanted]))
    assert [*atlas.list()] == [wanted[0], wanted[2], wanted[1]]


def test_a_neighbour_that_comes_between_look_up_and_write_is_no_conflict(
    atlas: AtlasHandler,
) -> None:
    atlas.apply(Batch(datasets=[dataset("one"), dataset("two")]))
    seen = atlas.find_datasets([dataset("one").urn])
    atlas.apply(Batch(edges=[edge(dataset("one"), dataset("two"))]))

    atlas.apply(Batch(datasets=[dataset("one", tags=("gold",))]), seen)

    assert atlas.get_dataset(dataset("one").urn).tags == ("gold",)


def test_an_owner_is_added_to_what_people_made_of_a_dataset_meanwhile(
    server: AtlasServer, atlas: AtlasHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas.emit_dataset(dataset("one"))
    real, edits = atlas.find_datasets, [True]

    def read_and_then_edited(urns: Sequence[str]) -> dict[str, Seen]:
        found = real(urns)
        if edits:
            edits.pop()
            edited(server, "one", description="by hand")
        return found

    monkeypatch.setattr(atlas, "find_datasets", read_and_then_edited)
    atlas.emit_ownership(dataset("one").urn, "ada")

    found = atlas.get_dataset(dataset("one").urn)
    assert found.documentation.description == "by hand"
    assert [owner.user for owner in found.ownership.owners] == ["ada"]


def test_lineage_of_columns_is_drawn_and_goes_with_its_edge(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    fields = {"fields": [{"name": "a.b", "type": "INT64"}, {"name": "c", "type": "INT64"}]}
    ends = dataset("up", schema=fields), dataset("down", schema=fields)
    atlas.apply(Batch(datasets=ends))
    two = [
        {"upstream_column": "a.b", "downstream_column": "c", "transformation": "f(x)"},
        {"upstream_column": "c", "downstream_column": "c"},
        {"upstream_column": "gone", "downstream_column": "c"},
    ]
    atlas.apply(Batch(edges=[edge(*ends, column_mappings=two)]))

    drawn = of_type(server, COLUMN_EDGE)
    assert {str(obj(each["attributes"])["name"]) for each in drawn} == {"a.b -> c", "c -> c"}
    column = server.store.get(str(objs(obj(drawn[0]["attributes"])["inputs"])[0]["guid"]))
    assert column["typeName"] == COLUMN
    before = server.store.writes
    atlas.apply(Batch(edges=[edge(*ends, column_mappings=two)]))
    assert server.store.writes == before
    atlas.apply(Batch(edges=[edge(*ends, column_mappings=two[:1])]))
    assert [each["status"] for each in of_type(server, COLUMN_EDGE)] == ["ACTIVE", "DELETED"]
    assert len([*atlas.list_edges()]) == 1
    atlas.apply(Batch(removed_edges=[edge(*ends)]))
    assert {each["status"] for each in of_type(server, COLUMN_EDGE)} == {"DELETED"}


def test_columns_that_come_after_their_edge_are_drawn_when_it_is_told_again(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    fields = {"fields": [{"name": "x", "type": "INT64"}]}
    ends = dataset("up", schema=fields), dataset("down", schema=fields)
    told = edge(*ends, column_mappings=[{"upstream_column": "x", "downstream_column": "x"}])
    atlas.apply(Batch(edges=[told]))
    assert of_type(server, COLUMN_EDGE) == []
    atlas.apply(Batch(datasets=ends))
    atlas.apply(Batch(edges=[told]))

    assert len(of_type(server, COLUMN_EDGE)) == 1
    assert [*atlas.list_edges()] == [told]


def test_types_of_an_earlier_lumos_are_brought_up_to_date(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    atlas.emit_dataset(dataset())
    old = server.store.types[DATASET]
    old["typeVersion"] = "1.0"
    old["attributeDefs"] = [*objs(old["attributeDefs"])[:5]]
    del server.store.types[COLUMN_EDGE]
    with atlas_at(server) as later:
        later.emit_dataset(rich_dataset("two"))
        later.emit_dataset(rich_dataset("two"))

    assert server.store.types[DATASET]["typeVersion"] == TYPE_VERSION
    assert COLUMN_EDGE in server.store.types
    assert requests(server, "PUT", "v2/types/typedefs") == 1
    held = server.store.find(DATASET, str(rich_dataset("two").urn))
    assert held is not None
    assert obj(held["attributes"])["rowCount"] == 45_000_000


def test_business_metadata_that_the_server_does_not_know_is_kept_beside(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    own = {"businessAttributes": {"Audit": {"by": "grace"}}}
    one = dataset(extensions={"atlas": own})
    atlas.emit_dataset(one)

    assert server.store.find(DATASET, str(one.urn)) is not None
    assert atlas.get_dataset(one.urn) == one


def test_a_column_that_people_mark_as_a_key_is_one(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    fields = [{"name": name, "type": "INT64"} for name in ("a", "b", "c")]
    one = dataset(schema={"fields": fields, "primary_key": ["c", "a"]})
    atlas.emit_dataset(one)
    assert atlas.get_dataset(one.urn) == one
    columns = {obj(each["attributes"])["name"]: each for each in of_type(server, COLUMN)}
    obj(columns["c"]["attributes"])["isPrimaryKey"] = False

    assert atlas.get_dataset(one.urn).schema.primary_key == ("a",)


def test_a_conflict_over_a_tag_that_is_not_there_is_told_as_a_conflict(
    server: AtlasServer, atlas: AtlasHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_bundle: Json, *, anew: bool) -> None:
        raise AtlasRefusalError(409, "ATLAS-409-00-001")

    atlas.emit_dataset(dataset("t"))  # its types are there
    monkeypatch.setattr(server.store, "define", refuse)

    with pytest.raises(PlatformConflictError):
        atlas.apply(Batch(entities=[Tag(name="gold")]))


def test_types_that_cannot_be_defined_are_told_as_a_conflict_and_tried_again(
    server: AtlasServer, atlas: AtlasHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_bundle: Json, *, anew: bool) -> None:
        raise AtlasRefusalError(409, "ATLAS-409-00-001")

    with monkeypatch.context() as patch:
        patch.setattr(server.store, "define", refuse)
        with pytest.raises(PlatformConflictError):
            atlas.emit_dataset(dataset("t"))

    atlas.emit_dataset(dataset("t"))
    assert atlas.get_dataset(dataset("t").urn) == dataset("t")


def test_what_people_say_of_a_term_or_a_tag_stays_also_when_they_say_it_meanwhile(
    server: AtlasServer, atlas: AtlasHandler
) -> None:
    glossary = server.store.create_glossary({"name": "Business"})
    theirs: Json = {
        "name": "Net",
        "anchor": {"glossaryGuid": glossary["guid"]},
        "additionalAttributes": {"steward": "ada"},
    }
    guid = str(server.store.put_term(theirs, None)["guid"])
    server.store.define({"classificationDefs": [{"name": "PII", "options": {"x": "y"}}]}, anew=True)
    assert [*atlas.list_entities("glossary_term")] == [GlossaryTerm(name="Net")]
    assert [*atlas.list_entities("tag")] == [Tag(name="PII")]
    server.store.put_term({**theirs, "abbreviation": "N"}, guid)
    later: Json = {"name": "PII", "options": {"x": "z"}, "attributeDefs": [{"name": "level"}]}
    server.store.define({"classificationDefs": [later]}, anew=False)

    atlas.apply(Batch(entities=[GlossaryTerm(name="Net", definition="after tax")]))
    atlas.apply(Batch(entities=[Tag(name="PII", description="personal")]))

    term, tag = server.store.terms[guid], server.store.types["PII"]
    assert (term["abbreviation"], obj(term["additionalAttributes"])["steward"]) == ("N", "ada")
    assert (tag["attributeDefs"], obj(tag["options"])["x"]) == ([{"name": "level"}], "z")
    assert [*atlas.list_entities("glossary_term")] == [
        GlossaryTerm(name="Net", definition="after tax")
    ]
    assert [*atlas.list_entities("tag")] == [Tag(name="PII", description="personal")]
