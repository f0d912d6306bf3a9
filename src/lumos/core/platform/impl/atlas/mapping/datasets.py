"""Datasets: the canonical model on one side, an entity with its columns on the other."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.json_reading import find_object, find_text, find_texts, object_or_empty
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.impl.atlas.mapping.columns import (
    Labelled,
    column_entity,
    field_of,
    key_columns,
    shown,
)
from lumos.core.platform.impl.atlas.mapping.names import shown_text
from lumos.core.platform.impl.atlas.mapping.own_values import OWN, own_given, own_values
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET, STASH, attributes_of
from lumos.core.platform.stash import StashedDataset, packed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import Owner
    from lumos.core.models.types import Field
    from lumos.core.platform.impl.atlas.mapping.own_values import BusinessAttributes

_TEXTS = ("name", "platform", "kind", "environment", "database", "namespace", "format")
_WRITTEN = {"description": "description", "business_context": "businessContext", "sla": "sla"}


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
    dataset: LumosDataset,
    *,
    business: BusinessAttributes = MappingProxyType({}),
    undefined: Collection[str] = frozenset(),
) -> DatasetEntity:
    """Return the entities of a dataset, the first of them with the stash.

    Args:
        dataset: what is to be written.
        business: the business attributes that the server has for datasets; values of others
            cannot be attached there.
        undefined: tags that the server has no classification for, which stay in the stash.
    """
    plain = with_parts(dataset, lineage=DatasetLineage())
    head = _head(plain, business)
    keys = {*dataset.schema.primary_key}
    columns = tuple(
        _with_defined(
            column_entity(field, dataset.urn, position=position, is_key=field.name in keys),
            undefined,
        )
        for position, field in enumerate(dataset.schema.fields)
    )
    fields = [field_of(each.entity, each.tags, terms=each.terms) for each in columns]
    labelled = _with_defined(
        Labelled(head, dataset.tags, dataset.governance.glossary_terms), undefined
    )
    flagged = key_columns(each.entity for each in columns)
    native = _native(head, DatasetParts(fields, labelled.tags, labelled.terms, flagged))
    stash = StashedDataset.of(plain, native=native).stash
    object_or_empty(head["attributes"])[STASH] = None if stash is None else packed(stash)
    return DatasetEntity(labelled, columns)


def _with_defined(part: Labelled, undefined: Collection[str]) -> Labelled:
    return part._replace(tags=tuple(tag for tag in part.tags if tag not in undefined))


def dataset_of(entity: Json, parts: DatasetParts) -> LumosDataset:
    """Return the dataset of an entity, without lineage."""
    stash = find_text(entity, "attributes", STASH)
    return StashedDataset.merged(_native(entity, parts), stash)


def tags_of(dataset: LumosDataset) -> set[str]:
    """Return the tags of a dataset and of its columns."""
    return {*dataset.tags, *(tag for field in dataset.schema.fields for tag in field.tags)}


def is_placeholder(entity: Json) -> bool:
    """Return whether an entity only stands for a dataset that lineage names."""
    return find_object(entity, "attributes").get("placeholder") is True


def _head(dataset: LumosDataset, business: BusinessAttributes) -> Json:
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
    return {**entity, **own_given(dataset, business)}


def _native(entity: Json, parts: DatasetParts) -> LumosDataset:
    """Return what an entity says of a dataset, the stash apart."""
    attributes = find_object(entity, "attributes")
    own = own_values(entity)
    schema: dict[str, object] = {"fields": tuple(parts.fields), "primary_key": tuple(parts.keys)}
    return LumosDataset.from_json(
        {
            **{name: find_text(attributes, name) for name in _TEXTS},
            "urn": attributes.get("qualifiedName"),
            "schema": schema,
            "ownership": _owners(attributes),
            "tags": tuple(parts.tags),
            "governance": {
                "domains": (*find_texts(attributes, "domains"),),
                "glossary_terms": tuple(parts.terms),
            },
            "documentation": {
                name: find_text(attributes, attribute) for name, attribute in _WRITTEN.items()
            },
            "properties": find_object(attributes, "properties"),
            "extensions": {OWN: own} if own else {},
        }
    )


def _shown_owner(owner: Owner) -> str:
    return shown_text(f"{owner.category}:{owner.type}:{owner.name}")


def _owners(attributes: Json) -> list[JsonValue]:
    """Return owners; one that was set by hand in Atlas takes the first place."""
    found: list[JsonValue] = []
    for owner in find_texts(attributes, "owners"):
        category, _, rest = owner.partition(":")
        role, _, name = rest.partition(":")
        if category in {"user", "group"} and role.strip() and name:
            found.append({category: name, "type": role})
    hand = find_text(attributes, "owner")
    first = object_or_empty(found[0]) if found else {}
    if hand and hand not in (first.get("user"), first.get("group")):
        found = [{"user": hand}, *found[1:]]
    return found
