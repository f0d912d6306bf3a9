"""How `lumos diff` prints what changed, change by change, without holding them all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import orjson

from lumos.core.json_reading import Json
from lumos.core.models import ChangeLevel
from lumos.entry.cli.output import counted, print_badge, print_line, writing_output
from lumos.feature.snapshot.diff import unreadable_outcomes
from lumos.feature.snapshot.pair_diff import Fate

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.migration.results import MigrationCheck
    from lumos.feature.snapshot.diff import DiffTotals, StreamedDiff


_INDENT = "             "
_CHANGES_OF_A_SECTION = ("added", "removed", "changed")


def print_diff(found: StreamedDiff, keep: Callable[[Json], bool], *, details: bool) -> None:
    """Print the changes to keep by dataset, the worst of each first, and the totals of all."""
    shown = 0
    changes = (change for change in found.changes() if keep(change))
    for dataset, group in groupby(changes, key=lambda change: change["dataset"]):
        print_line(str(dataset))
        for change in sorted(group, key=lambda change: -ChangeLevel(str(change["level"])).rank):
            _print_change(change, details=details)
            shown += 1
    for line in _totals(found.totals, shown=shown):
        print_line(line)


def diff_chunks(
    found: StreamedDiff,
    keep: Callable[[Json], bool],
    *,
    checks: Iterable[MigrationCheck] | None = None,
) -> Iterator[bytes]:
    """Yield the pieces of the one JSON document with all changes."""
    yield b"{" + _entry("source", found.old) + b"," + _entry("target", found.new) + b","
    yield from _list("changes", (change for change in found.changes() if keep(change)))
    urns = found.urns()
    following = next(urns, None)

    def urns_of(fate: Fate) -> Iterator[str]:
        nonlocal following
        while following is not None and following[0] is fate:
            yield str(following[1])
            following = next(urns, None)

    for fate in Fate:
        yield b","
        yield from _list(fate.value, urns_of(fate))
    yield b"," + _entry("summary", found.totals.as_json())
    if unreadable := unreadable_outcomes(found):
        yield b"," + _entry("unreadable", [each.model_dump(mode="json") for each in unreadable])
    if checks is not None:
        yield b","
        yield from _list("checks", (check.as_json() for check in checks))
    yield b"\n}\n"


def print_diff_json(
    found: StreamedDiff,
    keep: Callable[[Json], bool],
    *,
    checks: Iterable[MigrationCheck] | None = None,
) -> None:
    """Print what changed as one JSON document; the changes in it are those to keep."""
    with writing_output():
        sys.stdout.flush()
    for chunk in diff_chunks(found, keep, checks=checks):
        with writing_output():
            sys.stdout.buffer.write(chunk)
    with writing_output():
        sys.stdout.buffer.flush()


def _entry(name: str, value: JsonValue) -> bytes:
    return b'\n  "%b": %b' % (name.encode(), _indented(value, b"\n  "))


def _list(name: str, values: Iterable[JsonValue]) -> Iterator[bytes]:
    yield b'\n  "%b": [' % name.encode()
    before = b""
    for value in values:
        yield before + b"\n    " + _indented(value, b"\n    ")
        before = b","
    yield b"\n  ]" if before else b"]"


def _indented(value: JsonValue, line_start: bytes) -> bytes:
    """Write JSON to stand within a document; its strings hold no line breaks."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).replace(b"\n", line_start)


def _print_change(change: Json, *, details: bool) -> None:
    notes = [str(change["rule"]), *(mark for mark in ("caution", "widening") if change[mark])]
    if change["rename_confidence"]:
        notes.append(f"rename: {change['rename_confidence']:.0%} sure")
    print_badge(str(change["level"]), f"{change['message']} ({', '.join(notes)})", indent="  ")
    if details:
        for line in _details(change):
            print_line(_INDENT + line)


def _details(change: Json) -> Iterator[str]:
    yield f"path: {change['path'] or '(the dataset)'}"
    old, new = (_value(change[side]) for side in ("old", "new"))
    yield f"value: {old} → {new}"
    yield f"direction: {change['direction']}, version bump: {change['bump']}"
    profiles = change["passes_under"]
    if isinstance(profiles, list) and profiles:
        yield f"not breaking under: {', '.join(map(str, profiles))}"
    yield f"fingerprint: {change['fingerprint']}"


def _value(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _totals(totals: DiffTotals, *, shown: int) -> Iterator[str]:
    for name, counts in totals.other_sections.items():
        numbers = {kind: getattr(counts, kind) for kind in _CHANGES_OF_A_SECTION}
        found = [f"{count:,} {kind}" for kind, count in numbers.items() if count]
        if found:
            yield f"{name.replace('_', ' ')}: {', '.join(found)}"
    levels = ", ".join(
        f"{totals.levels.get(level, 0):,} {level.value.lower().replace('_', '-')}"
        for level in ChangeLevel
    )
    yield f"{counted(totals.changes, 'change')}: {levels}"
    if totals.ignored:
        yield f"{totals.ignored:,} of them ignored by the change policy"
    if shown < totals.changes:
        yield f"{shown:,} of them shown"
    if unobserved := totals.datasets.unobserved:
        verb = "was" if unobserved == 1 else "were"
        yield f"{counted(unobserved, 'dataset')} {verb} not observed, so not removed"
