"""Which version brought each column in, and which one changed it last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.text import member_path
from lumos.core.models.base import CanonicalModel, UtcDatetime
from lumos.core.models.dataset import contract_of_type
from lumos.feature.versioning.planning import is_removal

if TYPE_CHECKING:
    from lumos.core.models import DatasetVersion, Field, FieldType, LumosDataset

_NESTED = ("fields", "items", "key", "value", "branches")


class VersionMark(CanonicalModel):
    """The version in which something happened to a column, when, and by whom."""

    version: str
    timestamp: UtcDatetime
    author: str | None = None
    cloud_version: str | None = None

    @classmethod
    def of(cls, version: DatasetVersion) -> VersionMark:
        return cls(
            version=version.version,
            timestamp=version.timestamp,
            author=version.author,
            cloud_version=version.cloud_version,
        )


class FieldBlame(CanonicalModel):
    """Where a column of the newest version comes from."""

    path: str
    type: str
    added: VersionMark
    changed: VersionMark | None = None

    @property
    def latest(self) -> VersionMark:
        """The last version that had a part in the column as it is."""
        return self.changed or self.added


def blame(states: Iterable[tuple[DatasetVersion, LumosDataset]]) -> tuple[FieldBlame, ...]:
    """Return the columns and members of the newest state, in its order.

    A column that was removed and came back is as old as its return. A struct changes when it
    becomes something else; changes inside belong to its members.
    """
    known: dict[str, tuple[object, FieldBlame]] = {}
    for version, dataset in states:
        fields = () if is_removal(version) else dataset.schema.fields
        mark = VersionMark.of(version)
        known = {
            path: _told(path, field, before=known.get(path), mark=mark)
            for path, field in _members(fields, parent="")
        }
    return tuple(told for _, told in known.values())


def _told(
    path: str, field: Field, *, before: tuple[object, FieldBlame] | None, mark: VersionMark
) -> tuple[object, FieldBlame]:
    content = _own_content(field)
    kind = "STRUCT" if field.fields else field.signature()
    if before is None:
        return content, FieldBlame(path=path, type=kind, added=mark)
    old, told = before
    if old == content:
        return content, told if told.type == kind else told.model_copy(update={"type": kind})
    return content, FieldBlame(path=path, type=kind, added=told.added, changed=mark)


def _own_content(field: Field) -> object:
    """Return what a column says of itself, without its members, which are listed separately."""
    return _without_members(contract_of_type(field.to_json()))


def _without_members(node: object) -> object:
    if not isinstance(node, dict):
        return node
    own = {name: value for name, value in node.items() if name not in _NESTED}
    for name in ("items", "key", "value"):
        if name in node:
            own[name] = _without_members(node[name])
    if "branches" in node:
        own["branches"] = [_without_members(branch) for branch in node["branches"]]
    return own


def _members(fields: Iterable[Field], *, parent: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = member_path(parent, field.name)
        yield path, field
        yield from _inside(field, path)


def _inside(node: FieldType, path: str) -> Iterator[tuple[str, Field]]:
    yield from _members(node.fields, parent=path)
    if node.items:
        yield from _inside(node.items, f"{path}[]")
    if node.key and node.value:
        yield from _inside(node.key, f"{path}{{key}}")
        yield from _inside(node.value, f"{path}{{value}}")
    for branch in node.branches:
        yield from _inside(branch, f"{path}<{branch.type.value}>")
