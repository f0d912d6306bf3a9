"""Merges the schemas of a dataset's files into one, and records where the files drift apart.

The result depends on the schemas, how many files have each and when, never on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypedDict

from lumos.core.changes.lattice import NESTED
from lumos.core.changes.text import member_path
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName
from lumos.core.models.base import canonical_json
from lumos.feature.discovery.common_types import common_type
from lumos.feature.discovery.drift import NOWHERE, Drift, DriftKind, FileSpan, span_of


@dataclass(frozen=True)
class SchemaVariant:
    """A schema that some files of a dataset have."""

    schema: Schema
    files: int = 1
    newest: int = 0
    """When the newest of them was written, in any unit; the newest leads the order of fields."""
    span: FileSpan = NOWHERE
    """When and where they were written."""
    fingerprint: str = ""

    @cached_property
    def rank(self) -> tuple[int, int, bytes]:
        return -self.newest, -self.files, canonical_json(self.schema.to_json())


@dataclass(frozen=True)
class MergedSchema:
    """One schema for all files of a dataset."""

    schema: Schema
    drift: tuple[Drift, ...] = ()
    variants: tuple[SchemaVariant, ...] = field(default=(), compare=False)
    """The schemas that were merged, the newest first; empty where there is no drift."""


def merge_schemas(variants: Iterable[SchemaVariant]) -> MergedSchema:
    """Merge the distinct schemas of one dataset's files.

    Fields are joined by name, in the order of the newest schema; those that only older files have
    follow. A field that some files lack is nullable. The merged type holds the values of all files:
    types that go together are widened, and those that do not become STRING, or JSON where one of
    them is nested, with the drift recorded. A file that shows no field at all, such as one without
    rows, says nothing.
    """
    ranked = sorted(variants, key=lambda variant: variant.rank)
    with_fields = [variant for variant in ranked if variant.schema.fields] or ranked
    if not with_fields:
        return MergedSchema(Schema())
    schemas = [variant.schema for variant in with_fields]
    first, *others = schemas
    if all(other == first for other in others):
        return MergedSchema(first)
    merge = _Merge()
    fields = merge.fields(
        [_Members(variant.schema.fields, variant) for variant in with_fields], path=""
    )
    schema = Schema(
        fields=fields,
        positional=any(schema.positional for schema in schemas),
        primary_key=first.primary_key if _agree(s.primary_key for s in schemas) else (),
        unique_keys=first.unique_keys if _agree(s.unique_keys for s in schemas) else (),
        foreign_keys=first.foreign_keys if _agree(s.foreign_keys for s in schemas) else (),
    )
    drift = tuple(sorted(merge.drift, key=lambda each: each.rank))
    return MergedSchema(schema, drift, variants=tuple(with_fields) if drift else ())


def _agree(values: Iterable[object]) -> bool:
    return len(set(values)) == 1


@dataclass(frozen=True)
class _Members:
    """The fields of one struct, or of one schema, as some files have them."""

    fields: tuple[Field, ...]
    variant: SchemaVariant


@dataclass(frozen=True)
class _Seen:
    """A field, item, key or value as some files have it."""

    node: FieldType
    variant: SchemaVariant

    @property
    def files(self) -> int:
        return self.variant.files

    @cached_property
    def kind(self) -> str:
        return _kind(self.node)


class _TypePart(TypedDict, total=False):
    type: TypeName
    native_type: str | None
    precision: int | None
    scale: int | None
    length: int | None
    unit: TimeUnit | None
    timezone: str | None
    symbols: tuple[str, ...]
    fields: tuple[Field, ...]
    items: FieldType
    key: FieldType
    value: FieldType
    branches: tuple[FieldType, ...]


@dataclass
class _Merge:
    """One merge; it collects the drift on its way."""

    drift: list[Drift] = field(default_factory=list)

    def fields(self, variants: Sequence[_Members], *, path: str) -> tuple[Field, ...]:
        """Merge structs that are given in the order that decides the order of their fields."""
        found: dict[str, list[_Seen]] = {}
        for variant in variants:
            for member in variant.fields:
                found.setdefault(member.name, []).append(_Seen(member, variant.variant))
        holders = [variant.variant for variant in variants]
        return tuple(
            self._field(seen, path=member_path(path, name), holders=holders)
            for name, seen in found.items()
        )

    def _field(
        self, seen: Sequence[_Seen], *, path: str, holders: Sequence[SchemaVariant]
    ) -> Field:
        members = [each.node for each in seen if isinstance(each.node, Field)]
        first = members[0]
        having = {id(each.variant) for each in seen}
        missing = [variant for variant in holders if id(variant) not in having]
        if missing:
            self._drift(path, DriftKind.MISSING, apart=missing, of=holders)
        return Field(
            name=first.name,
            nullable=bool(missing) or any(member.nullable for member in members),
            description=next((m.description for m in members if m.description), None),
            pii=any(member.pii for member in members),
            tags=tuple(tag for member in members for tag in member.tags),
            glossary_terms=tuple(term for member in members for term in member.glossary_terms),
            default=first.default,
            properties=first.properties,
            **self._type(seen, path=path),
        )

    def _node(self, seen: Sequence[_Seen], *, path: str) -> FieldType:
        nodes = [each.node for each in seen]
        return FieldType(
            nullable=any(node.nullable for node in nodes),
            description=next((node.description for node in nodes if node.description), None),
            **self._type(seen, path=path),
        )

    def _type(self, seen: Sequence[_Seen], *, path: str) -> _TypePart:
        known = [each for each in seen if each.node.type is not TypeName.UNKNOWN] or list(seen)
        kinds: dict[str, list[_Seen]] = {}
        for each in known:
            kinds.setdefault(each.kind, []).append(each)
        most_common_first = sorted(kinds.values(), key=_commonness)
        result = _common([group[0].node for group in most_common_first])
        usual = most_common_first[0][0].kind
        if result is None:  # those that differ from most files are named
            result = _text_for([each.node for each in known])
            drift, apart = DriftKind.CONFLICT, [each for each in known if each.kind != usual]
        else:
            drift = DriftKind.WIDENED
            apart = [each for each in known if each.kind != _kind(result)]
        if apart:
            types = (_kind(result), *sorted({each.kind for each in apart}))
            of = [each.variant for each in known]
            files = [each.variant for each in apart]
            self._drift(path, drift, apart=files, of=of, types=types, usual=usual)
        return self._parts(result, known, path=path)

    def _drift(
        self,
        path: str,
        kind: DriftKind,
        *,
        apart: Sequence[SchemaVariant],
        of: Sequence[SchemaVariant],
        types: tuple[str, ...] = (),
        usual: str = "",
    ) -> None:
        drift = Drift(
            path,
            kind,
            files=sum(variant.files for variant in apart),
            of=sum(variant.files for variant in of),
            types=types,
            usual=usual if kind is DriftKind.CONFLICT else "",
            span=span_of(variant.span for variant in apart),
        )
        self.drift.append(drift)

    def _parts(self, result: FieldType, accepted: Sequence[_Seen], *, path: str) -> _TypePart:
        kind = _kind(result)
        natives = [each.node.native_type for each in accepted if each.kind == kind]
        parts: _TypePart = {"type": result.type, "native_type": next(iter(natives), None)}
        match result.type:
            case TypeName.STRUCT:
                structs = [_Members(s.node.fields, s.variant) for s in accepted]
                parts["fields"] = self.fields(structs, path=path)
            case TypeName.ARRAY:
                parts["items"] = self._node(_inner(accepted, "items"), path=f"{path}[]")
            case TypeName.MAP:
                parts["key"] = self._node(_inner(accepted, "key"), path=f"{path}{{key}}")
                parts["value"] = self._node(_inner(accepted, "value"), path=f"{path}{{value}}")
            case TypeName.UNION:
                parts["branches"] = self._branches(accepted, path=path)
            case _:
                parts |= {
                    "precision": result.precision,
                    "scale": result.scale,
                    "length": result.length,
                    "unit": result.unit,
                    "timezone": result.timezone,
                    "symbols": result.symbols,
                }
        return parts

    def _branches(self, accepted: Sequence[_Seen], *, path: str) -> tuple[FieldType, ...]:
        """Join the branches of unions; those of one kind are merged into one.

        A union with two branches of one kind keeps them as they are, since it is unknown which
        branch of another union either of them is.
        """
        found: dict[str, list[_Seen]] = {}
        for union in accepted:
            branches = [_Seen(b, union.variant) for b in union.node.branches]
            if len({branch.kind for branch in branches}) < len(branches):
                return union.node.branches
            for branch in branches:
                found.setdefault(branch.kind, []).append(branch)
        return tuple(self._node(seen, path=f"{path}<{kind}>") for kind, seen in found.items())


def _common(nodes: Sequence[FieldType]) -> FieldType | None:
    """Return a type for the values of all nodes; None where some do not go together."""
    result: FieldType | None = nodes[0]
    for node in nodes[1:]:
        result = common_type(result, node) if result else None
    return result


def _text_for(nodes: Sequence[FieldType]) -> FieldType:
    """Return the type that holds any value as text; as JSON where some are more than one value."""
    structured = any(node.type in NESTED or node.type is TypeName.JSON for node in nodes)
    return FieldType(type=TypeName.JSON if structured else TypeName.STRING)


def _kind(node: FieldType) -> str:
    """Return what must be equal for two types before their members are looked at."""
    return node.type.value if node.type in NESTED else node.signature()


def _commonness(group: Sequence[_Seen]) -> tuple[int, int, str]:
    files = sum(each.files for each in group)
    return -files, -max(each.variant.newest for each in group), group[0].kind


def _inner(seen: Sequence[_Seen], name: str) -> list[_Seen]:
    return [
        _Seen(node, each.variant)
        for each in seen
        if isinstance(node := getattr(each.node, name), FieldType)
    ]
