"""A part of a snapshot: the datasets that somebody wants, and what they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lumos.core.json_reading import find_object, find_objects
from lumos.core.models.facets import COLUMN_FACETS, DATASET_FACETS
from lumos.core.store.snapshots.manifest import StatisticsCounter
from lumos.core.store.snapshots.part_format import dataset_item_of, item_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.store.snapshots.snapshot_sections import SectionLine, SnapshotContent


_LEFT_OUT = frozenset({"extensions"})
_REFERRING = tuple(facet for facet in DATASET_FACETS if facet.refers_to is not None)
_REFERRING_COLUMNS = {
    name: facet.refers_to for name, facet in COLUMN_FACETS.items() if facet.refers_to is not None
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which datasets are wanted: those that have one of the names in each kind that is given.

    A pattern is a URN or a name, in which `*`, `?` and `[…]` stand for other characters.
    """

    patterns: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything is selected at all; else everything is wanted."""
        return bool(self.patterns or self.platforms or self.tags or self.owners)

    def wants(self, dataset: Json) -> bool:
        """Return whether a dataset, given as `to_json` writes it, is wanted."""
        names = (str(dataset["urn"]), str(dataset["name"]))
        if self.patterns and not any(
            fnmatchcase(name, pattern) for pattern in self.patterns for name in names
        ):
            return False
        if self.platforms and dataset["platform"] not in self.platforms:
            return False
        if self.tags and not _texts(dataset.get("tags")).intersection(self.tags):
            return False
        owners = {name for _, name in _owners(dataset)}
        return not self.owners or bool(owners.intersection(self.owners))


WHOLE_SNAPSHOT = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """What is exported: a catalog, or a snapshot where one is named, or datasets of either."""

    platform: str | None = None
    snapshot: str | None = None
    selection: Selection = WHOLE_SNAPSHOT


def selected(content: SnapshotContent, selection: Selection) -> SnapshotContent:
    """Return the wanted part of a snapshot, which is no longer a complete one.

    Lineage stays where one of its ends is wanted, so that contracts stay what they are. Of people,
    tags, terms, domains and jobs those stay that are referred to. The lines of datasets come
    first, those of edges before those of jobs.
    """
    if not selection:
        return content
    counter = StatisticsCounter()
    return replace(
        content,
        header=content.header.model_copy(update={"complete": False}),
        lines=_Chosen(selection).lines(content.lines, counter),
        statistics=counter.result,
    )


@dataclass(slots=True)
class _Chosen:
    """What was chosen so far, by section."""

    selection: Selection
    names: dict[str, set[str]] = field(default_factory=dict)

    def lines(
        self, lines: Iterable[SectionLine], counter: StatisticsCounter
    ) -> Iterator[SectionLine]:
        for line in lines:
            is_dataset = line.section == "datasets"
            item = dataset_item_of(line.line) if is_dataset else item_of(line.line)
            if not self._keeps(line.section, item):
                continue
            if is_dataset:
                counter.add_dataset_json(item)
            else:
                tag = str(item["name"]) if line.section == "tags" else None
                counter.add_item(line.section, tag=tag)
            yield line

    def _keeps(self, section: str, item: Json) -> bool:
        match section:
            case "datasets":
                return self._keeps_dataset(item)
            case "lineage_edges":
                ends = {str(item["upstream_urn"]), str(item["downstream_urn"])}
                kept = not ends.isdisjoint(self._known("datasets"))
                if kept and item.get("job_urn"):
                    self._refer("jobs", str(item["job_urn"]))
                return kept
            case "jobs":
                ends = _texts(item.get("inputs")) | _texts(item.get("outputs"))
                wanted = item["urn"] in self._known("jobs")
                return wanted or not ends.isdisjoint(self._known("datasets"))
            case "identity_map":
                return item["urn"] in self._known("datasets")
            case _:
                name = item.get("username") if section == "users" else item.get("name")
                return section not in _LEFT_OUT and name in self._known(section)

    def _keeps_dataset(self, dataset: Json) -> bool:
        if not self.selection.wants(dataset):
            return False
        self._refer("datasets", str(dataset["urn"]))
        for section, name in _references(dataset):
            self._refer(section, name)
        return True

    def _refer(self, section: str, *names: str) -> None:
        if names:
            self.names.setdefault(section, set()).update(names)

    def _known(self, section: str) -> set[str]:
        return self.names.get(section, set())


def _references(dataset: Json) -> Iterator[tuple[str, str]]:
    """Yield what a dataset names of other sections, as section and name."""
    for facet in _REFERRING:
        if facet.refers_to == "people":
            yield from _owners(dataset)
        elif facet.refers_to is not None:
            inside = dataset if facet.path == facet.part else find_object(dataset, facet.part)
            yield from ((facet.refers_to, name) for name in _texts(inside.get(facet.name)))
    yield from _references_of_columns(find_object(dataset, "schema"))


def _references_of_columns(node: Json) -> Iterator[tuple[str, str]]:
    """Yield what columns, at any depth, name of other sections."""
    for name, section in _REFERRING_COLUMNS.items():
        yield from ((section, text) for text in _texts(node.get(name)))
    for name in ("fields", "branches"):
        for inner in find_objects(node, name):
            yield from _references_of_columns(inner)
    for name in ("items", "key", "value"):
        if inner := find_object(node, name):
            yield from _references_of_columns(inner)


def _owners(dataset: Json) -> Iterator[tuple[str, str]]:
    for owner in find_objects(dataset, "ownership", "owners"):
        category = "user" if owner.get("user") else "group"
        yield f"{category}s", str(owner.get(category))


def _texts(value: JsonValue) -> set[str]:
    return {str(item) for item in value} if isinstance(value, list) else set()
