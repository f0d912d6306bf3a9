"""Checking a snapshot item by item: one bad dataset does not hide the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from lumos.core.errors import CorruptSnapshotError, InvalidModelError
from lumos.core.models import (
    Domain,
    GlossaryTerm,
    Group,
    Job,
    LineageEdge,
    LumosDataset,
    Snapshot,
    SnapshotStatistics,
    Tag,
    User,
)
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.models.migrations import migrated
from lumos.core.store.manifest import MANIFEST_NAME, StatisticsCounter, is_snapshot_id
from lumos.core.store.part_format import KEY_OF, dataset_json_of, hash_of, item_of
from lumos.core.store.snapshot_store import LATEST, SnapshotStore
from lumos.feature.snapshot.exposed_secrets import exposed_secrets
from lumos.feature.snapshot.references import References
from lumos.feature.snapshot.source import is_folder, opened_folder, printable, read_document

if TYPE_CHECKING:
    from lumos.core.store.stored_snapshot import StoredSnapshot

MODEL_OF: dict[str, type[CanonicalModel]] = {
    "datasets": LumosDataset,
    "jobs": Job,
    "lineage_edges": LineageEdge,
    "glossary": GlossaryTerm,
    "tags": Tag,
    "domains": Domain,
    "users": User,
    "groups": Group,
}
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
_DETAILS_KEPT = 20
_NAMES_SHOWN = 3


class CheckStatus(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(CanonicalModel):
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
    checks: tuple[Check, ...] = ()

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


def validate(reference: str, *, store: SnapshotStore) -> ValidationReport:
    """Check what the user named: `latest`, an id in the store, a snapshot folder or a document.

    Raises:
        InputUnreadableError: there is no such file, or it cannot be read.
        InvalidModelError: the file is not JSON.
        SnapshotNotFoundError: the store has no such snapshot.
    """
    path = Path(reference)
    try:
        if reference == LATEST or is_snapshot_id(reference):
            return validate_stored(store.open(reference))
        if path.name == MANIFEST_NAME:
            path = path.parent
        if is_folder(path):
            return validate_stored(opened_folder(path))
    except CorruptSnapshotError as error:
        failed = _failed("checksums", printable(error.message))
        return ValidationReport(name=printable(reference), checks=(failed,))
    return validate_document(read_document(path), printable(reference))


def validate_document(document: JsonValue, name: str) -> ValidationReport:
    """Check a parsed one-document snapshot."""
    try:
        current = migrated(document)
    except InvalidModelError as error:
        return ValidationReport(name=name, checks=(_failed("header", error.message),))
    checker = _Checker()
    checker.check_header(current)
    for section in MODEL_OF:
        items = current.get(section, [])
        if not isinstance(items, list):
            checker.add_problem(section, f"{section} is not a list")
            continue
        for place, item in enumerate(items, start=1):
            checker.add(section, item, place=place)
    claimed = current.get("statistics")
    return checker.report(name, claimed=claimed if isinstance(claimed, dict) else {})


def validate_stored(stored: StoredSnapshot) -> ValidationReport:
    """Check a snapshot in the store's form: its bytes first, then its content."""
    verified = stored.verify()
    checker = _Checker()
    for section in MODEL_OF:
        place = 0
        for bucket in range(stored.bucket_count(section)):
            try:
                lines = stored.bucket_lines(bucket, section=section)
            except CorruptSnapshotError:
                checker.miss_part(section)  # named by the verification already
                continue
            for line in lines:
                place += 1
                checker.add_line(section, line, place=place)
    matching = ("part matches its checksum", "parts match their checksums")
    checksums = (
        _problem_check(
            "checksums",
            CheckStatus.FAIL,
            details=verified.problems,
            what=("damaged part", "damaged parts"),
        )
        if verified.problems
        else Check(
            check="checksums",
            status=CheckStatus.OK,
            message=_counted(verified.parts, matching),
            count=verified.parts,
        )
    )
    claimed = stored.manifest.statistics.model_dump(mode="json")
    report = checker.report(stored.manifest.id, claimed=claimed, stale=CheckStatus.FAIL)
    return report.model_copy(update={"checks": (checksums, *report.checks)})


