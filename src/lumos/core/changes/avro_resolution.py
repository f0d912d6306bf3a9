"""Whether a reader with one Avro schema can resolve what was written with another."""

from __future__ import annotations

from collections.abc import Sequence

from lumos.core.changes.lattice import accepted_by
from lumos.core.models import Field, FieldType, TypeName

_PARAMETERS = ("precision", "scale", "length", "unit", "timezone")


def resolves(written: FieldType, wanted: FieldType) -> bool:
    """Return whether every value of the written type can be read as the wanted type."""
    return (wanted.nullable or not written.nullable) and resolves_type(written, wanted)


def resolves_type(written: FieldType, wanted: FieldType) -> bool:
    """Return the same for values that are not null.

    Names of records, enums and fixed types are not compared, since the canonical model has none;
    the default of an enum, which stands for symbols that a reader does not know, is known of
    fields alone.
    """
    if written.type is TypeName.UNION:
        return all(resolves_type(branch, wanted) for branch in written.branches)
    if wanted.type is TypeName.UNION:
        return any(resolves_type(written, branch) for branch in wanted.branches)
    if written.type is not wanted.type:
        return "avro" in accepted_by(written, wanted)
    match written.type:
        case TypeName.STRUCT:
            return _resolves_fields(written.fields, wanted.fields)
        case TypeName.ARRAY if written.items and wanted.items:
            return resolves(written.items, wanted.items)
        case TypeName.MAP if written.value and wanted.value and written.key and wanted.key:
            return resolves(written.value, wanted.value) and resolves(written.key, wanted.key)
        case TypeName.ENUM:
            return has_enum_default(wanted) or set(written.symbols) <= set(wanted.symbols)
        case TypeName.UNKNOWN:
            same = written.native_type == wanted.native_type
            return same or "avro" in accepted_by(written, wanted)
        case _:
            same = all(getattr(written, name) == getattr(wanted, name) for name in _PARAMETERS)
            return same or "avro" in accepted_by(written, wanted)


def aliases_of(field: Field) -> tuple[str, ...]:
    """Return the earlier names by which a reader finds the field in what was written before."""
    names = field.properties.get("aliases")
    if not isinstance(names, (list, tuple)):
        return ()
    return tuple(name for name in names if isinstance(name, str))


def has_enum_default(node: FieldType) -> bool:
    """Return whether a reader takes its default for symbols that it does not know."""
    return isinstance(node, Field) and "enum_default" in node.properties


def _resolves_fields(written: Sequence[Field], wanted: Sequence[Field]) -> bool:
    before = {field.name: field for field in written}
    for field in wanted:
        names = (field.name, *aliases_of(field))
        source = next((before[name] for name in names if name in before), None)
        if not (field.default is not None if source is None else resolves(source, field)):
            return False
    return True
