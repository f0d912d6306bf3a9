"""Datasets: the canonical model on one side, an entity with its columns on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.impl.atlas.mapping.columns import (
    Labelled,
    column_entity,
    field_of,
    key_columns,
    shown,
)
from lumos.core.platform.impl.atlas.mapping.names import shown_text
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET, STASH, attributes_of
from lumos.core.platform.impl.atlas.mapping.wire import mapping, objects, text, texts
from lumos.core.platform.stash import StashedDataset, packed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import Owner
    from lumos.core.models.types import Field

_TEXTS = ("name", "platform", "kind", "environment", "database", "namespace", "format")
_WRITTEN = {"description": "description", "business_context": "businessContext", "sla": "sla"}
_OF_CLASSIFICATIONS = ("attributes", "propagate", "validityPeriods")
OWN = "atlas"
"""The extension that keeps what Atlas has of an entity and Lumos does not model."""


class DatasetParts(NamedTuple):
    """What lies around the entity of a dataset."""

    fields: Sequence[Field] = ()
    tags: Sequence[str] = ()
    terms: Sequence[str] = ()
    keys: Sequence[str] = ()


class DatasetEntity(NamedTuple):
    """A dataset as Atlas keeps it."""

    head: Labelled
    columns: tuple[Labelled, ...]


def dataset_entity(
    dataset: LumosDataset, *, business: Collection[str] = frozenset()
) -> DatasetEntity:
    """Return the entities of a dataset, the first of them with the stash.

    `business` names the kinds of business metadata that the server has; values of others cannot
    be attached there.
    """
    plain = with_parts(dataset, lineage=DatasetLineage())
    head = _head(plain, business)
    keys = {*dataset.schema.primary_key}
    columns = tuple(
        column_entity(field, dataset.urn, position=position, is_key=field.name in keys)
        for position, field in enumerate(dataset.schema.fields)
    )
    fields = [field_of(each.entity, each.tags, terms=each.terms) for each in columns]
    terms = dataset.governance.glossary_terms
    flagged = key_columns(each.entity for each in columns)
    native = _native(head, DatasetParts(fields, dataset.tags, terms, flagged))
    stash = StashedDataset.of(plain, native=native).stash
    mapping(head["attributes"])[STASH] = None if stash is None else packed(stash)
    return DatasetEntity(Labelled(head, dataset.tags, dataset.governance.glossary_terms), columns)


def dataset_of(entity: Json, parts: DatasetParts) -> LumosDataset:
    """Return the dataset of an entity, without lineage."""
    stash = text(mapping(entity.get("attributes")).get(STASH))
    return StashedDataset.merged(_native(entity, parts), stash)


def is_placeholder(entity: Json) -> bool:
    """Tell whether an entity only stands for a dataset that lineage names."""
    return mapping(entity.get("attributes")).get("placeholder") is True


def own_values(entity: Json) -> Json:
    """Return what Atlas has of an entity and Lumos does not model."""
    names = ("labels", "customAttributes", "businessAttributes")
    found: Json = {name: value for name in names if (value := entity.get(name))}
    if labels := texts(found.get("labels")):
        found["labels"] = [*sorted(labels)]
    if classified := [*_telling_classifications(entity)]:
        found["classifications"] = classified
    return found


def _telling_classifications(entity: Json) -> Iterator[JsonValue]:
    """Yield the classifications that say more than their name, which is a tag."""
    for each in objects(entity.get("classifications")):
        if each.get("entityGuid") not in (None, entity.get("guid")):
            continue
        kept: Json = {name: value for name in _OF_CLASSIFICATIONS if (value := each.get(name))}
        if kept:
            yield {"typeName": each.get("typeName"), **kept}


def _head(dataset: LumosDataset, business: Collection[str]) -> Json:
    written, where = dataset.documentation, dataset.location
    owners = [_shown_owner(owner) for owner in dataset.ownership.owners]
    values: dict[str, JsonValue] = {
        name: value
        for name, value in dataset.properties.items()
        if isinstance(value, str) and shown_text(name) == name and shown_text(value) == value
    }
    attributes: Json = {
        **dict.fromkeys(attributes_of(DATASET)),
        "qualifiedName": str(dataset.urn),
        **{name: shown(getattr(dataset, name)) for name in _TEXTS},
        **{attribute: shown(getattr(written, name)) for name, attribute in _WRITTEN.items()},
        "owner": shown(dataset.ownership.owners[0].name) if owners else None,
        "owners": [*owners] or None,
        "domains": [shown_text(name) for name in dataset.governance.domains] or None,
        "properties": values or None,
        "location": shown("/".join(filter(None, (where.bucket, where.path)))) if where else None,
        "lumosVersion": shown(dataset.version),
        "rowCount": dataset.statistics.row_count if dataset.statistics else None,
        "qualityScore": dataset.quality.score if dataset.quality else None,
        "placeholder": False,
    }
    entity: Json = {"typeName": DATASET, "attributes": attributes}
    return {**entity, **_own_given(dataset, business)}


def _own_given(dataset: LumosDataset, business: Collection[str]) -> Json:
    """Return what of the extension `atlas` has a place of its own there."""
    own = dataset.extensions.get(OWN)
    given = dataset.document.get("extensions") if isinstance(own, dict) else None
    values = mapping(mapping(given).get(OWN))
    labels, custom = texts(values.get("labels")), mapping(values.get("customAttributes"))
    found: Json = {"labels": [*sorted({*labels})], "customAttributes": {}, "businessAttributes": {}}
    if all(isinstance(value, str) for value in custom.values()):
        found["customAttributes"] = custom
    given_there = mapping(values.get("businessAttributes"))
    found["businessAttributes"] = {k: v for k, v in given_there.items() if k in business}
    return found


def _native(entity: Json, parts: DatasetParts) -> LumosDataset:
    """Return what an entity says of a dataset, the stash apart."""
    attributes = mapping(entity.get("attributes"))
    own = own_values(entity)
    schema: dict[str, object] = {"fields": tuple(parts.fields), "primary_key": tuple(parts.keys)}
    return LumosDataset.from_json(
        {
            **{name: text(attributes.get(name)) for name in _TEXTS},
            "urn": attributes.get("qualifiedName"),
            "schema": schema,
            "ownership": _owners(attributes),
            "tags": tuple(parts.tags),
            "governance": {
                "domains": (*texts(attributes.get("domains")),),
                "glossary_terms": tuple(parts.terms),
            },
            "documentation": {
                name: text(attributes.get(attribute)) for name, attribute in _WRITTEN.items()
            },
            "properties": mapping(attributes.get("properties")),
            "extensions": {OWN: own} if own else {},
        }
    )


def _shown_owner(owner: Owner) -> str:
    return shown_text(f"{owner.category}:{owner.type}:{owner.name}")


def _owners(attributes: Json) -> list[JsonValue]:
    """Return owners; one that was set by hand in Atlas takes the first place."""
    found: list[JsonValue] = []
    for owner in texts(attributes.get("owners")):
        category, _, rest = owner.partition(":")
        role, _, name = rest.partition(":")
        if category in {"user", "group"} and role.strip() and name:
            found.append({category: name, "type": role})
    hand = text(attributes.get("owner"))
    first = mapping(found[0]) if found else {}
    if hand and hand not in (first.get("user"), first.get("group")):
        found = [{"user": hand}, *found[1:]]
    return found
