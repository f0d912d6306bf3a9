"""Canonical types of the spellings that dbt's adapters use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lumos.core.models.types import DEEPEST_TYPE, TypeName
from lumos.core.platform.type_spelling import TypeParts
from lumos.core.platform.type_spelling import type_parts as parts_of_spelling

_EVERYWHERE: Final[Mapping[str, TypeName]] = {
    "bpchar": TypeName.STRING,
    "name": TypeName.STRING,
    "citext": TypeName.STRING,
    "time without time zone": TypeName.TIME,
    "time with time zone": TypeName.TIME,
    "timetz": TypeName.TIME,
    "interval": TypeName.DURATION,
    "bignumeric": TypeName.DECIMAL,
    "timestamp_tz": TypeName.TIMESTAMP,
    "timestamp_ltz": TypeName.TIMESTAMP,
    "timestamp_s": TypeName.TIMESTAMP_NTZ,
    "timestamp_ms": TypeName.TIMESTAMP_NTZ,
    "timestamp_ns": TypeName.TIMESTAMP_NTZ,
    "utinyint": TypeName.UINT8,
    "usmallint": TypeName.UINT16,
    "uinteger": TypeName.UINT32,
    "ubigint": TypeName.UINT64,
}
_BY_PLATFORM: Final[Mapping[str, Mapping[str, TypeName]]] = {
    "bigquery": {"timestamp": TypeName.TIMESTAMP},
    "databricks": {"timestamp": TypeName.TIMESTAMP, "interval": TypeName.UNKNOWN},
    "postgres": {"float": TypeName.DOUBLE},
    "redshift": {"float": TypeName.DOUBLE},
    "snowflake": {
        "float": TypeName.DOUBLE,
        "real": TypeName.DOUBLE,
        "float4": TypeName.DOUBLE,
        "object": TypeName.JSON,
        "fixed": TypeName.DECIMAL,
    },
    "spark": {"timestamp": TypeName.TIMESTAMP},
    "trino": {"json": TypeName.JSON},
}
"""Names that mean something else on one platform than on most."""
_TIME_PRECISION: Final = re.compile(r"^(time(?:stamp)?(?:tz|_ntz|_ltz|_tz)?)\s*\(\d\)")
_NO_ITEMS: Final = {"type": TypeName.UNKNOWN}


def type_parts(native: str, *, platform: str) -> TypeParts:
    """Return the parts of a field that tell its type; one that is not known is UNKNOWN."""
    return {**_parts(native.strip(), platform=platform, depth=1), "native_type": native}


def _parts(text: str, *, platform: str, depth: int) -> TypeParts:
    if text.endswith("[]") and depth < DEEPEST_TYPE:
        items = _parts(text[:-2].rstrip(), platform=platform, depth=depth + 1)
        return {"type": TypeName.ARRAY, "items": items}
    name = _TIME_PRECISION.sub(r"\1", text.lower())
    known = _BY_PLATFORM.get(platform, {}).get(name) or _EVERYWHERE.get(name)
    if known is not None:
        return {"type": known}
    if name == "array":  # of Snowflake: items of any type
        return {"type": TypeName.ARRAY, "items": _NO_ITEMS}
    parts = parts_of_spelling(name if name != text.lower() else text)
    if parts["type"] is not TypeName.UNKNOWN or depth == 1:
        return {key: value for key, value in parts.items() if key != "native_type"}
    return {"type": TypeName.UNKNOWN, "native_type": text}
