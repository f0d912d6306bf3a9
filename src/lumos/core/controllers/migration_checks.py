"""What is said of a move from one catalog to another, and what it is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.controllers.migration_results import MigrationCheck
from lumos.feature.snapshot.diff import SectionDiff

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lumos.feature.snapshot.diff import DiffTotals

_MOVED = {"datasets": "datasets", "lineage_edges": "lineage edges"}
_MAPPED = {
    "jobs": "job",
    "glossary": "glossary term",
    "tags": "tag",
    "domains": "domain",
    "users": "user",
    "groups": "group",
}


_CARRIED = {"identity_map": "external name", "extensions": "extension"}


def migration_checks(
    totals: DiffTotals, unreadable: Collection[str] = ()
) -> Iterator[MigrationCheck]:
    """Say how much of the source the target has, and what a person has to see to.

    Args:
        totals: the two compared.
        unreadable: the kinds of what the source holds besides and was not readable, one for each.
    """
    for section, title in _MOVED.items():
        found = totals.sections.get(section)
        unread = sum(f"{kind}s" == section for kind in unreadable)
        if found is not None or unread:
            found = found or SectionDiff()
            there = found.old - found.removed - found.unobserved
            everything = found.old + unread
            text = f"{there:,}/{everything:,} {title} migrated"
            yield MigrationCheck(status="ok" if there == everything else "warn", message=text)
    yield from _unlike(totals)
    for section, title in _MAPPED.items():
        found = totals.sections.get(section)
        missing = found.removed + found.unobserved + found.changed if found is not None else 0
        if missing:
            noun, verb = (title, "requires") if missing == 1 else (f"{title}s", "require")
            text = f"{missing:,} {noun} {verb} manual mapping"
            yield MigrationCheck(status="warn", message=text)


def _unlike(totals: DiffTotals) -> Iterator[MigrationCheck]:
    """Say what arrived without being the same, which no count of datasets tells."""
    edges = totals.sections.get("lineage_edges")
    if edges is not None and edges.changed:
        yield _differing(edges.changed, "lineage edge", "")
    for part, count in totals.parts.items():
        yield _differing(count, "dataset", f" in {part.replace('_', ' ')}")
    for section, title in _CARRIED.items():
        found = totals.sections.get(section)
        if found is not None and (missing := found.removed + found.unobserved):
            noun, verb = (title, "is") if missing == 1 else (f"{title}s", "are")
            yield MigrationCheck(status="warn", message=f"{missing:,} {noun} {verb} missing")


def _differing(count: int, title: str, where: str) -> MigrationCheck:
    noun, verb = (title, "differs") if count == 1 else (f"{title}s", "differ")
    return MigrationCheck(status="warn", message=f"{count:,} {noun} {verb}{where}")


def everything_moved(totals: DiffTotals) -> bool:
    """Tell whether the target has every dataset and lineage edge of the source."""
    found = (totals.sections.get(section) for section in _MOVED)
    return not any(each.removed or each.unobserved for each in found if each is not None)
