"""Differences in primary, unique and foreign keys, and in the checks beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.checks import check_findings
from lumos.core.changes.detectors.sets import only_in_one
from lumos.core.changes.finding import Finding
from lumos.core.changes.text import listed
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import ForeignKey, LumosDataset


def key_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of keys and checks, whatever order they are listed in."""
    yield from _primary_key_findings(old.schema.primary_key, new.schema.primary_key)
    yield from _unique_key_findings(old.schema.unique_keys, new.schema.unique_keys)
    yield from _foreign_key_findings(old.schema.foreign_keys, new.schema.foreign_keys)
    yield from check_findings(old.schema.checks, new.schema.checks)


def _primary_key_findings(old: Sequence[str], new: Sequence[str]) -> Iterator[Finding]:
    if old == new:
        return
    if not old:
        rule = "pk.added"
    elif not new:
        rule = "pk.removed"
    else:
        rule = "pk.reordered" if sorted(old) == sorted(new) else "pk.changed"
    yield Finding(rule, old=[*old] or None, new=[*new] or None)


def _unique_key_findings(
    old: Sequence[tuple[str, ...]], new: Sequence[tuple[str, ...]]
) -> Iterator[Finding]:
    lost, won = only_in_one(
        [(canonical_json(key), key) for key in old], [(canonical_json(key), key) for key in new]
    )
    for key in lost:
        yield Finding("unique.removed", old=[*key])
    for key in won:
        yield Finding("unique.added", new=[*key])


def _foreign_key_findings(
    old: Sequence[ForeignKey], new: Sequence[ForeignKey]
) -> Iterator[Finding]:
    lost, won = only_in_one(_keyed(old), _keyed(new))
    for key in lost:
        yield Finding("fk.removed", old=_json(key), subject=listed(key.columns))
    for key in won:
        yield Finding("fk.added", new=_json(key), subject=listed(key.columns))


def _keyed(keys: Sequence[ForeignKey]) -> list[tuple[bytes, ForeignKey]]:
    return [(canonical_json(key.to_json()), key) for key in keys]


def _json(key: ForeignKey) -> JsonValue:
    return key.to_json()
