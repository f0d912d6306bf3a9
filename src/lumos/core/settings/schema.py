"""The JSON Schema of settings files, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.json_reading import as_object

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.settings.models import ProjectSettings

_REFERENCE: dict[str, JsonValue] = {"type": "string", "pattern": r"\$\{[A-Za-z_]"}
_NOT_TEXT = frozenset({"boolean", "integer", "number"})


def settings_json_schema(model: type[ProjectSettings]) -> dict[str, JsonValue]:
    """Return the JSON Schema of every accepted form of a settings file."""
    schema: dict[str, JsonValue] = model.model_json_schema(
        ref_template="#/$defs/{model}", mode="validation"
    )
    definitions = as_object(schema.pop("$defs"), "$defs")
    definitions[model.__name__] = schema
    settings: dict[str, JsonValue] = {"$ref": f"#/$defs/{model.__name__}"}
    wrapped: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"lumos_config": settings},
        "required": ["lumos_config"],
        "additionalProperties": False,
    }
    listed: dict[str, JsonValue] = {"type": "array", "items": {"$ref": "#/$defs/SourceEntry"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lumos settings",
        "anyOf": [settings, wrapped, listed],
        "$defs": _with_references(definitions),
    }


def _with_references(value: JsonValue) -> JsonValue:
    """Allow `${VAR}` wherever a number or a boolean is asked for."""
    if isinstance(value, list):
        return [_with_references(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _with_references(item) for key, item in value.items()}
    kind = inner.get("type")
    if not isinstance(kind, str) or kind not in _NOT_TEXT:  # a property may be called `type`
        return inner
    about = [key for key in inner if key in {"title", "description", "default"}]
    described: dict[str, JsonValue] = {key: inner.pop(key) for key in about}
    return {**described, "anyOf": [inner, dict(_REFERENCE)]}
