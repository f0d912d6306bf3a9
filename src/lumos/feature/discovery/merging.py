"""Merges the schemas of a dataset's files into one, and records where the files drift apart.

The result depends on the schemas, how many files have each and when, never on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypedDict

from pydantic import JsonValue

from lumos.core.changes.lattice import NESTED
from lumos.core.changes.text import member_path, quoted
from lumos.core.models import Field, FieldType, Schema, TimeUnit, TypeName
from lumos.core.models.base import canonical_json
from lumos.feature.discovery.common_types import common_type


@dataclass(frozen=True)
class SchemaVariant:
    """A schema that some files of a dataset have."""

    schema: Schema
    files: int = 1
    newest: int = 0
    """When the newest of them was written, in any unit; the newest leads the order of fields."""

    @cached_property
    def rank(self) -> tuple[int, int, bytes]:
        return -self.newest, -self.files, canonical_json(self.schema.to_json())


class DriftKind(StrEnum):
    """How files of one dataset differ."""

    MISSING = "missing"
    WIDENED = "widened"
    CONFLICT = "conflict"


@dataclass(frozen=True, order=True)
class Drift:
    """A field in which the files of one dataset differ."""

    path: str
    kind: DriftKind
    files: int
    """How many files differ from the merged schema."""
    of: int
    """How many files could have held the field."""
    types: tuple[str, ...] = ()
    """The types found; the first is the one in the merged schema."""

    @property
    def message(self) -> str:
        """The drift as people read it."""
        where = quoted(self.path)
        if self.kind is DriftKind.MISSING:
            return f"field {where} is missing in {self.files} of {self.of} files"
        chosen, *others = self.types
        found = ", ".join(others)
        if self.kind is DriftKind.WIDENED:
            return (
                f"field {where} is {found} in {self.files} of {self.of} files; {chosen} holds all"
            )
        return f"field {where} is {found} in {self.files} of {self.of} files, but {chosen} in most"

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "path": self.path,
            "kind": self.kind.value,
            "files": self.files,
            "of": self.of,
            **({"types": list(self.types)} if self.types else {}),
        }


@dataclass(frozen=True)
class MergedSchema:
    """One schema for all files of a dataset."""

    schema: Schema
    drift: tuple[Drift, ...] = ()


def merge_schemas(variants: Iterable[SchemaVariant]) -> MergedSchema:
    """Merge the distinct schemas of one dataset's files.

    Fields are joined by name, in the order of the newest schema; those that only older files have
    follow. A field that some files lack is nullable. Types that go together are widened; where they
    do not, the type of most files stands and the others are recorded as drift. A file that shows no
    field at all, such as one without rows, says nothing.
    """
    ranked = sorted(variants, key=lambda variant: variant.rank)
    telling = [variant for variant in ranked if variant.schema.fields] or ranked
    if not telling:
        return MergedSchema(Schema())
    schemas = [variant.schema for variant in telling]
    first, *others = schemas
    if all(other == first for other in others):
        return MergedSchema(first)
    merge = _Merge()
    fields = merge.fields(
        [_Members(variant.schema.fields, variant.files, variant.newest) for variant in telling],
        path="",
    )
    schema = Schema(
        fields=fields,
        positional=any(schema.positional for schema in schemas),
        primary_key=first.primary_key if _agree(s.primary_key for s in schemas) else (),
        unique_keys=first.unique_keys if _agree(s.unique_keys for s in schemas) else (),
        foreign_keys=first.foreign_keys if _agree(s.foreign_keys for s in schemas) else (),
    )
    return MergedSchema(schema, tuple(sorted(merge.drift)))


def _agree(values: Iterable[object]) -> bool:
    return len(set(values)) == 1


@dataclass(frozen=True)
class _Members:
    """The fields of one struct, or of one schema, as some files have them."""

    fields: tuple[Field, ...]
    files: int
    newest: int


@dataclass(frozen=True)
class _Seen:
    """A field, item, key or value as some files have it."""

    node: FieldType
    files: int
    newest: int

    @cached_property
    def kind(self) -> str:
        """What must be equal for two types to be the same before their members are looked at."""
        return self.node.type.value if self.node.type in NESTED else self.node.signature()


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
                seen = _Seen(member, variant.files, variant.newest)
                found.setdefault(member.name, []).append(seen)
        files = sum(variant.files for variant in variants)
        return tuple(
            self._field(seen, path=member_path(path, name), files=files)
            for name, seen in found.items()
        )

    def _field(self, seen: Sequence[_Seen], *, path: str, files: int) -> Field:
        members = [each.node for each in seen if isinstance(each.node, Field)]
        first = members[0]
        missing = files - sum(each.files for each in seen)
        if missing:
            self.drift.append(Drift(path, DriftKind.MISSING, files=missing, of=files))
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
        result = most_common_first[0][0].node
        accepted: list[_Seen] = []
        refused: list[_Seen] = []
        for group in most_common_first:
            common = common_type(result, group[0].node)
            if common is None:
                refused.extend(group)
            else:
                result = common
                accepted.extend(group)
        # Members keep the order of the newest struct, not of the most common one.
        position = {id(each): index for index, each in enumerate(seen)}
        accepted.sort(key=lambda each: position[id(each)])
        self._record(path, accepted=accepted, refused=refused, result=result)
        return self._parts(result, accepted, path=path)

    def _record(
        self, path: str, *, accepted: Sequence[_Seen], refused: Sequence[_Seen], result: FieldType
    ) -> None:
        files = sum(each.files for each in (*accepted, *refused))
        chosen = _Seen(result, files, 0).kind
        widened = [each for each in accepted if each.kind != chosen]
        for kind, apart in ((DriftKind.WIDENED, widened), (DriftKind.CONFLICT, refused)):
            if apart:
                types = (chosen, *sorted({each.kind for each in apart}))
                count = sum(each.files for each in apart)
                self.drift.append(Drift(path, kind, files=count, of=files, types=types))

    def _parts(self, result: FieldType, accepted: Sequence[_Seen], *, path: str) -> _TypePart:
        kind = _Seen(result, 0, 0).kind
        natives = [each.node.native_type for each in accepted if each.kind == kind]
        parts: _TypePart = {"type": result.type, "native_type": next(iter(natives), None)}
        match result.type:
            case TypeName.STRUCT:
                structs = [_Members(s.node.fields, s.files, s.newest) for s in accepted]
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

        A union with two branches of one kind keeps them as they are, since nobody can tell which
        branch of another union either of them is.
        """
        found: dict[str, list[_Seen]] = {}
        for union in accepted:
            branches = [_Seen(b, union.files, union.newest) for b in union.node.branches]
            if len({branch.kind for branch in branches}) < len(branches):
                return union.node.branches
            for branch in branches:
                found.setdefault(branch.kind, []).append(branch)
        return tuple(self._node(seen, path=f"{path}<{kind}>") for kind, seen in found.items())


def _commonness(group: Sequence[_Seen]) -> tuple[int, int, str]:
    files = sum(each.files for each in group)
    return -files, -max(each.newest for each in group), group[0].kind


def _inner(seen: Sequence[_Seen], name: str) -> list[_Seen]:
    return [
        _Seen(node, each.files, each.newest)
        for each in seen
        if isinstance(node := getattr(each.node, name), FieldType)
    ]
