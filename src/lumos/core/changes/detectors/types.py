"""Differences between two types: which rule says whether the values still fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from lumos.core.changes.avro_resolution import resolves_type
from lumos.core.changes.finding import Finding
from lumos.core.changes.lattice import COARSEST_FIRST, NESTED, accepted_by, widens
from lumos.core.changes.text import listed
from lumos.core.models import FieldType, TypeName
from lumos.core.models.dataset import contract_of_type
from lumos.core.models.types import PARAMETERS

if TYPE_CHECKING:
    from pydantic import JsonValue

_TYPED = ("native_type", *sorted({name for names in PARAMETERS.values() for name in names}))
_ZONES = frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ})
_TEXTS = frozenset({TypeName.STRING, TypeName.ENUM})


def type_text(node: FieldType) -> str:
    """Return a type as people read it, the same whatever the order its members are listed in."""
    match node.type:
        case TypeName.STRUCT:
            members = sorted(f"{field.name}: {type_text(field)}" for field in node.fields)
            return f"STRUCT<{', '.join(members)}>"
        case TypeName.ARRAY if node.items:
            return f"ARRAY<{type_text(node.items)}>"
        case TypeName.MAP if node.key and node.value:
            return f"MAP<{type_text(node.key)}, {type_text(node.value)}>"
        case TypeName.UNION:
            return f"UNION<{', '.join(sorted(type_text(branch) for branch in node.branches))}>"
        case TypeName.UNKNOWN if node.native_type:
            return f"UNKNOWN({node.native_type})"
        case _:
            return node.signature()


def leaf_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    """Yield how a type changed, unless both sides are nested types of the same name."""
    if old.type is new.type is TypeName.ENUM:
        yield from _symbol_findings(old, new, path)
        return
    rule = _rule_between(old, new) if old.type is not new.type else _rule_within(old, new)
    if rule:
        yield Finding(
            rule,
            path,
            old=type_text(old),
            new=type_text(new),
            passes_in=_accepting_formats(old, new),
            payload=_parameters(new),
        )


def contract_json(node: FieldType) -> dict[str, JsonValue]:
    """Return all that the contract says of a field or a type."""
    return contract_of_type(node.to_json())


def _accepting_formats(old: FieldType, new: FieldType) -> tuple[str, ...]:
    formats = {name for name in accepted_by(old, new) if name != "avro"}
    return tuple(sorted({*formats, "avro"} if resolves_type(old, new) else formats))


def _parameters(node: FieldType) -> JsonValue:
    """Return the type with its parameters, unless its text says it all."""
    if type_text(node) == node.type.value:
        return None
    contract = contract_json(node)
    return {name: contract[name] for name in ("type", *_TYPED) if name in contract}


def _rule_between(old: FieldType, new: FieldType) -> str:
    """Classify a change from one type name to another."""
    names = {old.type, new.type}
    if names == _ZONES:
        return "timestamp.tz.changed"
    if names == _TEXTS:
        return _rule_of_enumeration(old, new)
    if TypeName.UNKNOWN not in names and names & NESTED:
        return "shape.changed"
    if widens(old, new):
        return "type.widened"
    return "type.narrowed" if widens(new, old) else "type.changed"


def _rule_of_enumeration(old: FieldType, new: FieldType) -> str:
    enumeration, text = (old, new) if old.type is TypeName.ENUM else (new, old)
    longest = max(map(len, enumeration.symbols), default=0)
    if text.length is not None and longest > text.length:
        return "type.changed"
    return "enum.dropped" if enumeration is old else "enum.introduced"


def _rule_within(old: FieldType, new: FieldType) -> str | None:
    """Classify a change of the parameters of one and the same type."""
    compare = _PARAMETER_RULES.get(old.type)
    return compare(old, new) if compare else None


def _decimal_rule(old: FieldType, new: FieldType) -> str | None:
    if (old.precision, old.scale) == (new.precision, new.scale):
        return None
    if old.precision is None or new.precision is None:
        return "decimal.parameters.changed"
    whole = (new.precision - (new.scale or 0)) - (old.precision - (old.scale or 0))
    fraction = (new.scale or 0) - (old.scale or 0)
    match (_sign(whole), _sign(fraction)):
        case (1, 0):
            return "decimal.precision.up"
        case (-1, 0):
            return "decimal.precision.down"
        case (0 | 1, 1):
            return "decimal.precision_and_scale.up"
        case (0 | -1, -1):
            return "decimal.precision_and_scale.down"
        case _:
            return "decimal.parameters.changed"


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _length_rule(old: FieldType, new: FieldType) -> str | None:
    if old.length == new.length:
        return None
    longer = new.length is None or (old.length is not None and new.length > old.length)
    return "varchar.length.up" if longer else "varchar.length.down"


def _time_rule(old: FieldType, new: FieldType) -> str | None:
    if old.timezone != new.timezone:
        return "timestamp.tz.changed"
    if old.unit is new.unit:
        return None
    if old.unit is None or new.unit is None:
        return "timestamp.unit.changed"
    finer = COARSEST_FIRST.index(new.unit) > COARSEST_FIRST.index(old.unit)
    return "timestamp.unit.finer" if finer else "timestamp.unit.coarser"


def _unknown_rule(old: FieldType, new: FieldType) -> str | None:
    return None if old.native_type == new.native_type else "type.changed"


_PARAMETER_RULES: Mapping[TypeName, Callable[[FieldType, FieldType], str | None]] = (
    MappingProxyType(
        {
            TypeName.DECIMAL: _decimal_rule,
            TypeName.STRING: _length_rule,
            TypeName.BINARY: _length_rule,
            TypeName.TIME: _time_rule,
            TypeName.TIMESTAMP: _time_rule,
            TypeName.TIMESTAMP_NTZ: _time_rule,
            TypeName.DURATION: _time_rule,
            TypeName.UNKNOWN: _unknown_rule,
        }
    )
)


def _symbol_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    before, after, payload = set(old.symbols), set(new.symbols), _parameters(new)
    lost = [symbol for symbol in old.symbols if symbol not in after]
    won = [symbol for symbol in new.symbols if symbol not in before]
    if lost:
        yield Finding(
            "enum.symbol.removed", path, old=[*lost], subject=listed(lost), payload=payload
        )
    if won:
        yield Finding("enum.symbol.added", path, new=[*won], subject=listed(won), payload=payload)
    kept_before = [symbol for symbol in old.symbols if symbol in after]
    kept_after = [symbol for symbol in new.symbols if symbol in before]
    if kept_before != kept_after:
        yield Finding(
            "enum.reordered", path, old=[*kept_before], new=[*kept_after], payload=payload
        )
