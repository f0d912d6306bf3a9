"""One sync: only what differs from the last one is sent, in the order that it depends on."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from lumos.core.errors import LumosError
from lumos.core.models.base import sha256_of
from lumos.core.platform.batches import batches, looked_up, together
from lumos.core.platform.entities import name_of
from lumos.core.platform.fidelity import FidelityCount
from lumos.core.platform.http import mapped
from lumos.core.platform.interface import Capability
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.progress import SILENT, Progress
from lumos.core.store.sync_states import SentState
from lumos.feature.sync.items import (
    BEFORE_DATASETS,
    DATASET,
    EDGE,
    EXTENSION,
    IDENTITY,
    Item,
    as_sent,
    edge_items,
    entity_items,
    extension_items,
    identity_items,
)
from lumos.feature.sync.truth import merged, merged_entity

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import JsonValue

    from lumos.core.models import LineageEdge, LumosDataset
    from lumos.core.platform.interface import Entity, EntityKind, MetadataPlatformInterface
    from lumos.core.run_report import RunRecorder
    from lumos.core.settings.sync import SyncSettings
    from lumos.core.store.sync_states import SyncStates

T = TypeVar("T")


@dataclass
class KindTally:
    """What became of the things of one kind."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    removed: int = 0


@dataclass
class SyncTally:
    """What a sync did, or would do."""

    recorder: RunRecorder
    kinds: dict[str, KindTally] = field(default_factory=dict)
    fidelity: FidelityCount = field(default_factory=FidelityCount)
    writes: int = 0
    same_there: int = 0
    """What the catalog had already in the state that was to be sent."""
    conflicts: list[str] = field(default_factory=list)

    def of(self, kind: str) -> KindTally:
        return self.kinds.setdefault(kind, KindTally())

    @property
    def failed(self) -> int:
        return sum(kind.failed for kind in self.kinds.values())


class Ends(NamedTuple):
    """Where a sync reads and writes, and what it remembers."""

    source: MetadataPlatformInterface
    target: MetadataPlatformInterface
    states: SyncStates


class _Sent(NamedTuple):
    """What became of one thing."""

    name: str
    state: SentState | None = None
    error: LumosError | None = None
    written: bool = False
    conflicts: tuple[str, ...] = ()


