"""What a catalog cannot hold comes back, and what people changed there stays changed."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

import strategies
from lumos.core.errors import InvalidModelError
from lumos.core.models import Documentation, LumosDataset, Ownership, Schema, with_parts
from lumos.core.models.base import canonical_json
from lumos.core.platform.stash import (
    UNREAD_STASH,
    StashedDataset,
    packed,
    residue,
    restored,
    unpacked,
)
from strategies import json_values, texts

PARTS = [
    "kind", "environment", "format", "location", "location.path", "schema", "schema.fields.name",
    "schema.fields.type", "schema.fields.nullable", "schema.primary_key", "lineage", "ownership",
    "tags", "governance.domains", "documentation", "documentation.description", "properties",
    "assertions", "statistics", "quality", "version", "extensions",
]  # fmt: skip
objects = st.dictionaries(texts, json_values, max_size=4)


def sample() -> LumosDataset:
    return LumosDataset.from_json(
        {
            "urn": "lumos://s3/shop/orders",
            "name": "orders",
            "platform": "s3",
            "schema": {
                "fields": [
                    {"name": "id", "type": "INT64", "nullable": False, "pii": True},
                    {"name": "price", "type": "DECIMAL", "precision": 10, "scale": 2},
                    {"name": "note", "type": "STRING", "tags": ["free-text"]},
                ],
                "unique_keys": [["id"]],
            },
            "ownership": [{"user": "ann", "type": "DATA_STEWARD"}, {"group": "shop"}],
            "tags": ["gold", "shop"],
            "documentation": {"description": "All orders.", "sla": "99%"},
        }
    )


HOLDS = frozenset(
    {
        "schema.fields.name",
        "schema.fields.type",
        "schema.fields.description",
        "schema.fields.nullable",
        "tags",
        "documentation.description",
    }
)


@given(objects, objects)
def test_any_object_is_made_again_from_any_other(
    native: dict[str, JsonValue], whole: dict[str, JsonValue]
) -> None:
    stash = residue(native, whole)
    if stash is None:
        assert canonical_json(native) == canonical_json(whole)
    else:
        again = restored(native, unpacked(packed(stash, plain_bytes=30)))
        assert canonical_json(again) == canonical_json(whole)


@given(strategies.datasets(), st.frozensets(st.sampled_from(PARTS)))
def test_a_dataset_comes_back_whole_whatever_the_catalog_holds(
    dataset: LumosDataset, holds: frozenset[str]
) -> None:
    if any(part.startswith("schema.") for part in holds):
        holds |= {"schema"}  # parts of types do not stand alone
    native, stash = StashedDataset.split(dataset, holds)
    merged = StashedDataset.merged(native, None if stash is None else packed(stash))
    assert canonical_json(merged.to_json()) == canonical_json(dataset.to_json())


@given(strategies.datasets(), strategies.datasets())
def test_a_dataset_comes_back_whole_whatever_the_catalog_makes_of_it(
    dataset: LumosDataset, native: LumosDataset
) -> None:
    split = StashedDataset.of(dataset, native=native)
    merged = StashedDataset.merged(split.native, split.stash)
    assert canonical_json(merged.to_json()) == canonical_json(dataset.to_json())


def test_what_a_catalog_holds_is_not_stashed() -> None:
    native, stash = StashedDataset.split(sample(), HOLDS)
    assert native.tags == ("gold", "shop")
    assert [field.name for field in native.schema.fields] == ["id", "price", "note"]
    assert not native.ownership.owners
    text = packed(stash)
    assert "gold" not in text
    assert "All orders." not in text
    assert "DATA_STEWARD" in text
    assert StashedDataset.split(native, HOLDS).stash is None


def test_what_people_changed_in_the_catalog_wins_over_the_stash() -> None:
    dataset = sample()
    native, stash = StashedDataset.split(dataset, HOLDS)
    fields = (*native.schema.fields[:1], native.schema.fields[2])
    edited = with_parts(
        native,
        tags=("gold", "new"),
        documentation=Documentation(description="By hand."),
        schema=Schema(fields=fields),
        ownership=Ownership.from_json([{"user": "bob"}]),
    )
    merged = StashedDataset.merged(edited, stash)
    assert {owner.name for owner in merged.ownership.owners} == {"ann", "bob", "shop"}
    assert merged.tags == ("gold", "new")
    assert merged.documentation == Documentation(description="By hand.", sla="99%")
    assert [field.name for field in merged.schema.fields] == ["id", "note"]
    assert merged.schema.fields[0].pii
    assert merged.schema.fields[1].tags == ("free-text",)
    assert merged.schema.unique_keys == (("id",),)


@pytest.mark.parametrize("empty", [True, False], ids=["empty", "missing"])
@pytest.mark.parametrize("part", ["owners", "tags", "domains", "glossary_terms", "links"])
def test_a_first_entry_by_people_joins_those_that_the_catalog_could_not_show(
    empty: bool, part: str
) -> None:
    hidden = _entries("ann", "shop", part=part)
    native: dict[str, JsonValue] = {"x": {part: []} if empty else {}}
    stash = residue(native, {"x": {part: hidden}})
    assert stash is not None
    added = _entries("bob", part=part)
    stash = unpacked(packed(stash))
    assert restored({"x": {part: added}}, stash) == {"x": {part: [*hidden, *added]}}
    assert restored(native, stash) == {"x": {part: hidden}}
    assert restored({"x": {part: hidden}}, stash) == {"x": {part: hidden}}


def _entries(*names: str, part: str) -> list[JsonValue]:
    keys = {"owners": "user", "links": "url"}
    return [{keys[part]: name} if part in keys else name for name in names]


def test_people_who_add_an_owner_do_not_remove_a_group_that_the_catalog_hides() -> None:
    dataset = sample()
    native, stash = StashedDataset.split(dataset, HOLDS)
    merged = StashedDataset.merged(with_parts(native, ownership=[{"user": "bob"}]), stash)
    assert {owner.name for owner in merged.ownership.owners} == {"ann", "shop", "bob"}
    retyped = with_parts(native, ownership=[{"user": "ann", "type": "BUSINESS_OWNER"}])
    owners = StashedDataset.merged(retyped, stash).ownership.owners
    assert {(owner.name, owner.type) for owner in owners} == {
        ("ann", "BUSINESS_OWNER"),
        ("shop", "TECHNICAL_OWNER"),
    }


def test_what_people_removed_of_a_list_that_they_saw_stays_removed() -> None:
    dataset = sample()
    shown = with_parts(dataset, ownership=[{"user": "ann"}])  # the group alone is hidden
    stash = StashedDataset.of(dataset, native=shown).stash
    merged = StashedDataset.merged(with_parts(shown, ownership=[{"user": "bob"}]), stash)
    assert {owner.name for owner in merged.ownership.owners} == {"bob", "shop"}


def test_a_key_that_others_declare_is_not_mixed_with_the_one_of_the_stash() -> None:
    native: dict[str, JsonValue] = {"schema": {}}
    stash = residue(native, {"schema": {"primary_key": ["id"]}})
    assert stash is not None
    theirs: dict[str, JsonValue] = {"schema": {"primary_key": ["order_id"]}}
    assert restored(theirs, stash) == theirs


@pytest.mark.parametrize("order", [*permutations("abz")])
@pytest.mark.parametrize("shown", ["", "z", "az", "za", "b"])
def test_a_list_comes_back_in_its_order_through_the_text_of_the_stash(
    order: tuple[str, ...], shown: str
) -> None:
    native: dict[str, JsonValue] = {"items": [{"name": name} for name in shown]}
    whole: dict[str, JsonValue] = {"items": [{"name": name} for name in order]}
    stash = residue(native, whole)
    if stash is not None:  # its keys come back sorted, whatever their order was
        native = restored(native, unpacked(packed(stash)))
    assert native == whole


def test_an_owner_keeps_its_type_when_people_add_another() -> None:
    dataset = sample()
    typeless = with_parts(dataset, ownership=[{"user": "ann"}, {"group": "shop"}])
    stash = StashedDataset.of(dataset, native=typeless).stash
    edited = with_parts(typeless, ownership=[{"user": "ann"}, {"user": "bob"}])
    merged = StashedDataset.merged(edited, stash)
    assert [(owner.name, owner.type) for owner in merged.ownership.owners] == [
        ("ann", "DATA_STEWARD"),
        ("bob", "TECHNICAL_OWNER"),
    ]


def test_parts_that_no_longer_fit_are_kept_and_the_others_are_put_back() -> None:
    dataset = sample()
    native, stash = StashedDataset.split(dataset, HOLDS)
    fields = [field.to_json() for field in native.schema.fields]
    fields[1]["type"] = "STRING"  # with the precision of the stash it would be no type
    edited = with_parts(native, schema={"fields": fields})
    merged = StashedDataset.merged(edited, stash)
    assert merged.ownership == dataset.ownership
    assert merged.documentation == dataset.documentation
    assert merged.schema == edited.schema
    assert "precision" in packed(merged.extensions[UNREAD_STASH])


@pytest.mark.parametrize(
    "stash",
    [
        "{",
        "",
        "[]",
        "lz1:abc:AAAA",
        "lz1:x",
        7,
        {"v": 99, "patch": {}},
        {"v": 1, "patch": {"~": 1}},
    ],
)
def test_a_stash_that_cannot_be_read_is_kept_as_it_is(stash: JsonValue) -> None:
    merged = StashedDataset.merged(sample(), stash)
    assert with_parts(merged, extensions={}) == sample()
    if merged != sample():
        assert merged.extensions[UNREAD_STASH] == stash


def test_a_long_stash_is_packed_and_a_cut_one_is_told() -> None:
    stash: JsonValue = {"v": 1, "patch": {"=": "x" * 100_000, "was": None}}
    text = packed(stash)
    assert len(text) < 1_000
    assert unpacked(text) == stash
    with pytest.raises(InvalidModelError, match="cut off"):
        unpacked(text[:-8])
