"""The columns of a dataset from their old state and what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.structure import branch_marks
from lumos.core.changes.detectors.types import contract_json
from lumos.core.changes.text import member_path
from lumos.core.json_reading import (
    as_list,
    as_object,
    find_text,
    integer_at,
    object_at,
    required_text_at,
)
from lumos.core.models import Change, Field, FieldType, Schema, TypeName
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json


_OF_TYPES = ("type.", "shape.", "decimal.", "varchar.", "timestamp.", "enum.")
_BRANCHES = "union.branch."
_ADDED, _REMOVED, _REORDERED = "field.added.", "field.removed", "field.reordered"
_ATTRIBUTES = (
    "nullable",
    "description",
    "pii",
    "tags",
    "glossary_terms",
    "default",
    "properties",
    "deprecation",
)


class SchemaEdits:
    """The changes of columns at any depth, found by the path at which they are."""

    def __init__(self) -> None:
        self._at: defaultdict[str, list[Change]] = defaultdict(list)
        self._added: defaultdict[str, list[Json]] = defaultdict(list)
        self._order: list[JsonValue] | None = None

    def takes(self, change: Change) -> bool:
        """Return whether a change is one of columns and not of the dataset itself."""
        if change.rule.startswith("assertion."):
            return False
        on_check = isinstance(change.old, dict) or isinstance(change.new, dict)
        if change.rule.startswith("doc.") and on_check:
            return False
        return bool(change.path) or change.rule == _REORDERED

    def add(self, change: Change) -> None:
        """Take one change."""
        payload = change.payload
        if change.rule == _REORDERED:
            self._order = as_list(change.new, change.rule)
        elif change.rule.startswith(_ADDED) and isinstance(payload, dict):
            name = member_path("", required_text_at(object_at(payload, "field"), "name"))
            parent = change.path.removesuffix(name).removesuffix(".")
            self._added[parent].append(payload)
        else:
            self._at[change.path].append(change)

    def order(self, names: JsonValue) -> None:
        """Take the order in which columns stand from now on."""
        self._order = as_list(names, "order of columns")

    def fields_after(self, old: Schema) -> list[JsonValue]:
        """Return the columns of the new state."""
        fields = self._members_after(old.fields, parent="")
        if self._order is None:
            return fields
        rank = {str(name): index for index, name in enumerate(self._order)}
        return sorted(fields, key=lambda field: rank.get(find_text(field, "name") or "", 0))

    def _members_after(self, old: Sequence[Field], *, parent: str) -> list[JsonValue]:
        members: list[JsonValue] = []
        for field in old:
            path = member_path(parent, field.name)
            if not any(change.rule.startswith(_REMOVED) for change in self._at.get(path, ())):
                members.append(self._node_after(field, path))
        added = self._added.get(parent, [])
        for payload in sorted(added, key=lambda payload: integer_at(payload, "index") or 0):
            index = integer_at(payload, "index")
            members.insert(len(members) if index is None else index, payload["field"])
        return members

    def _node_after(self, old: FieldType, path: str) -> Json:
        document = old.to_json()
        changes = self._at.get(path, [])
        retyped = [change for change in changes if change.rule.startswith(_OF_TYPES)]
        if retyped:
            document = _retyped(document, retyped[-1])
        else:
            document.update(self._inner_after(old, path, changes=changes))
        for change in changes:
            _apply_attribute(document, change)
        return document

    def _inner_after(self, old: FieldType, path: str, *, changes: Sequence[Change]) -> Json:
        match old.type:
            case TypeName.STRUCT:
                return {"fields": self._members_after(old.fields, parent=path)}
            case TypeName.ARRAY if old.items:
                return {"items": self._node_after(old.items, f"{path}[]")}
            case TypeName.MAP if old.key and old.value:
                key = self._key_after(old.key, f"{path}{{key}}")
                return {"key": key, "value": self._node_after(old.value, f"{path}{{value}}")}
            case TypeName.UNION:
                return {"branches": self._branches_after(old.branches, path, changes=changes)}
            case _:
                return {}

    def _key_after(self, old: FieldType, path: str) -> JsonValue:
        for change in self._at.get(path, ()):
            if change.rule.startswith("map.key."):
                return change.payload
        return self._node_after(old, path)

    def _branches_after(
        self, old: Sequence[FieldType], path: str, *, changes: Sequence[Change]
    ) -> JsonValue:
        removed = [change.payload for change in changes if change.rule == f"{_BRANCHES}removed"]
        gone = [canonical_json(branch) for branch in removed]
        marks = branch_marks(old)
        branches: list[JsonValue] = []
        for branch in old:
            key = canonical_json(contract_json(branch))
            mark = marks[id(branch)].pop()
            if key in gone:
                gone.remove(key)
            else:
                branches.append(self._node_after(branch, path + mark))
        added = [change.payload for change in changes if change.rule == f"{_BRANCHES}added"]
        return [*branches, *added]


def _retyped(document: Json, change: Change) -> Json:
    kept = {name: document[name] for name in ("name", *_ATTRIBUTES) if name in document}
    typed = change.payload if isinstance(change.payload, dict) else {"type": change.new}
    return {**kept, **typed}


def _apply_attribute(document: Json, change: Change) -> None:
    match change.rule.split("."):
        case ["null", *_]:
            document["nullable"] = change.new
        case ["doc", *_]:
            document["description"] = change.new
        case ["default", *_]:
            document["default"] = change.new
        case ["field", "pii", verb]:
            document["pii"] = verb == "set"
        case ["field", *_]:
            _apply_deprecation(document, change)
        case ["tag", *_]:
            document["tags"] = with_members(document.get("tags"), lost=change.old, won=change.new)
        case ["glossary", *_]:
            document["glossary_terms"] = with_members(
                document.get("glossary_terms"), lost=change.old, won=change.new
            )
        case ["props", *_]:
            document["properties"] = with_properties(document.get("properties"), change)


def _apply_deprecation(document: Json, change: Change) -> None:
    edits = {"sunset": change.new} if change.rule.startswith("field.sunset.") else change.new
    if change.rule in ("field.deprecated", "field.undeprecated"):
        document["deprecation"] = change.new
    elif isinstance(edits, dict):
        document["deprecation"] = with_values(document.get("deprecation"), edits)


def with_members(members: JsonValue, *, lost: JsonValue, won: JsonValue) -> list[JsonValue]:
    """Return a list whose order means nothing without one member and with another."""
    left = [*as_list(members, "members")]
    if lost is not None:
        spelled = [canonical_json(member) for member in left]
        if (gone := canonical_json(lost)) in spelled:
            del left[spelled.index(gone)]
    return left if won is None else [*left, won]


def with_values(values: JsonValue, edits: Json) -> Json:
    """Return an object with some of its values replaced."""
    return {**as_object(values, "values"), **edits}


def with_properties(properties: JsonValue, change: Change) -> Json:
    """Return properties after one of them came, went or got another value."""
    lost, won = as_object(change.old, change.rule), as_object(change.new, change.rule)
    before = as_object(properties, "properties")
    return {**{name: value for name, value in before.items() if name not in lost}, **won}
