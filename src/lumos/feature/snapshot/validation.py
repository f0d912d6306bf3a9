"""Checking a snapshot item by item: one bad dataset does not hide the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from lumos.core.errors import CorruptSnapshotError, InvalidModelError
from lumos.core.models import Snapshot, SnapshotStatistics
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.models.migrations import migrated
from lumos.core.store.snapshots.manifest import ContentHasher, StatisticsCounter
from lumos.core.store.snapshots.snapshot_sections import MODEL_OF
from lumos.feature.snapshot.documents.document import has_matching_seal, opened_file
from lumos.feature.snapshot.documents.document_spool import CHUNK_ITEMS, DocumentSpool
from lumos.feature.snapshot.documents.document_text import DocumentText
from lumos.feature.snapshot.part_check import (
    Examples,
    HeldItems,
    PartFindings,
    PartToCheck,
    check_bucket,
    chunks_to_check,
    parts_to_check,
    spelt_key,
)
from lumos.feature.snapshot.references import Fact, FactIndex, reference_count, unresolved
from lumos.feature.snapshot.source import opened_stored, printable_reference

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_store import SnapshotStore
    from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot

_TITLES = {
    "datasets": "datasets",
    "jobs": "jobs",
    "lineage_edges": "lineage edges",
    "glossary": "glossary terms",
    "tags": "tags",
    "domains": "domains",
    "users": "users",
    "groups": "groups",
}
_ALWAYS_SHOWN = frozenset({"datasets", "lineage_edges"})
_UNIQUE_BY_LAW = frozenset({"datasets", "jobs"})
_NAMES_SHOWN = 3


class CheckStatus(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class ValidationCheck(CanonicalModel):
    """One line of a validation report."""

    check: str
    status: CheckStatus
    message: str
    count: Count = 0
    details: tuple[str, ...] = ()

    def line(self) -> str:
        return f"[{self.status.value}] {self.message}"


class ValidationReport(CanonicalModel):
    """All that was checked of a snapshot."""

    name: str
    checks: tuple[ValidationCheck, ...] = ()

    @property
    def status(self) -> CheckStatus:
        found = {check.status for check in self.checks}
        worst = (CheckStatus.FAIL, CheckStatus.WARN)
        return next((status for status in worst if status in found), CheckStatus.OK)

    @property
    def ok(self) -> bool:
        """Whether nothing failed; warnings are allowed."""
        return self.status is not CheckStatus.FAIL

    def lines(self) -> tuple[str, ...]:
        return tuple(check.line() for check in self.checks)

    def as_json(self) -> dict[str, JsonValue]:
        """Return the object that `lumos validate --json` prints."""
        return {
            "name": self.name,
            "status": self.status.value,
            "checks": [check.model_dump(mode="json") for check in self.checks],
        }


def validate(reference: str, *, store: SnapshotStore, edited: bool = False) -> ValidationReport:
    """Check what the user named: `latest`, an id in the store, a snapshot folder or a document.

    Args:
        reference: what the user named.
        store: where ids are looked up.
        edited: accept a document whose content does not match its checksum.

    Raises:
        InputUnreadableError: there is no such file, or it cannot be read.
        InvalidModelError: the file is not JSON.
        SnapshotNotFoundError: the store has no such snapshot.
    """
    try:
        stored = opened_stored(reference, store=store)
        if stored is not None:
            return validate_stored(stored)
    except CorruptSnapshotError as error:
        failed = _failed("checksums", printable_reference(error.message))
        return ValidationReport(name=printable_reference(reference), checks=(failed,))
    return validate_file(Path(reference), edited=edited)


def validate_file(path: Path, *, edited: bool = False) -> ValidationReport:
    """Check a one-document snapshot, of which only a part is held at a time.

    Args:
        path: the file.
        edited: accept content that does not match its checksum.

    Raises:
        InputUnreadableError: there is no such file, or it cannot be read.
        InvalidModelError: the file is not JSON.
    """
    name = printable_reference(str(path))
    with opened_file(path) as stream:
        is_as_written = has_matching_seal(stream)
        text = DocumentText(stream, name)
        try:
            spool = DocumentSpool.of(text)
        except InvalidModelError as error:
            if text.is_json:
                return ValidationReport(name=name, checks=(_failed("header", error.message),))
            raise
    with spool:
        try:
            if not (is_as_written or edited):
                spool.require_unchanged(name)
        except CorruptSnapshotError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            return ValidationReport(name=name, checks=(_failed("checksums", message),))
        chunks = [
            HeldItems(section, number * CHUNK_ITEMS, chunk)
            for section in MODEL_OF
            for number, chunk in enumerate(spool.chunks(section))
        ]
        return _document_report(spool.head, chunks, name=name)


def validate_document(document: JsonValue, name: str) -> ValidationReport:
    """Check a parsed one-document snapshot."""
    try:
        current = migrated(document)
    except InvalidModelError as error:
        return ValidationReport(name=name, checks=(_failed("header", error.message),))
    chunks = [
        chunk
        for section in MODEL_OF
        if isinstance(items := current.get(section, []), list)
        for chunk in chunks_to_check(section, items)
    ]
    return _document_report(current, chunks, name=name)


def validate_stored(stored: StoredSnapshot) -> ValidationReport:
    """Check a snapshot in the store's form, its bytes and its content, each part read once."""
    gathered = _Gathered()
    facts = gathered.check(parts_to_check(stored))
    claimed = stored.manifest.statistics.model_dump(mode="json")
    report = gathered.report(stored.manifest.id, facts, claimed=claimed, stale=CheckStatus.FAIL)
    checksums = _checksums(gathered, stored)
    return report.model_copy(update={"checks": (checksums, *report.checks)})


