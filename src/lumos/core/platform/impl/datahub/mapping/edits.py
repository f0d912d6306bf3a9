"""What people wrote in DataHub itself, which comes before what was ingested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_LABELS: Final = (("globalTags", "tags"), ("glossaryTerms", "terms"))


def with_edits(metadata: Mapping[str, JsonValue], edited: JsonValue) -> list[JsonValue]:
    """Return the schema fields with what people wrote in place of what was ingested."""
    rows = cast("list[JsonValue]", metadata.get("fields") or [])
    infos = edited.get("editableSchemaFieldInfo") if isinstance(edited, dict) else None
    if not infos:
        return rows
    by_path = {str(info.get("fieldPath")): info for info in cast("list[Json]", infos)}
    return [_edited_row(cast("Json", row), by_path) for row in rows]


def _edited_row(row: Json, infos: Mapping[str, Json]) -> JsonValue:
    info = infos.get(str(row["fieldPath"]))
    if info is None:
        return row
    whole = dict(row)
    if info.get("description"):
        whole["description"] = info["description"]
    for name, members in _LABELS:
        added = cast("Json", info.get(name) or {}).get(members)
        if isinstance(added, list) and added:
            known = cast("Json", row.get(name) or {}).get(members)
            whole[name] = {members: [*cast("list[JsonValue]", known or []), *added]}
    return whole


def follow(
    aspects: Json, document: Mapping[str, JsonValue], plain: Mapping[str, JsonValue]
) -> None:
    """Bring what people wrote up to what the dataset says now, as it comes first on reading."""
    edited = aspects.get("editableDatasetProperties")
    if isinstance(edited, dict) and edited.get("description"):
        text = cast("Json", document.get("documentation") or {}).get("description")
        aspects["editableDatasetProperties"] = {**edited, "description": text or ""}
    columns = aspects.get("editableSchemaMetadata")
    infos = columns.get("editableSchemaFieldInfo") if isinstance(columns, dict) else None
    if isinstance(columns, dict) and isinstance(infos, list):
        schema = cast("Json", plain.get("schemaMetadata") or {})
        rows = {
            str(row["fieldPath"]): row for row in cast("list[Json]", schema.get("fields") or [])
        }
        followed = [_followed(info, rows) for info in cast("list[Json]", infos)]
        aspects["editableSchemaMetadata"] = {
            **columns,
            "editableSchemaFieldInfo": cast("JsonValue", followed),
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
            said = cast("Json", row.get(name) or {}).get(members)
            key = "tag" if members == "tags" else "urn"
            known = {each[key] for each in cast("list[Json]", said or [])}
            given = cast("list[Json]", labels[members])
            whole[name] = {**labels, members: [each for each in given if each[key] in known]}
    return whole
