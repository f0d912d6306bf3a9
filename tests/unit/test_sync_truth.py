"""Everything that people may change in a catalog stays, whatever Lumos changes beside it."""

from __future__ import annotations

from typing import Any

import pytest

from lumos.core.models import GlossaryTerm, Group, LumosDataset
from lumos.feature.sync.settings import Truth, TruthSettings
from lumos.feature.sync.truth import merged_entity, merged_parts, remembered_of, was_edited

COLUMN = {"name": "id", "type": "INT64"}
NESTED = {
    "name": "items/lines",
    "type": "ARRAY",
    "items": {"type": "STRUCT", "fields": [{"name": "price", "type": "INT64"}]},
}
GOVERNANCE = {
    "domains": ["retail"],
    "glossary_terms": ["Customer"],
    "deprecation": {"note": "use the other"},
    "access": "PUBLIC",
    "retention_days": 0,
}
WORDS = {
    "description": "by hand",
    "pii": True,
    "tags": ["mine"],
    "glossary_terms": ["Key"],
    "properties": {"unit": "EUR"},
    "deprecation": {"note": "old"},
}
NEWEST = TruthSettings()
LUMOS = TruthSettings(**dict.fromkeys(TruthSettings.model_fields, Truth.LUMOS))
EDITS: dict[str, dict[str, Any]] = {
    "governance": {"governance": GOVERNANCE},
    "properties": {"properties": {"cost centre": "42", "checked": False, "note": ""}},
    "own": {"extensions": {"datahub": {"forms": ["one"]}}},
    "column": {"schema": {"fields": [{**COLUMN, **WORDS}, NESTED]}},
    "nested": {
        "schema": {
            "fields": [
                COLUMN,
                {
                    **NESTED,
                    "items": {
                        "type": "STRUCT",
                        "fields": [{"name": "price", "type": "INT64", **WORDS}],
                    },
                },
            ]
        }
    },
}


def made(**parts: object) -> LumosDataset:
    plain = {"urn": "lumos://s3/lake/t", "name": "t", "platform": "s3"}
    return LumosDataset.from_json({**plain, "schema": {"fields": [COLUMN, NESTED]}, **parts})


def sent(dataset: LumosDataset) -> dict[str, Any]:
    return remembered_of(dataset.document, catalog="datahub")


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_people_set_stays_when_lumos_changes_something_else(edit: dict[str, Any]) -> None:
    local, remote = made(format="orc"), made(**edit)
    for kept in (sent(made()), None):
        chosen = merged_parts(local, remote, kept=kept, truth=NEWEST, catalog="datahub")
        assert chosen.dataset == made(format="orc", **edit)
        assert chosen.conflicts == ()
        later = merged_parts(
            made(format="csv"), chosen.dataset, kept=chosen.kept, truth=NEWEST, catalog="datahub"
        )
        assert later.dataset == made(format="csv", **edit)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_people_removed_stays_removed(edit: dict[str, Any]) -> None:
    chosen = merged_parts(
        made(format="orc", **edit), made(), kept=sent(made(**edit)), truth=NEWEST, catalog="datahub"
    )
    assert chosen.dataset == made(format="orc")


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_lumos_no_longer_says_goes(edit: dict[str, Any]) -> None:
    chosen = merged_parts(
        made(), made(**edit), kept=sent(made(**edit)), truth=NEWEST, catalog="datahub"
    )
    assert chosen.dataset == made()


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_where_lumos_is_right_nothing_of_the_catalog_stays(edit: dict[str, Any]) -> None:
    chosen = merged_parts(made(), made(**edit), kept=sent(made()), truth=LUMOS, catalog="datahub")
    assert chosen.dataset == made()


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_of_any_part_is_an_edit(edit: dict[str, Any]) -> None:
    assert was_edited(made(**edit), sent(made()), catalog="datahub")
    assert was_edited(made(), sent(made(**edit)), catalog="datahub")
    assert not was_edited(made(**edit), sent(made(**edit)), catalog="datahub")


def test_what_lumos_does_not_model_of_other_catalogs_is_that_of_lumos() -> None:
    remote = made(extensions={"atlas": {"guid": "1"}})
    chosen = merged_parts(made(), remote, kept=sent(made()), truth=NEWEST, catalog="datahub")
    assert chosen.dataset == made()


def test_links_that_both_sides_added_are_united() -> None:
    ours, theirs = {"url": "https://ours.example"}, {"url": "https://theirs.example"}
    local = made(documentation={"links": [ours]})
    remote = made(documentation={"links": [theirs]})

    chosen = merged_parts(local, remote, kept=sent(made()), truth=NEWEST, catalog="datahub")

    urls = [link.url for link in chosen.dataset.documentation.links]
    assert sorted(urls) == ["https://ours.example", "https://theirs.example"]
    assert chosen.conflicts == ()


def test_each_part_has_a_policy_of_its_own() -> None:
    edits = EDITS["governance"] | EDITS["properties"]
    for part in ("governance", "properties"):
        truth = TruthSettings.model_validate({part: Truth.LUMOS})
        chosen = merged_parts(
            made(), made(**edits), kept=sent(made()), truth=truth, catalog="datahub"
        )
        assert chosen.dataset == made(**{name: edits[name] for name in edits if name != part})


GROUP = Group.from_json({"name": "sales", "members": ["ada"]})
THEIR_GROUP = Group.from_json(
    {"name": "sales", "description": "By hand.", "members": ["ada", "bob"]}
)


def test_what_people_wrote_of_groups_tags_and_terms_stays() -> None:
    first = merged_entity(GROUP, None, kept=None, policy=Truth.NEWEST)
    assert first.entity == GROUP
    grown = Group.from_json({"name": "sales", "members": ["ada", "eve"]})
    chosen = merged_entity(grown, THEIR_GROUP, kept=first.kept, policy=Truth.NEWEST)
    assert chosen.entity.to_json() == {
        "name": "sales",
        "description": "By hand.",
        "members": ["ada", "bob", "eve"],
    }
    unknown = merged_entity(grown, THEIR_GROUP, kept=None, policy=Truth.NEWEST)
    assert unknown.entity == chosen.entity
    smaller = Group.from_json({"name": "sales", "members": ["eve"]})
    later = merged_entity(smaller, chosen.entity, kept=chosen.kept, policy=Truth.NEWEST)
    assert later.entity.to_json()["members"] == ["bob", "eve"]


def test_where_lumos_is_right_an_entity_is_what_lumos_says() -> None:
    assert merged_entity(GROUP, THEIR_GROUP, kept=None, policy=Truth.LUMOS).entity == GROUP


def test_where_the_catalog_is_right_only_gaps_are_filled() -> None:
    ours = Group.from_json({"name": "sales", "description": "Ours.", "email": "s@example.org"})
    chosen = merged_entity(ours, THEIR_GROUP, kept=None, policy=Truth.CATALOG).entity
    assert chosen.to_json() == {**THEIR_GROUP.to_json(), "email": "s@example.org"}


def test_a_definition_that_changed_on_both_sides_is_the_catalogs_and_told() -> None:
    before, ours, theirs = (
        GlossaryTerm(name="Order", definition=text) for text in ("before", "ours", "theirs")
    )
    kept = merged_entity(before, None, kept=None, policy=Truth.NEWEST).kept
    chosen = merged_entity(ours, theirs, kept=kept, policy=Truth.NEWEST)
    assert (chosen.entity, chosen.conflicts) == (theirs, ("definition",))
    again = merged_entity(ours, before, kept=kept, policy=Truth.NEWEST)
    assert (again.entity, again.conflicts) == (ours, ())
