"""Differences in fields, at any depth: one and the same rules at every level."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence

from lumos.core.changes.detectors.documentation import text_findings
from lumos.core.changes.detectors.properties import property_findings
from lumos.core.changes.detectors.sets import name_findings, only_in_one
from lumos.core.changes.detectors.types import leaf_findings, type_text
from lumos.core.changes.finding import Finding
from lumos.core.changes.rules import RULES_BY_ID
from lumos.core.changes.text import listed, member_path
from lumos.core.models import ChangeScope, Field, FieldType, LumosDataset, Schema, TypeName
from lumos.core.models.base import canonical_json
from lumos.core.models.dataset import contract_of_type


def schema_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of columns and of how columns are found."""
    if new.schema.positional and not old.schema.positional:
        yield Finding("schema.positional.gained", old=False, new=True)
    if old.schema.positional and not new.schema.positional:
        yield Finding("schema.positional.lost", old=True, new=False)
    if old.schema.positional and new.schema.positional:
        yield from _order_findings(old.schema, new.schema)
    yield from fields_findings(old.schema.fields, new.schema.fields, parent="")


def fields_findings(
    old: Sequence[Field], new: Sequence[Field], *, parent: str
) -> Iterator[Finding]:
    """Yield changes among the members of one struct, or the columns of a dataset."""
    before = {field.name: field for field in old}
    after = {field.name: field for field in new}
    for name, field in before.items():
        path = member_path(parent, name)
        if name in after:
            yield from _field_findings(field, after[name], path)
        else:
            yield Finding("field.removed", path, old=type_text(field))
    for name, field in after.items():
        if name not in before:
            yield Finding(_rule_of_added(field), member_path(parent, name), new=type_text(field))


def _rule_of_added(field: Field) -> str:
    if field.nullable:
        return "field.added.nullable"
    if field.default is None:
        return "field.added.required"
    return "field.added.required_with_default"


def _order_findings(old: Schema, new: Schema) -> Iterator[Finding]:
    position = {field.name: index for index, field in enumerate(new.fields)}
    moved = [
        field.name
        for index, field in enumerate(old.fields)
        if position.get(field.name, index) != index
    ]
    if moved:
        yield Finding(
            "field.reordered",
            old=[field.name for field in old.fields],
            new=[field.name for field in new.fields],
            subject=listed(sorted(moved)),
        )


def _field_findings(old: Field, new: Field, path: str) -> Iterator[Finding]:
    yield from _node_findings(old, new, path)
    yield from _default_findings(old, new, path)
    if old.pii != new.pii:
        yield Finding(f"field.pii.{'set' if new.pii else 'cleared'}", path)
    yield from name_findings(old.tags, new.tags, rule="tag", path=path)
    yield from name_findings(old.glossary_terms, new.glossary_terms, rule="glossary", path=path)
    yield from property_findings(old.properties, new.properties, path=path)


def _default_findings(old: Field, new: Field, path: str) -> Iterator[Finding]:
    if old.default == new.default:
        return
    if old.default is None:
        rule = "default.added"
    elif new.default is not None:
        rule = "default.changed"
    else:
        rule = "default.removed" if new.nullable else "default.removed.required"
    yield Finding(rule, path, old=old.default, new=new.default)


def _node_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    """Compare what a column, a list's items, a map's value and a union's branch have in common."""
    if old.nullable != new.nullable:
        rule = "null.loosened" if new.nullable else "null.tightened"
        yield Finding(rule, path, old=old.nullable, new=new.nullable)
    yield from text_findings(old.description, new.description, path=path, subject="the description")
    if old.type is not new.type:
        yield from leaf_findings(old, new, path)
        return
    match old.type:
        case TypeName.STRUCT:
            yield from fields_findings(old.fields, new.fields, parent=path)
        case TypeName.ARRAY if old.items and new.items:
            yield from _node_findings(old.items, new.items, f"{path}[]")
        case TypeName.MAP if old.key and new.key and old.value and new.value:
            yield from _key_findings(old.key, new.key, f"{path}{{key}}")
            yield from _node_findings(old.value, new.value, f"{path}{{value}}")
        case TypeName.UNION:
            yield from _branch_findings(old.branches, new.branches, path)
        case _:
            yield from leaf_findings(old, new, path)


def _key_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    """Any structural change of a map's key is one and the same: entries are no longer found."""
    structural = False
    for finding in _node_findings(old, new, path):
        if RULES_BY_ID[finding.rule].scope is ChangeScope.SCHEMA:
            structural = True
        else:
            yield finding
    if structural:
        yield Finding("map.key.changed", path, old=_with_null(old), new=_with_null(new))


def _with_null(node: FieldType) -> str:
    return type_text(node) + ("" if node.nullable else " NOT NULL")


def _branch_findings(
    old: Sequence[FieldType], new: Sequence[FieldType], path: str
) -> Iterator[Finding]:
    """Pair branches that are equal, then those of one type text, then the only ones of a type."""
    before, after = only_in_one(_keyed(old), _keyed(new))
    same_text, before, after = _paired_by_text(before, after)
    same_type, before, after = _paired_by_type(before, after)
    for one, other in (*same_text, *same_type):
        yield from _node_findings(one, other, f"{path}<{one.type.value}>")
    for branch in before:
        yield Finding("union.branch.removed", path, old=_with_null(branch))
    for branch in after:
        yield Finding("union.branch.added", path, new=_with_null(branch))


_Branches = list[FieldType]
_Paired = tuple[list[tuple[FieldType, FieldType]], _Branches, _Branches]


def _keyed(branches: Sequence[FieldType]) -> list[tuple[bytes, FieldType]]:
    return [(canonical_json(contract_of_type(branch.to_json())), branch) for branch in branches]


def _paired_by_text(old: _Branches, new: _Branches) -> _Paired:
    waiting: defaultdict[str, deque[FieldType]] = defaultdict(deque)
    for branch in new:
        waiting[type_text(branch)].append(branch)
    pairs, left = [], []
    for branch in old:
        partners = waiting[type_text(branch)]
        if partners:
            pairs.append((branch, partners.popleft()))
        else:
            left.append(branch)
    return pairs, left, [branch for partners in waiting.values() for branch in partners]


def _paired_by_type(old: _Branches, new: _Branches) -> _Paired:
    before, after = Counter(one.type for one in old), Counter(one.type for one in new)
    certain = {kind for kind in before if before[kind] == after[kind] == 1}
    partner = {branch.type: branch for branch in new}
    pairs = [(branch, partner[branch.type]) for branch in old if branch.type in certain]
    return (
        pairs,
        [branch for branch in old if branch.type not in certain],
        [branch for branch in new if branch.type not in certain],
    )
