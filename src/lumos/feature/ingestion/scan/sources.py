"""The sources of one scan: what there is to list, and what stands before every dataset's name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

from lumos.core.errors import ConfigurationError, LumosError, SourceError
from lumos.core.models import Contributor, Urn
from lumos.core.storage.sealed import sealed
from lumos.feature.discovery.datasets import SourceRoot
from lumos.feature.discovery.path_specs import PathSpecs
from lumos.feature.ingestion.found_datasets import Speaker
from lumos.feature.ingestion.handlers.factory import HandlerFactory

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.run_report import RunRecorder
    from lumos.core.settings import SourceEntry
    from lumos.core.storage.port import StorageSource
    from lumos.core.storage.sealed import SealedSource
    from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordHandler
    from lumos.feature.ingestion.handlers.factory import AnyHandler


Folders = Mapping[str, Sequence[bytes]]
"""Folders of sources, as paths relative to the root of each."""


@dataclass(frozen=True)
class ScanSource:
    """One source of files; what travels to the executors is `sealed`."""

    storage: StorageSource | SealedSource
    root: SourceRoot
    shown: str
    """Where it begins, as reports show it."""
    path_specs: PathSpecs = field(default_factory=PathSpecs)
    """How its paths are read where the rules are wrong."""
    specs_text: str = ""
    value_ranges: bool = False
    """Whether the smallest and largest values of columns are kept."""
    is_whole_folder: bool = True
    """Whether everything below the root belongs to it; not so for a single file."""
    prefixes: tuple[tuple[str, ...], ...] = ((),)
    """The folders below the root that it is narrowed to, as parts; all of it by default."""
    instance: str | None = None
    """The first part of the root, where the settings give one."""
    server: str = ""
    """The server of the storage; empty for this machine."""

    @classmethod
    def of(
        cls,
        storage: StorageSource,
        path_specs: Sequence[str] = (),
        *,
        value_ranges: bool = False,
        instance: str | None = None,
    ) -> ScanSource:
        """Describe a source once, where the run is planned.

        Raises:
            ConfigurationError: a path spec is invalid.
        """
        opened = storage.open()
        parts = opened.urn_parts()
        folder = opened.local_folder
        root = SourceRoot(
            storage.platform,
            parts=parts if instance is None else (instance, *parts),
            bucket=opened.bucket,
            path=folder,
            prefix="" if folder else "".join(f"/{part}" for part in parts[1:]),
        )
        return cls(
            storage,
            root,
            opened.shown(b""),
            path_specs=PathSpecs.of(path_specs),
            specs_text="\n".join(path_specs),
            value_ranges=value_ranges,
            is_whole_folder=not storage.is_one_file,
            prefixes=tuple(map(_parts, storage.chosen_folders())) or ((),),
            instance=instance,
            server=storage.server,
        )

    def sealed(self, folder: Path) -> ScanSource:
        """Return what travels to the executors: its credentials stay in a file in the folder."""
        return replace(self, storage=sealed(self.storage, folder))

    @property
    def own_parts(self) -> tuple[str, ...]:
        """The parts of the root without the instance: the bucket, or the name of the root."""
        return self.root.parts if self.instance is None else self.root.parts[1:]

    def folders(self) -> list[tuple[str, ...]]:
        """Return how the URNs of its datasets begin, as platform and parts."""
        root = (self.root.platform, *self.root.parts)
        return [(*root, *prefix) for prefix in self.prefixes]

    def locations(self) -> list[tuple[str, ...]]:
        """Return where it looks, as platform, server and parts."""
        folder = self.root.path
        place = self.own_parts if folder is None else _parts(folder)
        root = (self.root.platform, self.server, *place)
        return [(*root, *prefix) for prefix in self.prefixes]

    def urn_of_file(self) -> Urn | None:
        """Return the dataset that its one file belongs to; None where that is no data."""
        place = self.path_specs.place(os.path.basename(self.shown))
        return Urn.of_path(self.root.platform, *self.root.parts, *place.dataset) if place else None

    def holds(self, urn: Urn) -> bool:
        """Return whether a dataset of this URN would be found here."""
        return any(urn.is_within(*folder) for folder in self.folders())

    def renames(self, urn: Urn, dataset: Sequence[str]) -> bool:
        """Return whether a dataset that had this URN under another instance has a new one now.

        Args:
            urn: the URN that it had.
            dataset: its own parts, below the root.
        """
        platform, parts = self.root.platform, (*self.own_parts, *dataset)
        now = Urn.of_path(platform, *self.root.parts, *dataset)
        before = (Urn.of_path(platform, *parts), Urn.of_path(platform, urn.parts[0], *parts))
        return urn != now and urn in before and self.holds(now)


@dataclass
class ScanSources:
    """The sources of a run that can be scanned, by name."""

    by_name: dict[str, ScanSource] = field(default_factory=dict)
    """The sources of files; one with several buckets is several."""
    handlers: list[RecordHandler] = field(default_factory=list)
    """The sources that are scanned by records."""
    speakers: dict[str, Speaker] = field(default_factory=dict)
    """As what each source contributes, also one that cannot be scanned."""
    units: list[tuple[str, str]] = field(default_factory=list)
    """Source and unit of everything there is to list."""

    @property
    def places(self) -> Mapping[str, str]:
        """What the paths of each source, and their places, depend on."""
        return {
            name: "\n".join(
                (
                    source.shown,
                    *source.own_parts,
                    source.specs_text,
                    str(source.value_ranges),
                    *(() if source.instance is None else (f"instance {source.instance}",)),
                    *map("/".join, source.prefixes),
                )
            )
            for name, source in self.by_name.items()
        }


def scan_sources(
    entries: Sequence[SourceEntry],
    recorder: RunRecorder,
    *,
    skip: str,
    parallel: int,
    under: Folders | None = None,
    order: Sequence[str] = (),
) -> ScanSources:
    """Ask every source what there is to scan; one that cannot say is named, the others go on.

    Args:
        entries: the sources, as the settings give them.
        recorder: receives those that cannot be scanned.
        skip: a local folder that is no data.
        parallel: into how many parts a large source is divided.
        order: the names of all sources of the settings, which decides between two of one kind.
        under: the only folders to look into, by source; without it, all of every source.

    Raises:
        SourceError: no source at all can be scanned.
        ConfigurationError: two sources would find the same files.
    """
    sources = ScanSources()
    failures: list[LumosError] = []
    for entry in entries:
        handler = HandlerFactory.get_handler(entry)
        rank = order.index(entry.name) if entry.name in order else 0
        scanner = handler.scanner()
        if scanner is not None and under is None:
            sources.handlers.append(scanner)
            sources.speakers[handler.name] = _speaker(handler, handler.name, rank)
        for storage in _storages(handler, skip=skip):
            sources.speakers[storage.name] = _speaker(handler, storage.name, rank)
            if under is not None and storage.name not in under:
                continue  # another bucket of the same source
            try:
                units = _units(storage, parallel=parallel, under=under)
                source = _source(storage, handler)
            except SourceError as error:
                failures.append(error)
                recorder.failed(storage.name, error)
                continue
            sources.by_name[storage.name] = source
            sources.units += [(storage.name, unit) for unit in units]
    if failures and not (sources.by_name or sources.handlers):
        raise all_of(failures)
    _refuse_overlaps(sources.by_name)
    _refuse_shared_names(sources.handlers)
    return sources


def _speaker(handler: AnyHandler, name: str, rank: int) -> Speaker:
    return Speaker(Contributor(handler.contributes_as, name), rank)


def all_of(failures: Sequence[LumosError]) -> LumosError:
    """Return one error that names every source that failed, and why."""
    first, *others = failures
    if not others:
        return first
    hints = dict.fromkeys(each.hint for each in failures if each.hint)
    return SourceError(
        f"no source can be scanned: {'; '.join(each.message for each in failures)}",
        hint="; ".join(hints) or None,
        retryable=any(each.retryable for each in failures),
    )


def files_of(entry: SourceEntry, *, skip: str) -> Iterator[ScanSource]:
    """Yield where the files of a source lie; nothing where it has none."""
    handler = HandlerFactory.get_handler(entry)
    for storage in _storages(handler, skip=skip):
        yield _source(storage, handler)


def _source(storage: StorageSource, handler: AnyHandler) -> ScanSource:
    settings = handler.settings
    return ScanSource.of(
        storage,
        settings.path_specs,
        value_ranges=settings.value_ranges,
        instance=settings.instance,
    )


def _units(storage: StorageSource, *, parallel: int, under: Folders | None) -> Sequence[str]:
    opened = storage.open()
    if under is None:
        return opened.units(parallel)
    opened.check()
    return [opened.below(folder) for folder in under[storage.name]]


def _storages(handler: AnyHandler, *, skip: str) -> Iterator[StorageSource]:
    for storage in handler.storages():
        yield storage.without_folder(skip)


def refuse_equal_roots(entries: Sequence[SourceEntry]) -> None:
    """Refuse two local folders whose datasets would have the same names.

    Sources of single files in one folder have one root.

    Raises:
        ConfigurationError: two sources of the settings have the same root.
    """
    known: dict[tuple[str, ...], tuple[str, ScanSource]] = {}
    for name, source in _local_sources(entries):
        other, first = known.setdefault(source.root.parts, (name, source))
        if first.root.path != source.root.path:
            raise _equal_roots(other, name, sources=(first, source))


def _local_sources(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, ScanSource]]:
    for entry in entries:
        try:
            if "root" in HandlerFactory.settings_model(entry.type).model_fields:
                for source in files_of(entry, skip=""):
                    yield entry.name, source
        except LumosError:  # reported when the source is scanned
            continue


def _equal_roots(
    one: str, two: str, *, sources: tuple[ScanSource, ScanSource]
) -> ConfigurationError:
    folders = " and ".join(source.shown for source in sources)
    return ConfigurationError(
        f"the sources {one} and {two} have the same root '{sources[0].own_parts[0]}': {folders}",
        hint=f"give one of them another one, such as root: {two}-2",
    )


def _parts(prefix: str) -> tuple[str, ...]:
    return tuple(part for part in prefix.split("/") if part)


def _refuse_overlaps(sources: Mapping[str, ScanSource]) -> None:
    """Refuse sources that would find the same files, or two files under the same name."""
    for (one, first), (two, second) in combinations(sources.items(), 2):
        if not (first.is_whole_folder or second.is_whole_folder):
            _refuse_one_dataset(one, two, sources=sources)
        elif _shared(first.locations(), second.locations()) is not None:
            raise ConfigurationError(
                f"the sources {one} and {two} overlap: both look into "
                f"{max(first.shown, second.shown, key=len)}",
                hint=f"leave {two} out, or exclude its folder from {one}",
            )
        elif first.root.path is not None and first.root.parts == second.root.parts:
            raise _equal_roots(one, two, sources=(first, second))
        elif folder := _shared(first.folders(), second.folders()):
            servers = (first.server, second.server)
            raise _one_name(one, two, servers=servers, below=Urn.of_path(*folder))


def _shared(
    first: Iterable[tuple[str, ...]], second: Iterable[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Return the first folder that lies in one of the others, or has one of them in it."""
    for left, right in product(first, second):
        inner, outer = sorted((left, right), key=len, reverse=True)
        if inner[: len(outer)] == outer:
            return inner
    return None


