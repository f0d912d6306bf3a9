"""What a snapshot is made of, taken from a catalog or from a snapshot in any form, as streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import lumos
from lumos.core.events import is_logged
from lumos.core.models import (
    SNAPSHOT_SCHEMA_VERSION,
    Domain,
    GlossaryTerm,
    Group,
    Job,
    Tag,
    User,
)
from lumos.core.platform.abilities import (
    Capability,
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
    reading_at_once,
    require,
)
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.progress import SILENT, Progress
from lumos.core.store.snapshots.manifest import SnapshotHeader, StatisticsCounter
from lumos.core.store.snapshots.part_format import SECTIONS, key_of_line
from lumos.core.store.snapshots.snapshot_sections import (
    SectionLine,
    SnapshotContent,
    SnapshotSections,
)
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypeVar

    from lumos.core.platform.interface import Entity, EntityKind
    from lumos.feature.snapshot.source import SnapshotSource

    EntityT = TypeVar("EntityT", bound=Entity)

# A selection knows which jobs are referred to once it has seen the edges.
_ORDER = ("datasets", "lineage_edges", *SECTIONS)
_SHOWN_EVERY: Final = 500


def catalog_content(
    platform: MetadataPlatformInterface, *, at: datetime, progress: Progress = SILENT
) -> SnapshotContent:
    """Return all that a catalog holds; it is read when the lines are, as of one moment if it can.

    `progress` receives the number of datasets, where there are many.

    Raises:
        CapabilityError: the catalog cannot be exported.
    """
    require(platform, Capability.EXPORT)
    header = SnapshotHeader(
        snapshot_schema_version=SNAPSHOT_SCHEMA_VERSION,
        lumos_version=lumos.__version__,
        export_timestamp=at,
        source_platform=platform.name,
    )
    counter = StatisticsCounter()

    def lines() -> Iterator[SectionLine]:
        with reading_at_once(platform):
            if type(platform).reached is not MetadataPlatformInterface.reached:
                platform.reached()  # another server, or an older one, may seem to hold nothing
            found = _sections(platform).lines(counter)
            is_told = progress is not SILENT or is_logged("phase.started")
            yield from _shown(found, platform.name, progress) if is_told else found

    return SnapshotContent(
        header=header,
        lines=lines(),
        statistics=counter.result,
        seen_whole=lambda: not platform.unreadable(),
    )


def _shown(lines: Iterator[SectionLine], name: str, progress: Progress) -> Iterator[SectionLine]:
    """Yield lines and report how many datasets were read."""
    done = 0
    for line in lines:
        yield line
        if line.section == "datasets":
            done += 1
            if done == _SHOWN_EVERY:
                progress.stage(f"reading {name}", unit="datasets")
            if not done % _SHOWN_EVERY:
                progress.advance(done)


def source_content(source: SnapshotSource) -> SnapshotContent:
    """Return all that a snapshot holds, line by line as it is."""
    known = {name: getattr(source.header, name) for name in SnapshotHeader.model_fields}
    return SnapshotContent(
        header=SnapshotHeader.model_validate(known),
        lines=_lines_of(source),
        statistics=lambda: source.statistics,
    )


def _lines_of(source: SnapshotSource) -> Iterator[SectionLine]:
    for section in dict.fromkeys(_ORDER):
        for line in section_lines(source, section):
            yield SectionLine(section, key_of_line(section, line), line)


def _sections(platform: MetadataPlatformInterface) -> SnapshotSections:
    entities = EntityAbility.find(platform)
    lineage = LineageAbility.find(platform)
    identities = IdentityAbility.find(platform)
    extensions = ExtensionAbility.find(platform)

    def listed(kind: EntityKind, model: type[EntityT]) -> Iterator[EntityT]:
        found = entities.list_entities(kind) if entities else ()
        return (entity for entity in found if isinstance(entity, model))

    return SnapshotSections(
        datasets=platform.list(),
        lineage_edges=lineage.list_edges() if lineage else (),
        jobs=listed("job", Job),
        glossary=listed("glossary_term", GlossaryTerm),
        tags=listed("tag", Tag),
        domains=listed("domain", Domain),
        users=listed("user", User),
        groups=listed("group", Group),
        identity_map=identities.identity_map().items() if identities else (),
        extensions=extensions.extensions().items() if extensions else (),
    )
