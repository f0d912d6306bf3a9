"""Brings what a scan found into the catalog, and takes out what is surely gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from lumos.core.controllers.results import DatasetCounts
from lumos.core.controllers.storage_functions import OWN_EXTENSIONS, origin_of
from lumos.core.models import LumosDataset, Urn, with_parts
from lumos.feature.snapshot.import_plan import ImportMode, PlannedAction, plan_dataset

if TYPE_CHECKING:
    from lumos.core.controllers.import_controller import ImportTarget
    from lumos.core.run_report import RunRecorder
    from lumos.spark.pipeline import Pipeline


@dataclass
class Scope:
    """What a scan was to look at, and what of it nobody could see."""

    roots: Mapping[str, str]
    """The root folder of each source."""
    incomplete: set[str] = field(default_factory=set)
    """Sources of which a part could not be listed."""
    closed: dict[str, list[str]] = field(default_factory=dict)
    """The folders that could not be listed, by source, as paths below its root."""

    def hides_part_of(self, dataset: LumosDataset, source: str) -> bool:
        """Tell whether files of a dataset may lie where nobody could look."""
        prefix = (dataset.location.prefix if dataset.location else None) or "/"
        return any(
            f"/{folder}/".startswith(prefix) or prefix.startswith(f"/{folder}/")
            for folder in self.closed.get(source, ())
        )


@dataclass
class FoundDatasets:
    """The datasets of one run, counted as they are published."""

    scope: Scope
    recorder: RunRecorder
    found: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    touched: set[Urn] = field(default_factory=set)
    datasets: list[LumosDataset] = field(default_factory=list)

    def look_at(self, pipeline: Pipeline) -> None:
        """Only gather what was found."""
        for built in pipeline.datasets():
            dataset = LumosDataset.from_json(orjson.loads(built.document))
            self._see(dataset, built.warnings)
            self.datasets.append(dataset)

    def publish(self, pipeline: Pipeline, target: ImportTarget) -> None:
        """Write what changed and retire what is gone, all in one transaction."""
        platform, publisher, database = target
        seen: set[str] = set()
        with database.transaction():
            for built in pipeline.datasets():
                dataset = LumosDataset.from_json(orjson.loads(built.document))
                self._see(dataset, built.warnings)
                seen.add(dataset.urn)
                present = platform.find_dataset(dataset.urn)
                if present is not None and self.scope.hides_part_of(dataset, built.source):
                    self.unchanged += 1  # half a look is no reason to change anything
                    continue
                wanted, action = _planned(present, dataset)
                self._count(wanted, action)
                if action is not PlannedAction.KEEP:
                    publisher.publish(wanted)
            for dataset in self._gone(pipeline, target, seen=seen):
                publisher.retire(dataset)
                self.touched.add(dataset.urn)
                self.removed += 1

    def counts(self) -> DatasetCounts:
        """Return what happened to the datasets."""
        return DatasetCounts(
            found=self.found,
            created=self.created,
            updated=self.updated,
            unchanged=self.unchanged,
            removed=self.removed,
        )

    def _see(self, dataset: LumosDataset, warnings: str | None) -> None:
        self.found += 1
        self.formats[dataset.format or "unknown"] += 1
        self.recorder.done(dataset.urn)
        for text in orjson.loads(warnings) if warnings else ():
            self.recorder.warning(f"{dataset.urn}: {text}")

    def _count(self, dataset: LumosDataset, action: PlannedAction) -> None:
        if action is PlannedAction.KEEP:
            self.unchanged += 1
            return
        self.touched.add(dataset.urn)
        if action is PlannedAction.CREATE:
            self.created += 1
        else:
            self.updated += 1

    def _gone(
        self, pipeline: Pipeline, target: ImportTarget, *, seen: set[str]
    ) -> list[LumosDataset]:
        unreadable = pipeline.unreadable_datasets()
        gone = []
        for dataset in target.platform.list():
            origin = origin_of(dataset)
            if origin is None or dataset.urn in seen or origin in unreadable:
                continue
            root = self.scope.roots.get(origin.source)
            same_root = dataset.location is not None and dataset.location.path == root
            if same_root and origin.source not in self.scope.incomplete:
                gone.append(dataset)
        return gone


def _planned(
    present: LumosDataset | None, found: LumosDataset
) -> tuple[LumosDataset, PlannedAction]:
    planned = plan_dataset(present, found, mode=ImportMode.UPDATE)
    if present is None:
        return planned.dataset, planned.action
    others = {
        name: value for name, value in present.extensions.items() if name not in OWN_EXTENSIONS
    }
    wanted = with_parts(planned.dataset, extensions={**others, **found.extensions})
    return wanted, PlannedAction.KEEP if wanted == present else PlannedAction.UPDATE
