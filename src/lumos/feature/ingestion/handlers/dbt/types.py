"""Canonical types of the spellings that dbt's adapters use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.models.types import DEEPEST_TYPE, TypeName
from lumos.core.platform.type_spelling import type_of_spelling

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

_EVERYWHERE: Final[Mapping[str, TypeName]] = {
    "bpchar": TypeName.STRING,
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
_POSTGRES: Final[Mapping[str, TypeName]] = {
    "float": TypeName.DOUBLE,
    **dict.fromkeys(("name", '"char"', "citext", "xml", "ltree", "lquery"), TypeName.STRING),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), TypeName.STRING),
    **dict.fromkeys(("tsvector", "tsquery", "jsonpath", "pg_lsn", "regclass"), TypeName.STRING),
    **dict.fromkeys(("oid", "xid", "cid"), TypeName.UINT32),
    "xid8": TypeName.UINT64,
    **dict.fromkeys(
        ("point", "line", "lseg", "box", "path", "polygon", "circle"), TypeName.GEOMETRY
    ),
}
_BY_PLATFORM: Final[Mapping[str, Mapping[str, TypeName]]] = {
    "bigquery": {"timestamp": TypeName.TIMESTAMP},
    "databricks": {"timestamp": TypeName.TIMESTAMP, "interval": TypeName.UNKNOWN},
    "postgres": _POSTGRES,
    "redshift": {"float": TypeName.DOUBLE},
    "snowflake": {
        "float": TypeName.DOUBLE,
        "real": TypeName.DOUBLE,
        "float4": TypeName.DOUBLE,
        "object": TypeName.JSON,
        "fixed": TypeName.DECIMAL,
    },
    "spark": {"timestamp": TypeName.TIMESTAMP},
}
"""Names that mean something else on one platform, or nothing on the others."""
_TIME: Final = re.compile(
    r"(?P<name>time|timestamp|interval)(?P<tz>tz|_ntz|_ltz|_tz)?"
    r"(?:\s*\((?P<digits>\d)\))?(?P<zone>\s+with(?:out)? time zone)?\Z"
)
_MILLISECONDS: Final = 3
"""The digits of a second that a unit holds."""


def dbt_type(native: str, *, platform: str) -> Json:
    """Return the parts of a field that state its type; one that is not known is UNKNOWN."""
    return {**_parts(native.strip(), platform=platform, depth=1), "native_type": native}


def _parts(text: str, *, platform: str, depth: int) -> Json:
    if text.endswith("[]") and depth < DEEPEST_TYPE:
        items = _parts(text[:-2].rstrip(), platform=platform, depth=depth + 1)
        return {"type": TypeName.ARRAY, "items": items}
    name = text.lower()
    time = _TIME.match(name)
    if time is not None:
        name = f"{time['name']}{time['tz'] or ''}{time['zone'] or ''}"
        if platform == "postgres":
            return _time_of_postgres(time)
    known = _BY_PLATFORM.get(platform, {}).get(name) or _EVERYWHERE.get(name)
    if known is not None:
        return {"type": known}
    if name == "array":  # of Snowflake: items of any type
        return {"type": TypeName.ARRAY, "items": {"type": TypeName.UNKNOWN}}
    parts = type_of_spelling(name if time else text)
    if parts["type"] is TypeName.UNKNOWN:
        return {"type": TypeName.UNKNOWN, "native_type": text}
    return {key: value for key, value in parts.items() if key != "native_type"}


def _time_of_postgres(time: re.Match[str]) -> Json:
    """Return a time type as the source `postgres` names it, so that both agree."""
    digits = time["digits"]
    unit = "us" if digits is None or int(digits) > _MILLISECONDS else "ms" if int(digits) else "s"
    if time["name"] != "timestamp":
        kind = TypeName.TIME if time["name"] == "time" else TypeName.DURATION
        return {"type": kind, "unit": unit}
    if time["tz"] == "tz" or (time["zone"] or "").endswith("with time zone"):
        return {"type": TypeName.TIMESTAMP, "unit": unit, "timezone": "UTC"}
    return {"type": TypeName.TIMESTAMP_NTZ, "unit": unit}
