"""Differences in fields, at any depth: one and the same rules at every level."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lumos.core.changes.avro_resolution import has_enum_default, resolves_type
from lumos.core.changes.detectors.documentation import text_findings
from lumos.core.changes.detectors.governance import deprecation_findings
from lumos.core.changes.detectors.properties import property_findings
from lumos.core.changes.detectors.sets import name_findings, only_in_one
from lumos.core.changes.detectors.types import contract_json, leaf_findings, type_text
from lumos.core.changes.finding import Finding
from lumos.core.changes.lattice import is_empty_type
from lumos.core.changes.rules import RULES_BY_ID
from lumos.core.changes.text import listed, member_path
from lumos.core.models import (
    ChangeLevel,
    ChangeScope,
    Field,
    FieldType,
    LumosDataset,
    Schema,
    TypeName,
)
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

_BOTH_SIDES = ("readers", "writers")


def schema_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of columns and of how columns are found."""
    if new.schema.positional and not old.schema.positional:
        order: list[JsonValue] = [field.name for field in new.schema.fields]
        yield Finding("schema.positional.gained", old=False, new=True, payload=order)
    if old.schema.positional and not new.schema.positional:
        yield Finding("schema.positional.lost", old=True, new=False)
    if old.schema.positional and new.schema.positional:
        yield from _order_findings(old.schema, new.schema)
    fixed = _fixed_dates(old)
    positional = new.schema.positional
    resolved = old.format == new.format == "avro"
    for finding in fields_findings(
        old.schema.fields, new.schema.fields, parent="", positional=positional
    ):
        judged = finding if resolved else _without_resolution(finding)
        yield _without_promotion(judged) if finding.path in fixed else judged


def _fixed_dates(dataset: LumosDataset) -> frozenset[str]:
    """Return the paths of dates that partitions are made from.

    Iceberg promotes a date to a timestamp only where no partition would get another value; of a
    partition key it is not known here, so it does not count as promoted.
    """
    keys = set(dataset.location.partition_keys) if dataset.location else set()
    fields = dataset.schema.fields if keys else ()
    return frozenset(
        member_path("", field.name)
        for field in fields
        if field.name in keys and field.type is TypeName.DATE
    )


_RULES_OF_DEFAULTS = frozenset(
    {
        "field.added.nullable",
        "field.added.required",
        "field.removed",
        "default.removed.required",
        "enum.symbol.added",
        "enum.symbol.removed",
    }
)


def _without_resolution(finding: Finding) -> Finding:
    """Judge a field by the rule alone where readers do not take defaults from their own schema.

    Avro's readers do: what was written without a field is read if the reader's schema has a
    default for it, and only then.
    """
    if finding.rule not in _RULES_OF_DEFAULTS:
        return finding
    passes_in = tuple(name for name in finding.passes_in if name not in _BOTH_SIDES)
    breaks_in = tuple(name for name in finding.breaks_in if name not in _BOTH_SIDES)
    return finding._replace(passes_in=passes_in, breaks_in=breaks_in)


def _without_promotion(finding: Finding) -> Finding:
    return finding._replace(
        passes_in=tuple(name for name in finding.passes_in if name != "iceberg_v3")
    )


def fields_findings(
    old: Sequence[Field], new: Sequence[Field], *, parent: str, positional: bool = False
) -> Iterator[Finding]:
    """Yield changes among the members of one struct, or the columns of a dataset."""
    before = {field.name: field for field in old}
    after = {field.name: field for field in new}
    for name, field in before.items():
        if after.get(name) is field:  # a state built beside the other shares what is equal
            continue
        path = member_path(parent, name)
        if name in after:
            yield from _field_findings(field, after[name], path)
        else:
            sunset = field.deprecation.sunset if field.deprecation else None
            yield Finding(
                "field.removed",
                path,
                old=type_text(field),
                passes_in=("readers",) if field.default is not None else (),
                sunset=sunset,
            )
    for index, (name, field) in enumerate(after.items()):
        if name not in before:
            yield _added(field, member_path(parent, name), index if positional else None)


def _added(field: Field, path: str, index: int | None) -> Finding:
    payload: dict[str, JsonValue] = {"field": contract_json(field)}
    if index is not None:
        payload["index"] = index
    # In Avro a field that may be null has no value in old data, unless null is its default.
    breaks_in = ("avro", "writers") if field.default is None else ()
    return Finding(
        _rule_of_added(field), path, new=type_text(field), breaks_in=breaks_in, payload=payload
    )


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
    yield from deprecation_findings(old.deprecation, new.deprecation, of="field", path=path)
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
    # Avro's writers give every field a value, so none of them relied on the default.
    passes_in = ("writers",) if rule == "default.removed.required" else ()
    yield Finding(rule, path, old=old.default, new=new.default, passes_in=passes_in)


