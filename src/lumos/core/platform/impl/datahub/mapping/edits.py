"""What people wrote in DataHub itself, which comes before what was ingested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_list, as_object, as_objects, list_at, object_at, objects_at

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_LABELS: Final = (("globalTags", "tags"), ("glossaryTerms", "terms"))


def with_edits(metadata: Mapping[str, JsonValue], edited: JsonValue) -> list[JsonValue]:
    """Return the schema fields with what people wrote in place of what was ingested."""
    rows = list_at(metadata, "fields")
    infos = edited.get("editableSchemaFieldInfo") if isinstance(edited, dict) else None
    if not infos:
        return rows
    by_path = {str(info.get("fieldPath")): info for info in as_objects(infos, "infos")}
    return [_edited_row(as_object(row, "row"), by_path) for row in rows]


def _edited_row(row: Json, infos: Mapping[str, Json]) -> JsonValue:
    info = infos.get(str(row["fieldPath"]))
    if info is None:
        return row
    whole = dict(row)
    if info.get("description"):
        whole["description"] = info["description"]
    for name, members in _LABELS:
        added = object_at(info, name).get(members)
        if isinstance(added, list) and added:
            known = object_at(row, name).get(members)
            whole[name] = {members: [*as_list(known, "known"), *added]}
    return whole


def follow(
    aspects: Json, document: Mapping[str, JsonValue], plain: Mapping[str, JsonValue]
) -> None:
    """Bring what people wrote up to what the dataset says now, as it comes first on reading."""
    edited = aspects.get("editableDatasetProperties")
    if isinstance(edited, dict) and edited.get("description"):
        text = object_at(document, "documentation").get("description")
        aspects["editableDatasetProperties"] = {**edited, "description": text or ""}
    columns = aspects.get("editableSchemaMetadata")
    infos = columns.get("editableSchemaFieldInfo") if isinstance(columns, dict) else None
    if isinstance(columns, dict) and isinstance(infos, list):
        schema = object_at(plain, "schemaMetadata")
        rows = {str(row["fieldPath"]): row for row in objects_at(schema, "fields")}
        followed = [_followed(info, rows) for info in as_objects(infos, "infos")]
        aspects["editableSchemaMetadata"] = {
            **columns,
            "editableSchemaFieldInfo": [*followed],
        }


def _followed(info: Json, rows: Mapping[str, Json]) -> Json:
    row = rows.get(str(info.get("fieldPath")))
    if row is None:
        return info
    whole = dict(info)
    if info.get("description"):
        whole["description"] = row.get("description") or ""
    for name, members in _LABELS:
        labels = info.get(name)
        if isinstance(labels, dict) and isinstance(labels.get(members), list):
            said = object_at(row, name).get(members)
            key = "tag" if members == "tags" else "urn"
            known = {each[key] for each in as_objects(said, "said")}
            given = objects_at(labels, members)
            whole[name] = {**labels, members: [each for each in given if each[key] in known]}
    return whole
