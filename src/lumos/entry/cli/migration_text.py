"""What `lumos diff` says of a move from one catalog to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.entry.cli.output import counted, print_badge

if TYPE_CHECKING:
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


def print_migration(totals: DiffTotals) -> None:
    """Say how much of the source the target has, and what a person has to see to."""
    for section, title in _MOVED.items():
        found = totals.sections.get(section)
        if found is not None:
            there = found.old - found.removed - found.unobserved
            status = "ok" if there == found.old else "warn"
            print_badge(status, f"{there:,}/{found.old:,} {title} migrated")
    for section, title in _MAPPED.items():
        found = totals.sections.get(section)
        missing = found.removed + found.unobserved + found.changed if found is not None else 0
        if missing:
            verb = "requires" if missing == 1 else "require"
            print_badge("warn", f"{counted(missing, title)} {verb} manual mapping")
