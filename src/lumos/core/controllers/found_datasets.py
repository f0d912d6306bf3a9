"""Brings what a scan found into the catalog, and takes out what is surely gone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.core.controllers.results import DatasetCounts
from lumos.core.controllers.storage_functions import OWN_EXTENSIONS
from lumos.core.errors import DamagedDocumentError, InvalidModelError, LumosError
from lumos.core.formats.file_names import promise_of
from lumos.core.formats.tables.marks import may_hold_log
from lumos.core.models import Change, LumosDataset, Urn, with_parts
from lumos.core.models.origin import origin_of
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.feature.discovery.unseen import is_in_doubt, unseen_columns, with_unseen_parts
from lumos.feature.snapshot.import_plan import ImportMode, plan_dataset

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Publisher
    from lumos.core.controllers.scan_sources import ScanSource
    from lumos.core.models.origin import Origin
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.spark.pipeline import Pipeline
    from lumos.spark.stages.rows import BuiltDataset


Judge = Callable[[LumosDataset | None, LumosDataset | None], tuple[Change, ...]]


@dataclass
class Scope:
    """What a scan was to look at, and what of it nobody could see."""

    sources: Mapping[str, ScanSource]
    doubted: set[str] = field(default_factory=set)
    """Sources without a single file: their disks may be missing."""
    closed: dict[str, list[str]] = field(default_factory=dict)
    """The folders that could not be listed, by source, as paths below its root."""
    unreadable: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many files nobody could read, by dataset, as source and key."""
    forgotten: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many of them may have been read by runs of which nothing is known any more."""
    unbuilt: set[tuple[str, str]] = field(default_factory=set)
    """The datasets that could not be built from their files, as source and key."""
    links: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    """The symlinks that are not followed, by source, as the parts of their paths."""
    around_links: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    """Every folder and dataset, by source, that such a symlink lies in or is a file of."""

    def shown(self, source: str, path: bytes) -> str:
        """Return where a file lies, as reports show it."""
        scanned = self.sources[source]
        above = scanned.shown if scanned.is_whole_folder else os.path.dirname(scanned.shown)
        text = path.decode("utf-8", "backslashreplace")
        return f"{above.rstrip('/')}/{text}" if text else above

    def close(self, source: str, path: bytes) -> None:
        """Remember a part that could not be listed."""
        below = path.decode("utf-8", "backslashreplace").strip("/")
        self.closed.setdefault(source, []).append(below)

    def skip_link(self, source: str, path: bytes) -> None:
        """Remember a symlink that is not followed.

        What earlier runs found behind it is neither gone nor known to be the same. The log of a
        table counts as a folder that could not be listed: without it the files of the table would
        look like a dataset.
        """
        text = path.decode("utf-8", "backslashreplace").strip("/")
        parts = tuple(text.split("/"))
        self.links.setdefault(source, set()).add(parts)
        around = self.around_links.setdefault(source, set())
        place = self.sources[source].path_specs.place(text)
        if place is not None and promise_of(text).format is not None:
            around.add(tuple(place.dataset))
        else:  # it may be a folder, with files of any dataset that lies around it
            around.update(parts[:length] for length in range(len(parts)))
        if may_hold_log(text):
            self.close(source, path)

    def has_skipped_link(self, origin: Origin) -> bool:
        """Tell whether a dataset may have files behind a symlink that is not followed."""
        links = self.links.get(origin.source)
        if not links:
            return False
        parts = tuple(map(str, orjson.loads(origin.dataset)))
        is_behind = any(parts[:length] in links for length in range(1, len(parts) + 1))
        return is_behind or parts in self.around_links[origin.source]

    def has_unreadable(self, origin: Origin) -> bool:
        """Tell whether files of a dataset, or a workbook that it is a sheet of, are not read."""
        is_linked = self.has_skipped_link(origin)
        return is_linked or any(self.unreadable[each] for each in _holders(origin))

    def shown_dataset(self, source: str, dataset: str) -> str:
        """Return where the files of a dataset lie, as reports show it."""
        return self.shown(source, "/".join(orjson.loads(dataset)).encode("utf-8", "replace"))

    def is_unbuilt(self, origin: Origin) -> bool:
        """Tell whether the files of a dataset are there, but it could not be built from them."""
        return origin in self.unbuilt

    def files_in_doubt(self, origin: Origin, *, as_before: bool) -> int:
        """Return how many unreadable files of a dataset may hold what no other file shows.

        Args:
            origin: where the dataset was found.
            as_before: whether its unreadable files were in doubt before.
        """
        counts = self.unreadable if as_before else self.forgotten
        linked = int(self.has_skipped_link(origin))
        return linked + sum(counts[each] for each in _holders(origin))

    def hides_part_of(self, dataset: LumosDataset, source: str) -> bool:
        """Tell whether files of a dataset may lie where nobody could look."""
        whole = (dataset.location.prefix if dataset.location else None) or "/"
        prefix = whole.removeprefix(self.sources[source].root.prefix)
        closed = [f"/{folder}/" if folder else "/" for folder in self.closed.get(source, ())]
        return any(each.startswith(prefix) or prefix.startswith(each) for each in closed)


def _holders(origin: Origin) -> tuple[tuple[str, str], ...]:
    """Return the dataset and the workbook that it may be a sheet of."""
    book = f"{origin.dataset.rpartition(',')[0]}]"  # one part less of what is a JSON array
    return tuple({origin, (origin.source, book)})


class _Step(NamedTuple):
    """What is to be done with one dataset."""

    found: BuiltDataset | None
    """None where it is gone."""
    dataset: LumosDataset
    is_news: bool
    is_sure: bool = True
    """Whether the next run may pass over it, if it finds the same."""
    is_known: bool = True
    """Whether the catalog has it."""
    changes: tuple[Change, ...] = ()


@dataclass
class FoundDatasets:
    """The datasets of one run against those of a catalog.

    Only datasets that differ from what the catalog was last told are looked at one by one.
    """

    scope: Scope
    platform: MetadataPlatformInterface | None
    """The catalog; None where there is none yet."""
    judge: Judge
    """Says what changed, as the policy of the project sees it."""
    created: int = 0
    updated: int = 0
    removed: int = 0
    changes: list[Change] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[tuple[str, LumosError]] = field(default_factory=list)
    """The datasets that are left as they are, by URN, and why.

    The catalog cannot hold what was found, or what is stored of them is damaged.
    """
    touched: set[Urn] = field(default_factory=set)

    def plan(self, pipeline: Pipeline) -> None:
        """Find out what a run would do, and do nothing."""
        for step in self._planned(pipeline):
            self._count(step)

    def publish(self, pipeline: Pipeline, publisher: Publisher) -> None:
        """Write what differs and retire what is gone; the caller holds the transaction."""
        seen: list[tuple[str, str]] = []
        for step in self._planned(pipeline):
            if not self._written(step, publisher):
                continue
            self._count(step)
            if step.found is not None:
                seen.append((step.found.urn, step.found.hash if step.is_sure else ""))
        if self.platform is not None:
            self.platform.keep_found_states(seen)

    def counts(self, found: int) -> DatasetCounts:
        """Return what happened to the datasets, of which so many were found."""
        return DatasetCounts(
            found=found,
            created=self.created,
            updated=self.updated,
            unchanged=found - self.created - self.updated - len(self.failures),
            removed=self.removed,
        )

    def _written(self, step: _Step, publisher: Publisher) -> bool:
        """Carry out a step; where the catalog cannot hold the dataset, keep the reason."""
        try:
            if step.found is None:
                publisher.retire(step.dataset)
            elif step.is_news:
                publisher.publish(step.dataset)
        except REFUSALS as error:
            if ends_run(error):
                raise
            self.failures.append((step.dataset.urn, error))
            return False
        return True

    def _planned(self, pipeline: Pipeline) -> Iterator[_Step]:
        for built in pipeline.differing(self._states()):
            if isinstance(built, str):
                yield from self._gone(built)
                continue
            try:
                step = self._step(built)
            except (InvalidModelError, DamagedDocumentError) as error:
                self.failures.append((built.urn, error))
                continue
            if step is not None:
                yield step

    def _step(self, built: BuiltDataset) -> _Step | None:
        """Return what is to be done with a dataset that was found, if anything."""
        found = LumosDataset.from_json(orjson.loads(built.document))
        present = self.platform.find_dataset(found.urn) if self.platform else None
        if present is not None and self.scope.hides_part_of(found, built.source):
            return None  # half a look is no reason to change anything
        as_seen, found = found, self._with_unseen_parts(present, found)
        wanted = _wanted(present, found)
        is_news = wanted != present
        return _Step(
            built,
            wanted,
            is_news=is_news,
            is_sure=found is as_seen,
            is_known=present is not None,
            changes=self.judge(present, wanted) if is_news else (),
        )

    def _with_unseen_parts(self, present: LumosDataset | None, found: LumosDataset) -> LumosDataset:
        """Return a dataset with what files that cannot be read may hold of it."""
        origin = origin_of(found)
        if present is None or origin is None:
            return found
        files = self.scope.files_in_doubt(origin, as_before=is_in_doubt(present))
        if not files:
            return found
        whole = with_unseen_parts(present, found, unreadable=files)
        if names := unseen_columns(whole):
            self.warnings.append(
                f"{found.urn}: the columns {', '.join(names)} are kept: "
                "files that may have them cannot be read"
            )
        return whole

    def _states(self) -> list[tuple[str, str]]:
        if self.platform is None:
            return []
        return list(self.platform.found_states(sorted(self.scope.sources)))

    def _count(self, step: _Step) -> None:
        if not step.is_news:
            return
        self.touched.add(step.dataset.urn)
        self.changes.extend(step.changes)
        if step.found is None:
            self.removed += 1
        elif step.is_known:
            self.updated += 1
        else:
            self.created += 1

    def _gone(self, urn: str) -> Iterator[_Step]:
        """Yield the removal of a dataset, where nothing is doubtful about it."""
        try:
            dataset = self.platform.find_dataset(urn) if self.platform else None
        except DamagedDocumentError as error:
            self.failures.append((urn, error))
            return
        origin = origin_of(dataset) if dataset is not None else None
        if dataset is None or origin is None:
            return
        if self.scope.has_unreadable(origin) or self.scope.is_unbuilt(origin):
            return
        source = self.scope.sources.get(origin.source)
        is_here = source is not None and source.is_whole_folder and source.holds(dataset.urn)
        is_doubtful = origin.source in self.scope.doubted
        if is_here and not is_doubtful and not self.scope.hides_part_of(dataset, origin.source):
            yield _Step(None, dataset, is_news=True, changes=self.judge(dataset, None))


def _wanted(present: LumosDataset | None, found: LumosDataset) -> LumosDataset:
    """Return a dataset as it is to be: as found, with what people added to it."""
    planned = plan_dataset(present, found, mode=ImportMode.UPDATE).dataset
    if present is None:
        return planned
    others = {
        name: value for name, value in present.extensions.items() if name not in OWN_EXTENSIONS
    }
    return with_parts(planned, extensions={**others, **found.extensions})
