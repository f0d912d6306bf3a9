"""Differences in who is responsible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.finding import Finding
from lumos.core.changes.text import quoted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import LumosDataset

_Roles = dict[tuple[str, str], list[str]]


def ownership_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield owners that came, went or changed roles, and whether nobody is left."""
    before, after = _roles(old), _roles(new)
    for owner in sorted(before.keys() | after.keys()):
        roles, other_roles = before.get(owner), after.get(owner)
        if roles == other_roles:
            continue
        if roles is None:
            rule = "owner.added"
        else:
            rule = "owner.removed" if other_roles is None else "owner.role.changed"
        yield Finding(
            rule, old=_json(owner, roles), new=_json(owner, other_roles), subject=_named(owner)
        )
    if before and not after:
        yield Finding("owner.none_left")


def _roles(dataset: LumosDataset) -> _Roles:
    roles: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for owner in dataset.ownership.owners:
        roles[owner.category, owner.name].append(owner.type)
    return {owner: sorted(types) for owner, types in roles.items()}


def _json(owner: tuple[str, str], roles: list[str] | None) -> JsonValue:
    category, name = owner
    return None if roles is None else {category: name, "types": [*roles]}


def _named(owner: tuple[str, str]) -> str:
    category, name = owner
    return f"{category} {quoted(name)}"