class SyncRun:
    """One sync that is under way.

    What the catalog acknowledged is kept after each batch: a sync that was killed is finished by
    the next one, which sends at most one batch again.
    """

    def __init__(
        self,
        ends: Ends,
        settings: SyncSettings,
        *,
        tally: SyncTally,
        clock: Callable[[], datetime],
        wanted: Callable[[LumosDataset], bool] | None = None,
        full: bool = False,
        dry_run: bool = False,
        progress: Progress = SILENT,
    ) -> None:
        """Get ready.

        Args:
            ends: where to read and to write.
            settings: how.
            tally: what to count in.
            clock: the time.
            wanted: which datasets; without it all of them.
            full: look also at what did not change since the last sync.
            dry_run: count only.
            progress: is told how much was sent.
        """
        self._source, self._target, self._states = ends
        self._settings = settings
        self._tally = tally
        self._clock = clock
        self._wanted = wanted
        self._full = full
        self._dry_run = dry_run
        self._progress = progress
        self._shown: Counter[str] = Counter()
        self._workers = min(settings.workers, self._target.CONCURRENCY)
        self._asks = settings.truth.asks
        self.datasets: set[str] = set()
        self.edges: set[str] = set()

    def send(self) -> None:
        """Send what differs: definitions, people and vocabulary, datasets, jobs, lineage, the rest.

        Raises:
            PlatformError: the catalog is out of reach; what it acknowledged is kept.
        """
        source, target = self._source, self._target
        self._prepare_extensions()
        for kind in BEFORE_DATASETS:
            self._send_vocabulary(kind)
        self._send_datasets()
        self._entities("job")
        if self._both(Capability.LINEAGE, "lineage edges"):
            found = edge_items(source, target, wanted=self._leads_to_wanted)
            self._send_items(EDGE, self._seen(found), workers=self._workers)
        if self._both(Capability.IDENTITY_MAP, "identities of other catalogs"):
            self._send_items(IDENTITY, identity_items(source, target))
        if self._both(Capability.EXTENSIONS, "extensions"):
            self._send_items(EXTENSION, extension_items(source, target.emit_extension))

    def _prepare_extensions(self) -> None:
        """Let the catalog know first what datasets refer to; what is sent of it is told later."""
        if self._dry_run or not self._both(Capability.EXTENSIONS, "extensions"):
            return
        for item in extension_items(self._source, self._target.prepare_extension):
            known = self._states.hashes(EXTENSION, [item.name]).get(item.name)
            error = _attempted(item).error if self._full or known != item.hash else None
            if error is not None:
                self._tally.recorder.failed(f"definitions of {EXTENSION} {item.name}", error)
                if ends_run(error):
                    raise error

    def _entities(self, kind: str) -> None:
        if self._both(Capability.ENTITIES, _ENTITIES):
            self._send_items(kind, entity_items(kind, self._source, self._target))  # type: ignore[arg-type]

    def _send_vocabulary(self, kind: EntityKind) -> None:
        """Send entities as they are to be where people may have changed them in the catalog."""
        if not self._both(Capability.ENTITIES, _ENTITIES):
            return
        known: Mapping[str, Entity] | LumosError | None = None
        items = entity_items(kind, self._source, self._target)
        for page in batches(items, self._settings.batch_size):
            todo = self._counted(kind, page)
            if not todo or self._dry_run:
                continue
            if known is None:
                known = self._known_entities(kind)
            kept = self._states.kept_of(kind, [item.name for item in todo])
            self._keep(kind, (self._sent_entity(item, known, kept) for item in todo))

    def _known_entities(self, kind: EntityKind) -> Mapping[str, Entity] | LumosError:
        if not self._asks:
            return {}
        try:
            return {name_of(entity): entity for entity in self._target.list_entities(kind)}
        except REFUSALS as error:
            return error

    def _sent_entity(
        self,
        item: Item,
        known: Mapping[str, Entity] | LumosError,
        kept: Mapping[str, Mapping[str, JsonValue]],
    ) -> _Sent:
        if isinstance(known, LumosError):
            return _Sent(item.name, error=known)
        remote = known.get(item.name)
        chosen = merged_entity(
            cast("Entity", item.content),
            remote,
            kept=kept.get(item.name),
            policy=self._settings.truth.governance,
        )
        if chosen.entity != remote:
            try:
                self._target.emit_entity(chosen.entity)
            except REFUSALS as error:
                return _Sent(item.name, error=error)
        state = SentState(item.name, item.hash, chosen.kept)
        return _Sent(item.name, state, written=chosen.entity != remote, conflicts=chosen.conflicts)

    def _both(self, capability: Capability, what: str) -> bool:
        if capability not in self._source.capabilities:
            return False
        if capability not in self._target.capabilities:
            self._tally.recorder.warning(f"{self._target.name} keeps no {what}: none is sent")
            return False
        return True

    def _selected(self) -> Iterator[LumosDataset]:
        for dataset in self._source.list():
            if self._wanted is None or self._wanted(dataset):
                self.datasets.add(dataset.urn)
                yield dataset

    def _leads_to_wanted(self, edge: LineageEdge) -> bool:
        return self._wanted is None or edge.downstream_urn in self.datasets

    def _seen(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self.edges.add(item.name)
            yield item

    def _send_items(self, kind: str, items: Iterable[Item], *, workers: int = 1) -> None:
        for page in batches(items, self._settings.batch_size):
            todo = self._counted(kind, page)
            if not self._dry_run:
                with closing(mapped(_attempted, todo, workers=workers)) as outcomes:
                    self._keep(kind, outcomes)

    def _counted(self, kind: str, page: Sequence[Item]) -> list[Item]:
        """Return what differs from the last sync, once it is counted what becomes of it."""
        todo = self._differing(kind, page, hash_of=lambda item: item.hash)
        for item in todo:
            mappings = getattr(item.content, "column_mappings", ())
            self._tally.fidelity.add(_CONCEPTS.get(kind, kind))
            self._tally.fidelity.add("column_lineage", len(mappings))
        return todo

    def _send_datasets(self) -> None:
        """Send datasets in one stream: while some are under way, the next are got ready."""
        batch = self._target.BATCH
        size = max(_LOOK_UP, 2 * batch * self._workers)
        pages = map(self._changed, batches(self._selected(), size))
        if self._dry_run:
            deque(pages, maxlen=0)
            return
        ready = (chunk for page in pages for chunk in batches(self._looked_up(page), batch))
        ahead = max(4 * self._workers, size // batch)
        sent = mapped(self._send_chunk, ready, workers=self._workers, ahead=ahead)
        with closing(sent):
            self._keep(DATASET, (each for some in sent for each in some))

    def _changed(self, page: Sequence[LumosDataset]) -> list[_Outgoing]:
        sent = [_Outgoing.of(dataset, self._target) for dataset in page]
        todo = self._differing(DATASET, sent, hash_of=lambda item: item.hash)
        for item in todo:
            self._tally.fidelity.add_dataset(item.content)
        return todo

    def _looked_up(self, todo: Sequence[_Outgoing]) -> Iterator[_Outgoing]:
        """Yield datasets with what the catalog has of them, where that may count."""
        if not self._asks:
            yield from todo
            return
        names = [item.name for item in todo]
        found = looked_up(self._target, names, workers=self._workers)
        kept = self._states.kept_of(DATASET, [*found])
        for item in todo:
            yield item._replace(remote=found.get(item.name), kept=kept.get(item.name))

    def _differing(self, kind: str, page: Sequence[N], *, hash_of: Callable[[N], str]) -> list[N]:
        known = self._states.hashes(kind, [item.name for item in page])
        tally = self._tally.of(kind)
        todo = []
        for item in page:
            before = known.get(item.name)
            if before == hash_of(item) and not self._full:
                tally.unchanged += 1
                continue
            todo.append(item)
            if before is None:
                tally.new += 1
            else:
                tally.changed += 1
        return todo

    def _keep(self, kind: str, outcomes: Iterable[_Sent]) -> None:
        """Remember what was acknowledged, also when the catalog is lost halfway through."""
        acknowledged: list[SentState] = []
        tally = self._tally
        try:
            for outcome in outcomes:
                self._show(kind)
                tally.writes += outcome.written
                tally.conflicts.extend(f"{outcome.name} {name}" for name in outcome.conflicts)
                if outcome.state is not None:
                    acknowledged.append(outcome.state)
                    tally.recorder.done_many(1)
                    tally.same_there += not outcome.written
                elif outcome.error is not None:
                    tally.of(kind).failed += 1
                    tally.recorder.failed(f"{kind} {outcome.name}", outcome.error)
                    if ends_run(outcome.error):
                        raise outcome.error
                if len(acknowledged) >= self._settings.batch_size:
                    done, acknowledged = acknowledged, []
                    self._states.put(kind, done, at=self._clock())
        finally:
            if acknowledged:
                self._states.put(kind, acknowledged, at=self._clock())

    def _show(self, kind: str) -> None:
        self._shown[kind] += 1
        done, title = self._shown[kind], f"{kind.replace('_', ' ')}s"
        if done == 1:
            self._progress.stage(f"sending {title}", unit=title)
        elif not done % _SHOWN_EVERY:
            self._progress.advance(done)

    def _send_chunk(self, chunk: Sequence[_Outgoing]) -> list[_Sent]:
        return together(self._sent_together, chunk, refused=_refused)

    def _sent_together(self, chunk: Sequence[_Outgoing]) -> list[_Sent]:
        outcomes: list[_Sent] = []
        writing: list[LumosDataset] = []
        for item in chunk:
            remote = item.remote
            if isinstance(remote, LumosError):
                outcomes.append(_Sent(item.name, error=remote))
                continue
            chosen = merged(
                item.content,
                remote,
                kept=item.kept,
                truth=self._settings.truth,
                catalog=self._target.name,
            )
            # What only the catalog knows of it may stand for something that has to be shown again.
            same = (
                remote is not None
                and item.content.extensions == chosen.dataset.extensions
                and as_sent(remote, self._target) == chosen.dataset
            )
            if not same:
                writing.append(chosen.dataset)
            state = SentState(item.name, item.hash, chosen.kept)
            outcomes.append(_Sent(item.name, state, written=not same, conflicts=chosen.conflicts))
        if writing:
            self._target.emit_datasets(writing)
        return outcomes


class _Outgoing(NamedTuple):
    """A dataset to send, without what is sent otherwise."""

    name: str
    hash: str
    content: LumosDataset
    remote: LumosDataset | LumosError | None = None
    """What the catalog has of it, or why it could not be asked."""
    kept: Mapping[str, JsonValue] | None = None
    """What was remembered when it was last sent."""

    @classmethod
    def of(cls, dataset: LumosDataset, target: MetadataPlatformInterface) -> _Outgoing:
        plain = as_sent(dataset, target)
        return cls(dataset.urn, sha256_of(plain.document), plain)


N = TypeVar("N", Item, _Outgoing)
_LOOK_UP = 100
"""How many datasets are got ready at a time."""
_SHOWN_EVERY = 10
_ENTITIES = "people, tags, terms, domains or jobs"
_CONCEPTS = {"tag": "tag_definition", "domain": "domain_definition"}


def _attempted(item: Item) -> _Sent:
    try:
        item.send()
    except REFUSALS as error:
        return _Sent(item.name, error=error)
    return _Sent(item.name, SentState(item.name, item.hash), written=True)


def _refused(item: _Outgoing, error: LumosError) -> _Sent:
    return _Sent(item.name, error=error)
