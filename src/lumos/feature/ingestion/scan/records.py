"""The part of an ingestion that scans sources by records: databases, dbt, plug-ins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import orjson

from lumos.core.events import emit
from lumos.core.models import LineageEdge, Observation, Urn
from lumos.core.platform.entities import ENTITY_KINDS, ENTITY_MODELS, EntityKind
from lumos.feature.ingestion.found_datasets import Find
from lumos.feature.ingestion.scan.record_evidence import RecordEvidence
from lumos.feature.ingestion.scan.record_functions import (
    PlannedSource,
    RecordFunctions,
    plan_sources,
)
from lumos.feature.ingestion.scan.sources import all_of
from lumos.spark.record_pipeline import RecordPipeline
from lumos.spark.stages.rows import SKIPPED, UNIT_FAILED, UNLISTED_PART, WARNING

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.errors import LumosError
    from lumos.core.platform.entities import Entity
    from lumos.core.progress import Progress
    from lumos.core.run_report import RunRecorder
    from lumos.feature.ingestion.found_datasets import FoundDatasets
    from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordHandler
    from lumos.feature.ingestion.records import PreviousScan
    from lumos.feature.ingestion.state_writer import StateWriter
    from lumos.spark.file_index import Session
    from lumos.spark.record_pipeline import FoundProblem, ScannedUnit
    from lumos.spark.stages.rows import BuiltDataset, UnitToScan

_MOST_UNITS_LOGGED = 1_000
"""Of one source, each by itself; all count for the source."""


@dataclass
class RecordScan:
    """What the sources of a run that are scanned by records said."""

    sources: Sequence[str]
    pipeline: RecordPipeline | None
    """None where there is no such source."""
    evidence: RecordEvidence
    failures: Sequence[LumosError]
    """Why sources as a whole could not be scanned."""

    @classmethod
    def of(
        cls,
        handlers: Sequence[RecordHandler],
        session: Session,
        *,
        work: Path,
        previous: Mapping[str, PreviousScan],
        recorder: RunRecorder,
        progress: Progress,
    ) -> RecordScan:
        """Plan and scan; what could not be scanned or read goes into the report."""
        if not handlers:
            return cls((), None, RecordEvidence(), ())
        failures: list[LumosError] = []
        plans: dict[str, PlannedSource] = {}
        for planned in plan_sources(handlers, previous):
            if planned.error is None:
                plans[planned.name] = planned
            else:
                failures.append(planned.error)
                recorder.failed(planned.name, planned.error)
        usable = [handler for handler in handlers if handler.name in plans]
        functions = RecordFunctions.of(usable, folder=work)
        units: list[UnitToScan] = []
        for name, planned in plans.items():
            units += functions.units_of(name, planned.units)
        pipeline = RecordPipeline(session, functions, work=work / "records", progress=progress)
        pipeline.run(units)
        problems = [*pipeline.problems()]
        for problem in problems:
            _report(problem, recorder)
        failed = Counter(each.source for each in problems if each.kind == UNIT_FAILED)
        for source, scanned in groupby(pipeline.units(), key=lambda unit: unit.source):
            _log_source(source, [*scanned], failed=failed[source])
        evidence = RecordEvidence.of(pipeline.scopes(), problems)
        return cls([handler.name for handler in handlers], pipeline, evidence, failures)

    def require_any(self) -> None:
        """Refuse to go on where not one source could be scanned.

        Raises:
            LumosError: why.
        """
        if self.failures and len(self.failures) == len(self.sources):
            raise all_of(self.failures)

    @property
    def may_need_spark(self) -> bool:
        """Whether a job of Spark may be needed to find what differs."""
        return self.pipeline is not None and self.pipeline.may_need_spark

    def finds(self) -> list[Find]:
        """Return what each source found; two may have found the same dataset."""
        return [Find(_OfSource(self.pipeline, name), self.evidence, [name]) for name in self._all()]

    def found(self) -> Iterator[BuiltDataset]:
        """Yield every dataset."""
        if self.pipeline is not None:
            yield from self.pipeline.found()

    def formats(self) -> Counter[str]:
        """Return how many datasets there are of each platform; two sources may have the same."""
        named = self.pipeline.formats_by_urn() if self.pipeline else {}
        return Counter(named.values())

    def publish_others(self, found: FoundDatasets, writer: StateWriter) -> None:
        """Write people, tags, jobs and lineage; datasets are versioned with their new lineage."""
        if self.pipeline is None:
            return
        for kind in ENTITY_KINDS:
            documents = (record.document for record in self.pipeline.records(kind))
            writer.put_entities(kind, map(partial(_entity, kind), documents))
        edges: dict[str, list[LineageEdge]] = {name: [] for name in self._all()}
        for record in self.pipeline.edges():
            edges[record.source].append(LineageEdge.from_json(orjson.loads(record.document)))
        for name, said in edges.items():
            is_gone = partial(self.evidence.covers, source=name)
            contributor = found.speakers[name].contributor
            found.put_edges(writer, contributor, said, is_gone=is_gone)

    def publish_observations(self, found: FoundDatasets, writer: StateWriter) -> None:
        """Append what was measured of datasets, after these were written."""
        measured: dict[str, dict[Urn, list[Observation]]] = {}
        for record in self.pipeline.observations() if self.pipeline else ():
            observation = Observation.from_json(orjson.loads(record.document))
            by_urn = measured.setdefault(record.source, {})
            by_urn.setdefault(observation.urn, []).append(observation)
        for source, by_urn in sorted(measured.items()):
            ordered = {urn: sorted(by_urn[urn], key=lambda each: each.at) for urn in sorted(by_urn)}
            found.put_observations(writer, found.speakers[source].contributor, ordered)

    def keep_marks(self, writer: StateWriter) -> None:
        """Keep where the scans ended, for the next ones to plan by."""
        for source, marks in (self.pipeline.marks() if self.pipeline else {}).items():
            writer.tables.scan_marks.replace(source, marks)

    def _all(self) -> Sequence[str]:
        return self.sources if self.pipeline is not None else ()


@dataclass(frozen=True)
class _OfSource:
    """The datasets of one source."""

    pipeline: RecordPipeline | None
    source: str

    def differing(self, states: Iterable[tuple[str, str]]) -> Iterator[BuiltDataset | str]:
        if self.pipeline is not None:
            yield from self.pipeline.differing(states, source=self.source)


def _entity(kind: EntityKind, document: str) -> Entity:
    return ENTITY_MODELS[kind].from_json(orjson.loads(document))


def _log_source(source: str, units: Sequence[ScannedUnit], *, failed: int) -> None:
    """Log the retries of a source, and where its time went."""
    for unit in units:
        for retry in unit.log.retries:
            emit("unit.retried", source=source, unit=unit.label, **retry._asdict())
    for unit in units[:_MOST_UNITS_LOGGED]:
        seconds, datasets, _ = unit.log
        emit("unit.scanned", source=source, unit=unit.label, seconds=seconds, datasets=datasets)
    slowest = max(units, key=lambda unit: unit.log.seconds)
    emit(
        "source.scanned",
        source=source,
        units=len(units),
        failed=failed,
        retries=sum(len(unit.log.retries) for unit in units),
        datasets=sum(unit.log.datasets for unit in units),
        seconds=round(sum(unit.log.seconds for unit in units), 3),
        slowest=slowest.label,
        slowest_seconds=slowest.log.seconds,
    )


def _report(problem: FoundProblem, recorder: RunRecorder) -> None:
    """Put what went wrong, or was left out, into the report."""
    item = f"{problem.source}: {problem.item}"
    if problem.kind == SKIPPED:
        recorder.skipped(item, reason=problem.reason)
    elif problem.kind == WARNING:
        recorder.warning(f"{item}: {problem.reason}")
    else:
        recorder.failed_elsewhere(
            item,
            reason=problem.reason,
            code=problem.code,
            hint=problem.hint,
            retryable=problem.retryable,
            scope_seen=problem.kind not in (UNIT_FAILED, UNLISTED_PART),
        )
