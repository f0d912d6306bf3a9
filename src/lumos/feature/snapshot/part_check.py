"""Checking the items of one bucket: what is wrong with each, and the names that it brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from lumos.core.errors import CorruptSnapshotError, InvalidModelError
from lumos.core.models import LumosDataset, Tag
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.redaction import MASK, find_secrets, looks_secret
from lumos.core.store.snapshots.manifest import ContentHasher, StatisticsCounter, StatisticsTally
from lumos.core.store.snapshots.part_format import (
    KEY_OF,
    SECTIONS,
    dataset_json_of,
    hash_of,
    item_of,
)
from lumos.core.store.snapshots.snapshot_sections import MODEL_OF
from lumos.feature.snapshot.documents.document_spool import CHUNK_ITEMS
from lumos.feature.snapshot.references import Fact, facts_of
from lumos.feature.snapshot.source import printable_reference

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_parts import StoredPart
    from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot

DETAILS_KEPT = 20
_LOCATION = ("bucket", "path", "prefix")


@dataclass(frozen=True, slots=True)
class HeldItems:
    """Some items of a section of a parsed document; `before` others come before them."""

    section: str
    before: int
    items: Iterable[JsonValue]


@dataclass(frozen=True, slots=True)
class PartToCheck:
    """A part whose section has `before` items in the parts before it."""

    before: int
    part: StoredPart


class Examples(CanonicalModel):
    """Texts of which the first few are kept and all are counted."""

    count: Count = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Examples:
        """Count the texts and keep the first of them."""
        count, first = 0, []
        for text in texts:
            count += 1
            if count <= DETAILS_KEPT:
                first.append(text)
        return cls(count=count, first=tuple(first))

    def and_then(self, other: Examples) -> Examples:
        """Return both, this one's texts first."""
        first = (*self.first, *other.first)[:DETAILS_KEPT]
        return Examples(count=self.count + other.count, first=first)


class PartFindings(CanonicalModel):
    """What the check of one bucket found, however large the bucket is."""

    section: str
    part: str = ""
    damage: str | None = None
    unread: bool = False
    seen: Count = 0
    problems: Examples = Examples()
    secrets: Examples = Examples()
    digest: tuple[Count, str] = (0, "0")
    statistics: StatisticsTally = StatisticsTally()


def check_bucket(task: HeldItems | PartToCheck) -> Iterator[PartFindings | Fact]:
    """Check every item of a bucket; its findings come last, after the facts of its items.

    Raises:
        StateError: a part cannot be read at all.
    """
    if isinstance(task, HeldItems):
        checker = _ItemChecker(task.section, before=task.before)
        for item in task.items:
            yield from checker.add(item)
        yield checker.findings()
        return
    part = task.part
    checker = _ItemChecker(part.entry.section, before=task.before)
    try:
        lines = part.lines()
    except CorruptSnapshotError as error:
        yield checker.findings(part=part.entry.name, damage=error.message, unread=True)
        return
    damage = _disorder(part, lines)
    if part.entry.section in MODEL_OF:
        for line in lines:
            yield from checker.add_line(line)
    yield checker.findings(part=part.entry.name, damage=damage, digest=_digest(part, lines))


def parts_to_check(stored: StoredSnapshot) -> list[PartToCheck]:
    """Return all parts of a snapshot, section by section."""
    tasks = []
    for section in SECTIONS:
        before = 0
        for bucket in range(stored.bucket_count(section)):
            if part := stored.part(bucket, section=section):
                tasks.append(PartToCheck(before, part))
                before += part.entry.count
    return tasks


def chunks_to_check(section: str, items: Sequence[JsonValue]) -> Iterator[HeldItems]:
    """Yield the items of a section in pieces of a part's size."""
    for before in range(0, len(items), CHUNK_ITEMS):
        yield HeldItems(section, before, items[before : before + CHUNK_ITEMS])