def _node_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    """Compare what a column, a list's items, a map's value and a union's branch have in common."""
    if old.nullable != new.nullable:
        rule = "null.loosened" if new.nullable else "null.tightened"
        yield Finding(rule, path, old=old.nullable, new=new.nullable)
    yield from text_findings(old.description, new.description, path=path, subject="the description")
    if old.type is not new.type:
        spared = _spared_by_branch(old, new, path)
        for finding in leaf_findings(old, new, path):
            yield finding._replace(passes_in=(*finding.passes_in, *spared))
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
            yield from _union_findings(old, new, path)
        case TypeName.ENUM:
            sides = {
                "enum.symbol.added": ("readers",) if has_enum_default(old) else (),
                "enum.symbol.removed": ("avro", "writers") if has_enum_default(new) else (),
            }
            for finding in leaf_findings(old, new, path):
                yield finding._replace(passes_in=sides.get(finding.rule, ()))
        case _:
            yield from leaf_findings(old, new, path)


def _spared_by_branch(old: FieldType, new: FieldType, path: str) -> tuple[str, ...]:
    """Name who goes on where a type becomes one branch of a union, or a union one of its branches.

    Writers go on where a branch takes what they write, as every type that may be null takes null;
    readers go on where they knew the branch.
    """
    if is_empty_type(old):
        return ("writers",)
    if new.type is TypeName.UNION:
        pairs, side = [(old, branch) for branch in new.branches], "writers"
    elif old.type is TypeName.UNION:
        pairs, side = [(branch, new) for branch in old.branches], "readers"
    else:
        return ()
    spared = any(
        all(
            passes(each, side)
            for finding in _node_findings(_required(one), _required(other), path)
            for each in (finding, _without_resolution(finding))
        )
        for one, other in pairs
    )
    return (side,) if spared else ()


def _required(node: FieldType) -> FieldType:
    """Return the type of values that are not null: whether they may be is judged by itself."""
    return node.model_copy(update={"nullable": False})


def passes(finding: Finding, profile: str) -> bool:
    """Return whether a finding is not breaking under a profile."""
    if profile in finding.breaks_in:
        return False
    level = RULES_BY_ID[finding.rule].level_in(profile)
    return profile in finding.passes_in or level is not ChangeLevel.BREAKING


def _key_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    """Any structural change of a map's key is one and the same: entries are no longer found.

    Delta alone widens types in keys; Iceberg leaves keys as they are, and Avro has text alone.
    """
    structural: list[Finding] = []
    for finding in _node_findings(old, new, path):
        if RULES_BY_ID[finding.rule].scope is ChangeScope.SCHEMA:
            structural.append(finding)
        else:
            yield finding
    if structural:
        widened = all("delta" in finding.passes_in for finding in structural)
        yield Finding(
            "map.key.changed",
            path,
            old=_with_null(old),
            new=_with_null(new),
            passes_in=("delta",) if widened else (),
            payload=contract_json(new),
        )


def _with_null(node: FieldType) -> str:
    return type_text(node) + ("" if node.nullable else " NOT NULL")


def _union_findings(old: FieldType, new: FieldType, path: str) -> Iterator[Finding]:
    """Yield changes of branches; Avro takes all of them when it can resolve the whole union."""
    findings = [*_branch_findings(old.branches, new.branches, path)]
    resolved = bool(findings) and resolves_type(old, new)
    for finding in findings:
        if not resolved:
            yield finding
            continue
        sides = ("avro", "writers") if finding.rule in _RULES_OF_DEFAULTS else ("avro",)
        yield finding._replace(passes_in=(*finding.passes_in, *sides), breaks_in=())


def _branch_findings(
    old: Sequence[FieldType], new: Sequence[FieldType], path: str
) -> Iterator[Finding]:
    """Pair branches that are equal, then those of one type text, then the only ones of a type."""
    marks = branch_marks(old)
    before, after = only_in_one(_keyed(old), _keyed(new))
    same_text, before, after = _paired_by_text(before, after)
    same_type, before, after = _paired_by_type(before, after)
    for one, other in (*same_text, *same_type):
        yield from _node_findings(one, other, path + marks[id(one)].pop())
    for branch in before:
        yield Finding(
            "union.branch.removed", path, old=_with_null(branch), payload=contract_json(branch)
        )
    for branch in after:
        yield Finding(
            "union.branch.added", path, new=_with_null(branch), payload=contract_json(branch)
        )


def branch_marks(branches: Sequence[FieldType]) -> Mapping[int, list[str]]:
    """Return what a path says of each branch, by its identity: `<STRING>`, or `<STRUCT:2>`.

    One and the same branch may stand there more than once. Branches of one type are numbered in
    the order of their contracts, which does not depend on how they are listed.
    """
    ordered = sorted(_keyed(branches), key=lambda pair: pair[0])
    count = Counter(branch.type for branch in branches)
    seen: Counter[TypeName] = Counter()
    marks: defaultdict[int, list[str]] = defaultdict(list)
    for _, branch in ordered:
        seen[branch.type] += 1
        number = f":{seen[branch.type]}" if count[branch.type] > 1 else ""
        marks[id(branch)].append(f"<{branch.type.value}{number}>")
    return marks


_Branches = list[FieldType]
_Paired = tuple[list[tuple[FieldType, FieldType]], _Branches, _Branches]


def _keyed(branches: Sequence[FieldType]) -> list[tuple[bytes, FieldType]]:
    return [(canonical_json(contract_json(branch)), branch) for branch in branches]


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
