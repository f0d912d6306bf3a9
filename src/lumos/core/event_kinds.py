"""Every event that Lumos emits: its level, its text, and what its fields mean.

`docs/reference/log-events.md` is generated from this table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class EventKind:
    """One kind of event."""

    meaning: str
    text: str
    """For people; names fields in braces. Fields that it does not name are shown behind it."""
    fields: Mapping[str, str]
    level: int = logging.INFO
    """`logging.NOTSET` where it is never logged, as it only moves a progress bar."""
    optional: frozenset[str] = field(default_factory=frozenset)


_SECONDS = "How long it took."
_REASON = "Why."
_CODE = "The stable code of the error."
_SOURCE = "The name of the source."
_HINT = "What to do about it."
_SERVER = "Scheme, name and port of the server, without path, query or credentials."

EVENT_KINDS: Final[Mapping[str, EventKind]] = {
    "command.started": EventKind(
        "A command of the command line began.",
        "lumos {command} started",
        {"command": "Its name.", "version": "The version of Lumos."},
    ),
    "command.finished": EventKind(
        "A command ended, well or not.",
        "lumos {command} ended with exit code {exit_code} after {seconds} s",
        {"command": "Its name.", "exit_code": "How it ended.", "seconds": _SECONDS},
    ),
    "command.failed": EventKind(
        "A command ended with an error, which is on standard error too.",
        "lumos {command}: {reason}",
        {"command": "Its name.", "reason": _REASON, "code": _CODE, "hint": _HINT},
        level=logging.ERROR,
        optional=frozenset({"hint"}),
    ),
    "notice": EventKind(
        "Something people should know that belongs to no item, such as settings without effect.",
        "{text}",
        {"text": "What."},
        level=logging.WARNING,
    ),
    "run.started": EventKind("An operation began.", "started", {}),
    "run.finished": EventKind(
        "An operation ended well; items may have failed.",
        "finished in {seconds} s",
        {
            "seconds": _SECONDS,
            "done": "How many items were handled.",
            "skipped": "How many were left out.",
            "failed": "How many failed.",
        },
        optional=frozenset({"done", "skipped", "failed"}),
    ),
    "run.failed": EventKind(
        "An operation ended with an error.",
        "failed after {seconds} s: {reason}",
        {"seconds": _SECONDS, "reason": _REASON, "code": _CODE},
        level=logging.ERROR,
        optional=frozenset({"code"}),
    ),
    "run.warning": EventKind(
        "Something people should know of a run; it is in its report too.",
        "{text}",
        {"text": "What."},
        level=logging.WARNING,
    ),
    "phase.started": EventKind(
        "A phase of an operation began, such as `listing` or `reading files`.",
        "{phase}",
        {
            "phase": "What is done in it.",
            "total": "How many there are to do.",
            "unit": "What is counted.",
        },
        optional=frozenset({"total"}),
    ),
    "phase.advanced": EventKind(
        "So many of a phase are done.",
        "{done} done",
        {"done": "How many, from its beginning."},
        level=logging.NOTSET,
    ),
    "phase.finished": EventKind(
        "A phase ended, as another one began or the operation ended.",
        "{phase} took {seconds} s",
        {
            "phase": "What was done in it.",
            "seconds": _SECONDS,
            "done": "How many are done.",
            "unit": "What is counted.",
        },
        optional=frozenset({"done"}),
    ),
    "waiting": EventKind(
        "Something is waited for between phases.",
        "{text}",
        {"text": "What."},
        level=logging.DEBUG,
    ),
    "item.skipped": EventKind(
        "An item was left out on purpose.",
        "{item} was skipped: {reason}",
        {"item": "A URN, path, table or source.", "reason": _REASON},
    ),
    "item.failed": EventKind(
        "An item failed; the others went on.",
        "{item} failed: {reason}",
        {
            "item": "A URN, path, table or source.",
            "reason": _REASON,
            "code": _CODE,
            "hint": _HINT,
            "retryable": "Whether another try may help.",
        },
        level=logging.WARNING,
        optional=frozenset({"code", "hint"}),
    ),
    "source.listed": EventKind(
        "A source of files was listed.",
        "source {source}: {files} files listed",
        {
            "source": _SOURCE,
            "files": "How many files it has.",
            "units": "Into how many parts it is divided.",
            "units_unchanged": "How many of the parts are as they were, so that nothing of them "
            "is compared or read.",
            "seconds": "How long listing it took, added up over its parts.",
        },
    ),
    "source.read": EventKind(
        "Files of a source were opened and read.",
        "source {source}: {files} files read in {seconds} s, {failed} of them failed",
        {
            "source": _SOURCE,
            "files": "How many files and tables were opened.",
            "failed": "How many of them could not be read.",
            "bytes": "The size of these files; of most, only a part is read.",
            "seconds": "How long reading took, added up over tasks that ran at once.",
        },
    ),
    "source.planned": EventKind(
        "A source that yields records said what to scan.",
        "source {source}: {units} units planned in {seconds} s",
        {"source": _SOURCE, "units": "How many parts it has.", "seconds": _SECONDS},
    ),
    "unit.scanned": EventKind(
        "A unit of such a source was scanned, done or failed; the first 1,000 of a source.",
        "source {source}: {unit} took {seconds} s",
        {
            "source": _SOURCE,
            "unit": "The unit, such as a schema.",
            "seconds": "How long it took, with all attempts and pauses.",
            "datasets": "How many datasets were found in it.",
        },
        level=logging.DEBUG,
    ),
    "unit.retried": EventKind(
        "A unit of such a source, or its plan, failed in a way that may pass, and was scanned "
        "again. It is logged when the scan of all sources is over.",
        "source {source}: {unit} was scanned again after {wait_seconds} s: {reason}",
        {
            "source": _SOURCE,
            "unit": "The unit, such as a schema, or `its plan`.",
            "attempt": "Which attempt failed, from 1.",
            "wait_seconds": "How long was waited before the next one.",
            "reason": _REASON,
            "code": _CODE,
        },
        level=logging.WARNING,
    ),
    "source.scanned": EventKind(
        "A source that yields records was scanned, such as a database.",
        "source {source}: {units} units scanned in {seconds} s, {failed} of them failed",
        {
            "source": _SOURCE,
            "units": "How many parts it has.",
            "failed": "How many of them failed.",
            "retries": "How many attempts failed and were followed by another one.",
            "datasets": "How many datasets were found.",
            "seconds": "How long the units took, added up, also where they were scanned at once.",
            "slowest": "The unit that took longest.",
            "slowest_seconds": "How long that one took.",
        },
    ),
    "files.compared": EventKind(
        "What was listed was compared with the file index.",
        "{opened} files to read, {unchanged} unchanged",
        {
            "opened": "How many files were read.",
            "unchanged": "How many were not, as size, time and ETag are as they were.",
            "reason": "Why files were read.",
        },
        optional=frozenset({"reason"}),
    ),
    "file.reread": EventKind(
        "A file is read, and why; the first 1,000 of a run.",
        "{path} is read: it is {status}",
        {"source": _SOURCE, "path": "Its path in the source.", "status": "`new` or `changed`."},
        level=logging.DEBUG,
    ),
    "http.retried": EventKind(
        "A request to a catalog failed in a way that may pass, and is sent again.",
        "{platform}: {method} to {server} is sent again in {wait_seconds} s: {reason}",
        {
            "platform": "The catalog.",
            "method": "The HTTP method.",
            "server": _SERVER,
            "reason": "Why, with the status of the answer if there was one.",
            "attempt": "Which attempt failed, from 1.",
            "wait_seconds": "How long is waited before the next one.",
        },
        level=logging.WARNING,
    ),
    "http.slow": EventKind(
        "A request to a catalog took 5 seconds or longer.",
        "{platform}: {method} to {server} took {seconds} s",
        {
            "platform": "The catalog.",
            "method": "The HTTP method.",
            "server": _SERVER,
            "path": "The path, without query.",
            "seconds": _SECONDS,
        },
        level=logging.WARNING,
    ),
    "index.waited": EventKind(
        "The index of a catalog was waited for, until it showed what was written before.",
        "{platform}: its index was waited for {seconds} s; complete: {complete}",
        {
            "platform": "The catalog.",
            "seconds": _SECONDS,
            "complete": "Whether it then showed everything; otherwise the time was over.",
        },
    ),
    "spark.started": EventKind(
        "A Spark session is ready.",
        "Spark on {master} was ready after {seconds} s: {how}",
        {
            "master": "Where it runs.",
            "how": "`cold start`, `engine`, `running session` or `Spark Connect`.",
            "reason": "Why no warm engine was used, where Spark was started.",
            "seconds": _SECONDS,
        },
        optional=frozenset({"reason"}),
    ),
    "spark.stopped": EventKind(
        "A Spark session ended.",
        "Spark ended within {seconds} s",
        {"seconds": _SECONDS},
    ),
    "lock.waited": EventKind(
        "Another writer of the state was waited for.",
        "waited {seconds} s for {holder}",
        {"holder": "Who held the lock.", "seconds": _SECONDS},
    ),
    "sync.counted": EventKind(
        "What a sync sent of one kind of things.",
        "{target}: {kind}: {new} new, {changed} changed, {unchanged} unchanged",
        {
            "target": "The catalog.",
            "kind": "Datasets, edges, tags and so on.",
            "new": "How many it did not have.",
            "changed": "How many differed.",
            "unchanged": "How many were not sent.",
            "failed": "How many it refused.",
            "removed": "How many were removed.",
        },
    ),
    "snapshot.stored": EventKind(
        "A snapshot was stored.",
        "snapshot {snapshot} stored",
        {"snapshot": "Its id."},
    ),
}