def _one_name(one: str, two: str, *, servers: tuple[str, str], below: str) -> ConfigurationError:
    if servers[0] == servers[1]:
        what = f"the sources {one} and {two} would both have datasets below {below}"
    else:
        what = (
            f"the sources {one} and {two} are different servers, {' and '.join(servers)}, "
            f"and both would have datasets below {below}"
        )
    return ConfigurationError(
        what,
        hint=f"give one of them another name: instance: {two}; "
        f"if both are one server, leave {two} out",
    )


def _refuse_one_dataset(one: str, two: str, *, sources: Mapping[str, ScanSource]) -> None:
    """Refuse two files that would be found under one name: the second would replace the first."""
    first, second = sources[one], sources[two]
    urn = first.urn_of_file()
    if urn is not None and urn == second.urn_of_file():
        names = ", ".join(os.path.basename(each.shown) for each in (first, second))
        raise ConfigurationError(
            f"the sources {one} and {two} are files of one dataset, {urn}",
            hint=f"make one source of their folder, with file_patterns: [{names}]",
        )


def _refuse_shared_names(handlers: Sequence[RecordHandler]) -> None:
    """Refuse two servers whose datasets would get the same names."""
    claims = [(handler.name, claim) for handler in handlers for claim in handler.claims()]
    for (one, first), (two, second) in combinations(claims, 2):
        is_shared = _claims(first.urn_prefix, second.urn_prefix)
        if is_shared and first.server != second.server:
            longer = max(first.urn_prefix, second.urn_prefix, key=len)
            raise _one_name(one, two, servers=(first.server, second.server), below=longer)


def _claims(one: str, other: str) -> bool:
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)