class _Checker:
    """Gathers items and problems, section by section."""

    def __init__(self) -> None:
        self._problems: dict[str, list[str]] = {}
        self._seen: Counter[str] = Counter()
        self._keys: dict[str, Counter[str]] = {section: Counter() for section in MODEL_OF}
        self._unreadable: Counter[str] = Counter()
        self._secrets: list[str] = []
        self._references = References()
        self._statistics = StatisticsCounter()

    def check_header(self, document: Mapping[str, JsonValue]) -> None:
        """Check all but the items, which are checked one by one."""
        rest = {name: value for name, value in document.items() if name not in MODEL_OF}
        rest["statistics"] = {}
        try:
            Snapshot.from_json({**rest, "datasets": []})
        except InvalidModelError as error:
            self.add_problem("header", error.message)
        try:
            SnapshotStatistics.from_json(document.get("statistics", {}))
        except InvalidModelError as error:
            self.add_problem("header", error.message)

    def add_problem(self, section: str, problem: str) -> None:
        self._problems.setdefault(section, []).append(problem)

    def miss_part(self, section: str) -> None:
        """Note that some of a section could not be read."""
        self._unreadable[section] += 1

    def add_line(self, section: str, line: bytes, *, place: int) -> None:
        try:
            item = item_of(dataset_json_of(line) if section == "datasets" else line)
        except InvalidModelError as error:
            self._seen[section] += 1
            self.add_problem(section, f"item {place}: {error.message}")
            return
        model = self.add(section, item, place=place)
        if isinstance(model, LumosDataset) and model.contract_hash.encode() != hash_of(line):
            self.add_problem(section, f"{model.urn}: the stored hash is not that of the dataset")

    def add(self, section: str, item: JsonValue, *, place: int) -> CanonicalModel | None:
        self._seen[section] += 1
        try:
            model = MODEL_OF[section].from_json(item)
        except InvalidModelError as error:
            name = _claimed_name(section, item) or f"item {place}"
            self.add_problem(section, f"{name}: {error.message}")
            return None
        self._keys[section][KEY_OF[section](model.to_json())] += 1
        self._references.add(model)
        if isinstance(model, LumosDataset):
            self._statistics.add_dataset(model)
            self._secrets.extend(exposed_secrets(model))
        else:
            self._statistics.add_item(section, tag=model.name if isinstance(model, Tag) else None)
        return model

    def report(
        self,
        name: str,
        *,
        claimed: Mapping[str, JsonValue],
        stale: CheckStatus = CheckStatus.WARN,
    ) -> ValidationReport:
        checks = [
            *self._header_checks(),
            *self._section_checks(),
            *self._duplicate_checks(),
            *self._secret_checks(),
        ]
        if not self._unreadable:  # else what is only unread would be told as missing
            checks += self._reference_checks()
            checks += self._statistics_checks(claimed, stale=stale)
        return ValidationReport(name=name, checks=tuple(checks))

    def _header_checks(self) -> Iterator[Check]:
        if problems := self._problems.get("header"):
            yield _failed("header", "; ".join(problems))

    def _section_checks(self) -> Iterator[Check]:
        for section, title in _TITLES.items():
            count, problems = self._seen[section], self._problems.get(section, [])
            if problems:
                of_all = f"of {_counted(count, _forms(title))}"
                what = (f"{of_all} is not valid", f"{of_all} are not valid")
                yield _problem_check(section, CheckStatus.FAIL, details=tuple(problems), what=what)
            if parts := self._unreadable[section]:
                of_parts = ("part cannot be read", "parts cannot be read")
                yield _failed(
                    section, f"{title.capitalize()} are not all here: {_counted(parts, of_parts)}"
                )
            elif not problems and (count or section in _ALWAYS_SHOWN):
                message = _counted(count, _forms(title))
                yield Check(check=section, status=CheckStatus.OK, message=message, count=count)

    def _duplicate_checks(self) -> Iterator[Check]:
        for section, title in _TITLES.items():
            twice = [_name(key) for key, count in self._keys[section].items() if count > 1]
            if twice:
                status = CheckStatus.FAIL if section in _UNIQUE_BY_LAW else CheckStatus.WARN
                yield _problem_check(
                    f"duplicates.{section}",
                    status,
                    details=tuple(sorted(twice)),
                    what=(
                        f"{_forms(title)[0]} is there more than once",
                        f"{title} are there more than once",
                    ),
                )

    def _secret_checks(self) -> Iterator[Check]:
        if self._secrets:
            yield _problem_check(
                "secrets",
                CheckStatus.WARN,
                details=tuple(self._secrets),
                what=("value looks like a credential", "values look like credentials"),
            )

    def _reference_checks(self) -> Iterator[Check]:
        unresolved = self._references.unresolved()
        for kind, names in unresolved.items():
            yield _problem_check(
                f"references.{kind.name.lower()}",
                CheckStatus.WARN,
                details=names,
                what=kind.value,
            )
        if not unresolved:
            yield Check(
                check="references",
                status=CheckStatus.OK,
                message="All references resolved",
                count=self._references.count,
            )

    def _statistics_checks(
        self, claimed: Mapping[str, JsonValue], *, stale: CheckStatus
    ) -> Iterator[Check]:
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
                details=wrong,
                what=(
                    "count in statistics differs from the content",
                    "counts in statistics differ from the content",
                ),
            )


def _failed(check: str, message: str) -> Check:
    return Check(check=check, status=CheckStatus.FAIL, message=message, count=1)


def _problem_check(
    check: str, status: CheckStatus, *, details: tuple[str, ...], what: tuple[str, str]
) -> Check:
    shown = "; ".join(details[:_NAMES_SHOWN])
    more = f" (and {len(details) - _NAMES_SHOWN:,} more)" if len(details) > _NAMES_SHOWN else ""
    return Check(
        check=check,
        status=status,
        message=f"{_counted(len(details), what)}: {shown}{more}",
        count=len(details),
        details=details[:_DETAILS_KEPT],
    )


def _counted(count: int, forms: tuple[str, str]) -> str:
    """Say how many there are; the forms are those for one and for many."""
    one, many = forms
    return f"{count:,} {one if count == 1 else many}"


def _forms(title: str) -> tuple[str, str]:
    return title.removesuffix("s"), title


def _claimed_name(section: str, item: JsonValue) -> str:
    """Return how an item that is not valid calls itself, as far as it has a name at all."""
    if not isinstance(item, dict):
        return ""
    texts = {name: value for name, value in item.items() if isinstance(value, str)}
    return printable(_name(KEY_OF[section](texts)))


def _name(key: str) -> str:
    """Spell a key for people; that of an edge is made of its ends."""
    return " -> ".join(part for part in key.split("\n") if part)
