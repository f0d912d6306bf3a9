"""A dataset or job beside its stash: read from an entity, and divided between the two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import InvalidModelError
from lumos.core.models import Job, LumosDataset, Urn
from lumos.core.platform.impl.openmetadata.mapping.changes import changes, stash_parts
from lumos.core.platform.impl.openmetadata.mapping.entities import (
    NOT_WRITTEN,
    UNKNOWN_URN,
    UNMODELLED,
    other_properties,
    told_dataset,
    told_job,
)
from lumos.core.platform.impl.openmetadata.mapping.names import VERBATIM, Place, urn_of
from lumos.core.platform.impl.openmetadata.mapping.quality import TESTS
from lumos.core.platform.impl.openmetadata.side_store import stash_of, stash_text
from lumos.core.platform.stash import StashedDataset, residue, restored, unpacked

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.mapping.quality import PlannedTest
    from lumos.core.platform.impl.openmetadata.writer.profiles import SeenProfile

MENTIONED: Final = "mentioned"
SHOWN: Final = "shown"
"""Where the stash keeps the display name that Lumos wrote; another one is that of people."""
REMOVABLE: Final = {
    "table": ("displayName", "description", "owners", "tags", "domains", "columns", "tableType",
              "tableConstraints"),
    "container": ("displayName", "description", "owners", "tags", "domains", "dataModel",
                  "fileFormats", "prefix"),
}  # fmt: skip
"""What Lumos manages of an entity, by its type: it goes where a dataset does not say it."""


class Node(NamedTuple):
    """A dataset in the catalog, or one that is only mentioned there."""

    urn: Urn
    type: str
    entity: Json
    stash: Json

    @property
    def reference(self) -> Json:
        return {"id": self.entity["id"], "type": self.type}


def node_of(type_: str, entity: Json) -> Node:
    """Return what an entity stands for."""
    known = node_stash(entity)
    mentioned = known.get(MENTIONED)
    urn = Urn(mentioned) if isinstance(mentioned, str) else _urn(type_, entity, stash=known)
    return Node(urn, type_, entity, known)


def node_stash(entity: Json) -> Json:
    """Return the stash of an entity; one that cannot be read counts as none."""
    text = stash_of(entity)
    try:
        stash = unpacked(text) if text else {}
    except InvalidModelError:
        stash = {}
    return stash if isinstance(stash, dict) else {}


def _urn(type_: str, entity: Json, *, stash: Json) -> Urn:
    """Return the URN of an entity; the rest of it is read only where its stash names another."""
    patch = stash.get("patch")
    parts = patch.get("~") if isinstance(patch, dict) else None
    if isinstance(parts, dict) and "urn" in parts:
        return read_dataset(type_, entity).urn
    return urn_of(type_, str(entity.get("fullyQualifiedName") or entity["name"])) or UNKNOWN_URN


def own(node: Node | None, what: str) -> set[str]:
    """Return the names of what Lumos made of an entity, from its stash."""
    known = node.stash.get(what) if node else None
    return {str(name) for name in known} if isinstance(known, list) else set()


def read_dataset(type_: str, entity: Json) -> LumosDataset:
    """Return the dataset of an entity and its stash, without lineage and profiles of others."""
    text = stash_of(entity)
    if text is None:
        return told_dataset(entity, type_, foreign=True)
    native = told_dataset(entity, type_)
    try:
        stash = unpacked(text)
    except InvalidModelError:
        stash = text
    if isinstance(stash, dict) and "patch" not in stash:
        return native
    return StashedDataset.merged(native, stash)


def read_job(entity: Json) -> Job:
    """Return the job of a pipeline and its stash."""
    text = stash_of(entity)
    told = told_job(entity, foreign=text is None)
    try:
        return Job.from_json(restored(told.to_json(), text)) if text else told
    except InvalidModelError:
        return told


@dataclass(frozen=True)
class Plan:
    """What is to be written of a dataset, and what was there before."""

    dataset: LumosDataset
    place: Place
    node: Node | None
    entity: Json | None
    there: SeenProfile | None
    tests: Mapping[str, PlannedTest]
    kept: Json
    """What its stash keeps besides what its entity cannot hold."""
    wanted: Json
    properties: Json

    def over(self, entity: Json) -> Plan:
        """Return the plan for an entity that turned out to be there."""
        return self if entity is self.entity else replace(self, entity=entity)

    @cached_property
    def shown(self) -> Json:
        """What the entity will be, if the server alters nothing."""
        stays = kept_anyway(self.entity, self.place) if self.entity else {}
        others = other_properties(self.entity) if self.entity else {}
        tests: list[JsonValue] = [test.told for test in self.tests.values()]
        extension: Json = {**others, **self.properties}
        return {**stays, **self.wanted, TESTS: tests, "extension": extension}

    @cached_property
    def stash(self) -> str | None:
        """The stash beside that entity."""
        return stash_beside(self.place, self.shown, self.dataset, kept=self.kept)

    def stash_with(self, stored: Json) -> str | None:
        """Return the stash beside what the server has made of it."""
        if _tell_the_same(stored, self.shown, place=self.place):
            return self.stash
        return stash_beside(self.place, stored, self.dataset, kept=self.kept)


def _tell_the_same(stored: Json, shown: Json, *, place: Place) -> bool:
    """Return whether two entities at a place obviously hold the same dataset."""
    names = (*REMOVABLE[place.type], *UNMODELLED[place.type], *NOT_WRITTEN)
    told_at_length = (TESTS,) if place.type == "container" else (TESTS, "dataModel")
    if any(one.get(name) for one in (stored, shown) for name in told_at_length):
        return False
    urn = urn_of(place.type, place.fqn)
    if urn is None or urn.platform == VERBATIM or other_properties(stored) != shown["extension"]:
        return False
    wanted: Json = {name: shown[name] for name in names if shown.get(name)}
    return not changes(stored, wanted, removable=names)


def stash_beside(
    place: Place, entity: Mapping[str, JsonValue], dataset: LumosDataset, *, kept: Json
) -> str | None:
    """Return the stash of a dataset beside what an entity holds of it."""
    named = {"name": place.path[-1], "fullyQualifiedName": place.fqn, **entity}
    left = residue(told_dataset(named, place.type).document, dataset.document)
    stash = {**kept, **(left if isinstance(left, dict) else {})}
    return stash_text({"v": 1, **stash}) if stash else None


def job_stash(entity: Mapping[str, JsonValue], job: Job, *, shown: Json) -> str:
    """Return the stash of a job beside what a pipeline holds of it.

    An empty one marks a job of Lumos; a pipeline of others, with its own tasks, has none.

    Args:
        entity: the pipeline.
        job: what it stands for.
        shown: what Lumos wrote of the parts that people edit.
    """
    left = residue(told_job(entity).to_json(), job.to_json())
    stash: Json = left if isinstance(left, dict) else {"v": 1}
    return stash_text({**stash, SHOWN: shown} if shown else stash)


def mention_text(urn: Urn, place: Place) -> str:
    """Return the stash of what is only mentioned."""
    return stash_text({"v": 1, MENTIONED: str(urn), "place": place.type})


def with_constraints(wanted: Json, held: Iterable[JsonValue]) -> Json:
    """Return what is wanted of a table with those of its constraints that others made."""
    given = wanted.get("tableConstraints")
    own = given if isinstance(given, list) else []
    added = [each for each in held if each not in own]
    return {**wanted, "tableConstraints": [*own, *added]} if added else wanted


def with_extension(body: Json, stash: str | None) -> Json:
    """Return a creating request with a stash."""
    if stash is None:
        return body
    given = body.get("extension")
    known = given if isinstance(given, dict) else {}
    return {**body, "extension": {**known, **stash_parts(stash)}}


def kept_anyway(entity: Json, place: Place) -> Json:
    """Return what of an entity stays, whatever is written."""
    managed = {*REMOVABLE[place.type], "extension"}
    return {name: value for name, value in entity.items() if name not in managed}
