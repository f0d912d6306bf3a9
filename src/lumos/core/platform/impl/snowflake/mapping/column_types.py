"""The canonical types of columns, from what INFORMATION_SCHEMA says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lumos.core.models.types import TypeName

_TYPES: Final[Mapping[str, TypeName]] = {
    "NUMBER": TypeName.DECIMAL,
    "DECFLOAT": TypeName.UNKNOWN,
    "FLOAT": TypeName.DOUBLE,
    "TEXT": TypeName.STRING,
    "BINARY": TypeName.BINARY,
    "BOOLEAN": TypeName.BOOLEAN,
    "DATE": TypeName.DATE,
    "TIME": TypeName.TIME,
    "TIMESTAMP_NTZ": TypeName.TIMESTAMP_NTZ,
    "TIMESTAMP_LTZ": TypeName.TIMESTAMP,
    "TIMESTAMP_TZ": TypeName.TIMESTAMP,
    "VARIANT": TypeName.JSON,
    "OBJECT": TypeName.JSON,
    "GEOGRAPHY": TypeName.GEOMETRY,
    "GEOMETRY": TypeName.GEOMETRY,
}
_UNBOUNDED: Final = {"TEXT": 16_777_216, "BINARY": 8_388_608}
"""The lengths that a column has to which nobody gave one, or more than that."""
_OF_ANYTHING: Final = {"type": TypeName.JSON}


def type_parts(
    data_type: str, *, precision: int | None, scale: int | None, length: int | None
) -> dict[str, object]:
    """Return the parts of a field that tell its type; one that is not known is UNKNOWN."""
    name = data_type.upper()
    if name == "ARRAY":
        return {"type": TypeName.ARRAY, "items": _OF_ANYTHING, "native_type": name}
    parts: dict[str, object] = {"type": _TYPES.get(name, TypeName.UNKNOWN), "native_type": name}
    if name == "NUMBER" and precision is not None:
        parts |= {"precision": precision, "scale": scale or 0}
        parts["native_type"] = f"NUMBER({precision},{scale or 0})"
    elif name in ("TEXT", "BINARY") and length is not None:
        parts["native_type"] = f"{name}({length})"
        if length < _UNBOUNDED[name]:
            parts["length"] = length
    return parts