def _document_report(
    head: Mapping[str, JsonValue], chunks: Sequence[HeldItems], *, name: str
) -> ValidationReport:
    gathered = _Gathered()
    gathered.check_header(head)
    for section in MODEL_OF:
        if not isinstance(head.get(section, []), list):
            gathered.add_problem(section, f"{section} is not a list")
    stated = head.get("statistics")
    claimed = stated if isinstance(stated, dict) else {}
    return gathered.report(name, gathered.check(chunks), claimed=claimed)


def _checksums(gathered: _Gathered, stored: StoredSnapshot) -> ValidationCheck:
    manifest = stored.manifest
    problems = [
        gathered.damage[part.name] for part in manifest.parts if part.name in gathered.damage
    ]
    if not problems and gathered.hasher.digest(manifest) != manifest.content_hash:
        problems.append(f"snapshot {manifest.id}: the parts are not what was written")
    if problems:
        return _problem_check(
            "checksums",
            CheckStatus.FAIL,
            told=Examples.of(problems),
            what=("damaged part", "damaged parts"),
        )
    matching = ("part matches its checksum", "parts match their checksums")
    count = len(manifest.parts)
    return ValidationCheck(
        check="checksums", status=CheckStatus.OK, message=_counted(count, matching), count=count
    )


class _Gathered:
    """What the checks of all buckets found, put together."""

    def __init__(self) -> None:
        self.damage: dict[str, str] = {}
        self.hasher = ContentHasher()
        self._header: list[str] = []
        self._problems: dict[str, Examples] = {}
        self._seen: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()
        self._secrets = Examples()
        self._statistics = StatisticsCounter()

    def check_header(self, document: Mapping[str, JsonValue]) -> None:
        """Check all but the items, which are checked one by one."""
        rest = {name: value for name, value in document.items() if name not in MODEL_OF}
        rest["statistics"] = {}
        try:
            Snapshot.from_json({**rest, "datasets": []})
        except InvalidModelError as error:
            self._header.append(error.message)
        try:
            SnapshotStatistics.from_json(document.get("statistics", {}))
        except InvalidModelError as error:
            self._header.append(error.message)

    def add_problem(self, section: str, problem: str) -> None:
        self._problems[section] = self._told(section).and_then(Examples.of([problem]))

    def check(self, tasks: Sequence[HeldItems | PartToCheck]) -> FactIndex:
        """Check the buckets, and return the facts of their items."""
        facts = FactIndex()
        for found in chain.from_iterable(map(check_bucket, tasks)):
            if isinstance(found, Fact):
                facts.add(found)
            else:
                self._add(found)
        return facts

    def _add(self, findings: PartFindings) -> None:
        section = findings.section
        if findings.damage is not None:
            self.damage[findings.part] = findings.damage
        if findings.unread:
            self._unreadable[section] += 1  # the checksums name it
        count, total = findings.digest
        self.hasher.add_sum(section, count, total=int(total, 16))
        self._seen[section] += findings.seen
        self._problems[section] = self._told(section).and_then(findings.problems)
        self._secrets = self._secrets.and_then(findings.secrets)
        self._statistics.add_tally(findings.statistics)

    def _told(self, section: str) -> Examples:
        return self._problems.get(section, Examples())

    def report(
        self,
        name: str,
        facts: FactIndex,
        *,
        claimed: Mapping[str, JsonValue],
        stale: CheckStatus = CheckStatus.WARN,
    ) -> ValidationReport:
        checks = [
            *self._header_checks(),
            *self._section_checks(),
            *self._duplicate_checks(facts),
            *self._secret_checks(),
        ]
        if not self._unreadable:  # else what is only unread would be reported as missing
            checks += self._reference_checks(facts)
            checks += self._statistics_checks(claimed, stale=stale)
        return ValidationReport(name=name, checks=tuple(checks))

    def _header_checks(self) -> Iterator[ValidationCheck]:
        if self._header:
            yield _failed("header", "; ".join(self._header))

    def _section_checks(self) -> Iterator[ValidationCheck]:
        for section, title in _TITLES.items():
            count, problems = self._seen[section], self._told(section)
            if problems.count:
                of_all = f"of {_counted(count, _forms(title))}"
                what = (f"{of_all} is not valid", f"{of_all} are not valid")
                yield _problem_check(section, CheckStatus.FAIL, told=problems, what=what)
            if parts := self._unreadable[section]:
                of_parts = ("part cannot be read", "parts cannot be read")
                yield _failed(
                    section, f"{title.capitalize()} are not all here: {_counted(parts, of_parts)}"
                )
            elif not problems.count and (count or section in _ALWAYS_SHOWN):
                message = _counted(count, _forms(title))
                yield ValidationCheck(
                    check=section, status=CheckStatus.OK, message=message, count=count
                )

    def _duplicate_checks(self, facts: FactIndex) -> Iterator[ValidationCheck]:
        repeated: dict[str, list[str]] = {}
        for section, key in facts.repeated(_TITLES):
            repeated.setdefault(section, []).append(spelt_key(key))
        for section, title in _TITLES.items():
            if twice := repeated.get(section):
                status = CheckStatus.FAIL if section in _UNIQUE_BY_LAW else CheckStatus.WARN
                yield _problem_check(
                    f"duplicates.{section}",
                    status,
                    told=Examples.of(sorted(twice)),
                    what=(
                        f"{_forms(title)[0]} is there more than once",
                        f"{title} are there more than once",
                    ),
                )

    def _secret_checks(self) -> Iterator[ValidationCheck]:
        if self._secrets.count:
            yield _problem_check(
                "secrets",
                CheckStatus.WARN,
                told=self._secrets,
                what=("value looks like a credential", "values look like credentials"),
            )

    def _reference_checks(self, facts: FactIndex) -> Iterator[ValidationCheck]:
        missing = unresolved(facts, self._statistics.tally().counts)
        for kind, names in missing.items():
            yield _problem_check(
                f"references.{kind.name.lower()}",
                CheckStatus.WARN,
                told=Examples.of(names),
                what=kind.value,
            )
        if not missing:
            yield ValidationCheck(
                check="references",
                status=CheckStatus.OK,
                message="All references resolved",
                count=reference_count(facts),
            )

    def _statistics_checks(
        self, claimed: Mapping[str, JsonValue], *, stale: CheckStatus
    ) -> Iterator[ValidationCheck]:
        counted = self._statistics.result().model_dump(mode="json")
        try:
            stated = SnapshotStatistics.from_json(claimed).model_dump(mode="json")
        except InvalidModelError:
            return  # reported with the header
        wrong = tuple(
            f"{name}: {stated[name]:,} stated, {counted[name]:,} there"
            for name in counted
            if name in claimed and stated[name] != counted[name]
        )
        if wrong:
            yield _problem_check(
                "statistics",
                stale,
                told=Examples.of(wrong),
                what=(
                    "count in statistics differs from the content",
                    "counts in statistics differ from the content",
                ),
            )


def _failed(check: str, message: str) -> ValidationCheck:
    return ValidationCheck(check=check, status=CheckStatus.FAIL, message=message, count=1)


def _problem_check(
    check: str, status: CheckStatus, *, told: Examples, what: tuple[str, str]
) -> ValidationCheck:
    shown = "; ".join(told.first[:_NAMES_SHOWN])
    more = f" (and {told.count - _NAMES_SHOWN:,} more)" if told.count > _NAMES_SHOWN else ""
    return ValidationCheck(
        check=check,
        status=status,
        message=f"{_counted(told.count, what)}: {shown}{more}",
        count=told.count,
        details=told.first,
    )


def _counted(count: int, forms: tuple[str, str]) -> str:
    """Say how many there are; the forms are those for one and for many."""
    one, many = forms
    return f"{count:,} {one if count == 1 else many}"


def _forms(title: str) -> tuple[str, str]:
    return title.removesuffix("s"), title
