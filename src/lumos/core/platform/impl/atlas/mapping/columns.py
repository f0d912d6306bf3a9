"""Columns: a field on one side, a column entity on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from lumos.core.json_reading import find_object, find_text
from lumos.core.models.types import Field, TypeName
from lumos.core.platform.impl.atlas.mapping.names import column_key, shown_text
from lumos.core.platform.impl.atlas.mapping.typedefs import COLUMN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_IN_NEED = frozenset({TypeName.ARRAY, TypeName.MAP, TypeName.UNION, TypeName.ENUM})


class Labelled(NamedTuple):
    """An entity, with the tags and terms that it is to carry by their canonical names."""

    entity: Json
    tags: tuple[str, ...]
    terms: tuple[str, ...]


def column_entity(field: Field, urn: str, *, position: int, is_key: bool) -> Labelled:
    """Return the entity of a field."""
    attributes: Json = {
        "qualifiedName": column_key(urn, field.name),
        "name": shown_text(field.name),
        "description": shown(field.description),
        "dataType": shown_text(field.signature()),
        "nativeType": shown(field.native_type),
        "defaultValue": shown(field.default),
        "isNullable": field.nullable,
        "isPersonal": field.pii,
        "isPrimaryKey": is_key,
        "position": position,
    }
    entity: Json = {"typeName": COLUMN, "attributes": attributes}
    return Labelled(entity, field.tags, field.glossary_terms)


def field_of(entity: Json, tags: Iterable[str], *, terms: Iterable[str]) -> Field:
    """Return what a column entity says of a field."""
    attributes = find_object(entity, "attributes")
    return Field.from_json(
        {
            "name": _name(attributes),
            "description": find_text(attributes, "description"),
            "type": _type_of(attributes.get("dataType")),
            "native_type": find_text(attributes, "nativeType"),
            "default": find_text(attributes, "defaultValue"),
            "nullable": attributes.get("isNullable") is not False,
            "pii": attributes.get("isPersonal") is True,
            "tags": [*tags],
            "glossary_terms": [*terms],
        }
    )


def key_columns(columns: Iterable[Json]) -> list[str]:
    """Return the names of the columns that are marked as the primary key."""
    found = (find_object(column, "attributes") for column in columns)
    return [_name(each) for each in found if each.get("isPrimaryKey") is True]


def shown(value: str | None) -> str | None:
    """Return text as Atlas takes it, and nothing for none."""
    return (shown_text(value) or None) if value is not None else None


def _name(attributes: Json) -> str:
    """Return the name of a column: that of its key, unless it was renamed by hand."""
    given = str(attributes.get("name"))
    original = unquote(str(attributes.get("qualifiedName")).rpartition("#")[2])
    return original if shown_text(original) == given else given


def _type_of(signature: JsonValue | None) -> TypeName:
    """Return the type of a signature without parameters."""
    plain = TypeName.__members__.get(signature) if isinstance(signature, str) else None
    return TypeName.UNKNOWN if plain is None or plain in _IN_NEED else plain