class _ItemChecker:
    """Goes through the items of one bucket."""

    def __init__(self, section: str, *, before: int) -> None:
        self._section = section
        self._place = before
        self._seen = 0
        self._problems: list[str] = []
        self._problem_count = 0
        self._secrets: list[str] = []
        self._secret_count = 0
        self._statistics = StatisticsCounter()

    def add_line(self, line: bytes) -> Iterator[Fact]:
        """Check an item in the store's form."""
        try:
            item = item_of(dataset_json_of(line) if self._section == "datasets" else line)
        except InvalidModelError as error:
            self._seen += 1
            self._place += 1
            self._add_problem(f"item {self._place}: {error.message}")
            return
        model = self._checked(item)
        if model is None:
            return
        if isinstance(model, LumosDataset) and model.contract_hash.encode() != hash_of(line):
            self._add_problem(f"{model.urn}: the stored hash is not that of the dataset")
        yield from facts_of(self._section, model)

    def add(self, item: JsonValue) -> Iterator[Fact]:
        """Check an item as a document has it."""
        model = self._checked(item)
        if model is not None:
            yield from facts_of(self._section, model)

    def findings(
        self,
        *,
        part: str = "",
        damage: str | None = None,
        unread: bool = False,
        digest: tuple[int, str] = (0, "0"),
    ) -> PartFindings:
        return PartFindings(
            section=self._section,
            part=part,
            damage=damage,
            unread=unread,
            seen=self._seen,
            problems=Examples(count=self._problem_count, first=tuple(self._problems)),
            secrets=Examples(count=self._secret_count, first=tuple(self._secrets)),
            digest=digest,
            statistics=self._statistics.tally(),
        )

    def _checked(self, item: JsonValue) -> CanonicalModel | None:
        self._seen += 1
        self._place += 1
        try:
            model = MODEL_OF[self._section].from_json(item)
        except InvalidModelError as error:
            name = _claimed_name(self._section, item) or f"item {self._place}"
            self._add_problem(f"{name}: {error.message}")
            return None
        if isinstance(model, LumosDataset):
            self._statistics.add_dataset(model)
            for place in _exposed_secrets(model):
                self._secret_count += 1
                _keep(self._secrets, place)
        else:
            tag = model.name if isinstance(model, Tag) else None
            self._statistics.add_item(self._section, tag=tag)
        return model

    def _add_problem(self, problem: str) -> None:
        self._problem_count += 1
        _keep(self._problems, problem)


def _keep(texts: list[str], text: str) -> None:
    if len(texts) < DETAILS_KEPT:
        texts.append(text)


def _disorder(part: StoredPart, lines: list[bytes]) -> str | None:
    try:
        part.require_order(lines)
    except CorruptSnapshotError as error:
        return error.message
    return None


def _digest(part: StoredPart, lines: Iterable[bytes]) -> tuple[int, str]:
    hasher = ContentHasher()
    for line in lines:
        hasher.add(part.entry.section, line)
    count, total = hasher.sums().get(part.entry.section, (0, 0))
    return count, f"{total:x}"


def _claimed_name(section: str, item: JsonValue) -> str:
    """Return how an item that is not valid calls itself, as far as it has a name at all."""
    if not isinstance(item, dict):
        return ""
    texts = {name: value for name, value in item.items() if isinstance(value, str)}
    return printable_reference(spelt_key(KEY_OF[section](texts)))


def spelt_key(key: str) -> str:
    """Spell a key for people; that of an edge is made of its ends."""
    return " -> ".join(part for part in key.split("\n") if part)


def _exposed_secrets(dataset: LumosDataset) -> Iterator[str]:
    """Yield where a dataset's location and properties seem to hold credentials."""
    for name in _LOCATION:
        value = getattr(dataset.location, name, None)
        if value and find_secrets(value):
            yield f"{dataset.urn}: location.{name}"
    for name, inner in dataset.properties.items():
        if _holds_secret(name, inner):
            yield f"{dataset.urn}: properties.{name}"


def _holds_secret(name: str, value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(_holds_secret(inner_name, inner) for inner_name, inner in value.items())
    if isinstance(value, list):
        return any(_holds_secret(name, inner) for inner in value)
    if not isinstance(value, str) or value in {"", MASK}:
        return False
    return looks_secret(name) or bool(find_secrets(value))
