"""One sync: what its plan names is sent, in the order that it depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, cast

from lumos.core.errors import (
    DamagedDocumentError,
    LumosError,
    PlatformConflictError,
    PlatformForbiddenError,
)
from lumos.core.models import LumosDataset, with_parts
from lumos.core.platform.abilities import EntityAbility
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.batches import batches, found_together, together
from lumos.core.platform.entities import kind_of, name_of
from lumos.core.platform.refusals import REFUSALS, Streak, ends_run
from lumos.core.platform.threads import mapped, threads
from lumos.core.progress import SILENT, Progress
from lumos.core.store.documents import stored_object
from lumos.core.store.sync_states import SentState
from lumos.feature.sync.items import (
    BEFORE_DATASETS,
    DATASET,
    EDGE,
    EXTENSION,
    IDENTITY,
    JOB,
    SyncItem,
    as_sent,
    items_of,
)
from lumos.feature.sync.truth import merged_entity, merged_parts, remembered_of, shows

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from datetime import datetime

    from pydantic import JsonValue

    from lumos.core.models import LineageEdge
    from lumos.core.platform.batch import Document
    from lumos.core.platform.interface import Entity, EntityKind
    from lumos.feature.sync.plan import Found, SyncPlan
    from lumos.feature.sync.settings import SyncSettings
    from lumos.feature.sync.tally import Ends, SyncTally
    from lumos.feature.sync.truth import Merged

_LOOKED_UP_AHEAD = 100
"""How many datasets the catalog is asked for, at least, before they are sent."""
_EDGES_IN_ORDER = 5_000
"""How many steps of lineage are ordered by where they lead."""
_SHOWN_EVERY = 10
_CONFLICTS = 20
"""How often a dataset is looked at anew that somebody else goes on changing."""


class _Sent(NamedTuple):
    """The outcome of one item."""

    name: str
    state: SentState | None = None
    error: LumosError | None = None
    written: bool = False
    conflicts: tuple[str, ...] = ()


class _Outgoing(NamedTuple):
    """A dataset to send."""

    name: str
    hash: str
    document: dict[str, JsonValue]
    seen: Seen | LumosError | None = None
    """What the catalog holds of it, or why it could not be asked; None where it was not asked."""
    kept: Mapping[str, JsonValue] | None = None
    """What was remembered when it was last sent."""
    chosen: Merged | None = None
    """What it is to be, where that is known already."""

    @classmethod
    def of(cls, found: Found) -> _Outgoing:
        return cls(found.name, found.hash, stored_object(found.document))

    @property
    def remote(self) -> LumosDataset | None:
        return self.seen.dataset if isinstance(self.seen, Seen) else None

    @property
    def hidden(self) -> frozenset[str]:
        return self.seen.hidden if isinstance(self.seen, Seen) else frozenset()


class SyncRun:
    """One sync that is under way.

    What the catalog acknowledged is kept after each batch: a sync that was killed is finished by
    the next one, which sends at most one batch again. One that lost its lease, because it was
    paused or cut off from the database, sends nothing more: another process may be sending.
    """

    def __init__(
        self,
        ends: Ends,
        settings: SyncSettings,
        *,
        plan: SyncPlan,
        tally: SyncTally,
        clock: Callable[[], datetime],
        take_in: Callable[[LumosDataset], None] | None = None,
        progress: Progress = SILENT,
    ) -> None:
        """Get ready.

        Args:
            ends: where to read and to write.
            settings: how.
            plan: what to send.
            tally: what to count in.
            clock: the time.
            take_in: writes a dataset as people changed it in the catalog to where it is read from.
            progress: receives how much was sent.
        """
        self._take_in = take_in
        _, self._target, self._states = ends
        self._settings = settings
        self._plan = plan
        self._tally = tally
        self._clock = clock
        self._progress = progress
        self._shown: Counter[str] = Counter()
        self._arrived: Counter[str] = Counter()
        self._forbidden: PlatformForbiddenError | None = None
        self.refused_datasets: set[str] = set()
        """The URNs of those that the catalog did not take."""
        self._workers = min(settings.workers, self._target.CONCURRENCY)

    def send(self) -> None:
        """Send what differs: definitions, people and vocabulary, datasets, jobs, lineage, the rest.

        Raises:
            PlatformError: the catalog is out of reach; what it acknowledged is kept.
            PlatformForbiddenError: the catalog allows nothing of it, and never did.
        """
        try:
            self._send()
        except BaseException as error:
            error.add_note(self._how_far())
            raise

    def _send(self) -> None:
        self._prepare_extensions()
        for kind in BEFORE_DATASETS:
            self._send_vocabulary(kind)
        self._send_datasets()
        self._send_items(JOB)
        self._send_edges()
        self._send_items(IDENTITY)
        self._send_items(EXTENSION)
        ever = self._arrived.total() + sum(kind.unchanged for kind in self._tally.kinds.values())
        if self._forbidden is not None and not ever:
            raise self._forbidden
        self._tally.all_sent = True

    def _how_far(self) -> str:
        """Return for people what the catalog acknowledged of what was to be sent."""
        kinds = (*BEFORE_DATASETS, DATASET, JOB, EDGE, IDENTITY, EXTENSION)
        parts = [
            f"{self._arrived[kind]:,} of {count:,} {_plural(kind)}"
            for kind in kinds
            if (count := self._plan.count(kind))
        ]
        return f"sent before it ended: {', '.join(parts) or 'nothing'}; run again to go on"

    def _prepare_extensions(self) -> None:
        """Create first what datasets refer to; it is counted later, when its content is sent."""
        for item in self._plan.items(EXTENSION):
            self._states.require_lease()
            value = cast("JsonValue", item.content)
            prepare = partial(self._target.apply, Batch(definitions={item.name: value}))
            error = _attempted(item._replace(send=prepare)).error
            if error is not None:
                item_name = self._tally.item(EXTENSION, item.name)
                self._tally.recorder.failed(f"definitions of {item_name}", error)
                if ends_run(error):
                    raise error

    def _send_vocabulary(self, kind: EntityKind) -> None:
        """Send entities as they are to be where people may have changed them in the catalog."""
        known: Mapping[str, Entity] | LumosError | None = None
        for page in batches(self._plan.items(kind), self._settings.batch_size):
            if known is None:
                known = self._known_entities(kind)
            names = [item.name for item in page]
            kept = self._states.kept_of(kind, names, damaged=self._warn_of_damage)
            self._keep(kind, (self._sent_entity(item, known, kept) for item in page))

    def _known_entities(self, kind: EntityKind) -> Mapping[str, Entity] | LumosError:
        if not self._settings.truth.asks:
            return {}
        try:
            listed = EntityAbility.of(self._target).list_entities(kind)
            return {name_of(entity): entity for entity in listed}
        except REFUSALS as error:
            return error

    def _sent_entity(
        self,
        item: SyncItem,
        known: Mapping[str, Entity] | LumosError,
        kept: Mapping[str, Mapping[str, JsonValue]],
    ) -> _Sent:
        if isinstance(known, LumosError):
            return _Sent(item.name, error=known)
        entity = cast("Entity", item.content)
        remote = known.get(item.name)
        if remote is None and (odd := self._odd_there(entity)):
            return _Sent(item.name, error=odd)  # what people said of it is not known
        chosen = merged_entity(
            entity,
            remote,
            kept=kept.get(item.name),
            policy=self._settings.truth.governance,
        )
        if chosen.entity != remote:
            self._states.require_lease()
            try:
                self._target.apply(Batch(entities=(chosen.entity,)))
            except REFUSALS as error:
                return _Sent(item.name, error=error)
        state = SentState(item.name, item.hash, chosen.kept)
        return _Sent(item.name, state, written=chosen.entity != remote, conflicts=chosen.conflicts)

    def _odd_there(self, entity: Entity) -> LumosError | None:
        """Return why what the catalog has under a name could not be read, where it has it."""
        kind, name = kind_of(entity), name_of(entity)
        odd = (each for each in self._target.unreadable() if each.kind == kind)
        return next((each.error for each in odd if each.name.endswith(name)), None)

    def _send_items(self, kind: str) -> None:
        there = self._known_there(kind)
        self._keep(kind, (self._sent_item(item, there) for item in self._plan.items(kind)))

    def _sent_item(self, item: SyncItem, there: Mapping[str, str]) -> _Sent:
        if there.get(item.name) == item.hash:
            return _Sent(item.name, SentState(item.name, item.hash))
        self._states.require_lease()
        return _attempted(item)

    def _send_edges(self) -> None:
        """Send steps of lineage together, those that lead to the same dataset by one thread.

        Those that lead to a dataset that was refused wait, like it, for the next sync: some
        catalogs would make a dataset of them that is nothing but lineage.
        """
        send = partial(self._send_edge_chunk, there=self._known_there(EDGE))
        items = (
            item
            for some in batches(self._plan.items(EDGE), _EDGES_IN_ORDER)
            for item in sorted(some, key=_leads_to)
            if _leads_to(item) not in self.refused_datasets
        )
        chunks = batches(items, self._target.EDGE_BATCH)
        with closing(mapped(send, chunks, workers=self._workers)) as sent:
            self._keep(EDGE, chain.from_iterable(sent))

    def _send_edge_chunk(self, chunk: Sequence[SyncItem], there: Mapping[str, str]) -> list[_Sent]:
        def send(items: Sequence[SyncItem]) -> list[_Sent]:
            new = [item for item in items if there.get(item.name) != item.hash]
            if new:
                self._states.require_lease()
                edges = [cast("LineageEdge", item.content) for item in new]
                self._target.apply(Batch(edges=edges))
            states = {item.name: SentState(item.name, item.hash) for item in items}
            written = {item.name for item in new}
            return [_Sent(name, states[name], written=name in written) for name in states]

        return together(send, chunk, refused=lambda item, error: _Sent(item.name, error=error))

    def _known_there(self, kind: str) -> Mapping[str, str]:
        """Return what the catalog has of a kind, as name and hash, where all is looked at again."""
        if not self._plan.full or not self._plan.count(kind):
            return {}
        held = items_of(kind, self._target, self._target, wanted=lambda _: True)
        return {item.name: item.hash for item in held}

    def _send_datasets(self) -> None:
        """Send datasets in one stream: while some are under way, the next are got ready."""
        batch, workers = self._target.BATCH, self._workers
        ahead = max(_LOOKED_UP_AHEAD, 2 * batch * workers)
        with threads(workers) as pool:
            outgoing = self._looked_up(map(_Outgoing.of, self._plan.found()), pool, ahead=ahead)
            sent = mapped(
                self._send_chunk,
                batches(outgoing, batch),
                workers=workers,
                ahead=max(4 * workers, ahead // batch),
                pool=pool,
            )
            with closing(outgoing), closing(sent):
                self._keep(DATASET, (each for some in sent for each in some))

    def _looked_up(
        self, outgoing: Iterator[_Outgoing], pool: Executor, *, ahead: int
    ) -> Generator[_Outgoing]:
        """Yield datasets with what the catalog has of them, where that may count."""
        if not self._settings.truth.asks:
            yield from outgoing
            return
        size = self._target.LOOK_UP
        groups = mapped(
            self._found_there,
            batches(outgoing, size),
            workers=self._workers,
            ahead=max(2, ahead // size) + 2,
            pool=pool,
        )
        with closing(groups):
            for group in groups:
                names = [item.name for item in group if item.remote]
                kept = self._states.kept_of(DATASET, names, damaged=self._warn_of_damage)
                for item in group:
                    yield self._with_edits(item._replace(kept=kept.get(item.name)))

    def _with_edits(self, item: _Outgoing) -> _Outgoing:
        """Return a dataset to send with what people changed of it in the catalog.

        That is kept here first, as what people of this catalog say: other catalogs are sent it too.
        """
        if item.remote is None:
            return item
        ours = LumosDataset.from_document(item.document)
        chosen = self._merged(ours, item, item.remote)
        edited = with_parts(chosen.dataset, extensions=ours.extensions)
        if self._take_in is None or edited == ours:
            return item._replace(chosen=chosen)
        self._take_in(edited)
        found = self._plan.document_of(item.name)
        if found is None:
            return item._replace(chosen=chosen)
        document = stored_object(found.document)
        again = self._merged(LumosDataset.from_document(document), item, item.remote)
        return item._replace(
            document=document, hash=found.hash, chosen=again._replace(conflicts=chosen.conflicts)
        )

    def _merged(self, ours: LumosDataset, item: _Outgoing, remote: LumosDataset) -> Merged:
        truth, catalog = self._settings.truth, self._target.name
        return merged_parts(
            ours, remote, kept=item.kept, truth=truth, catalog=catalog, hidden=item.hidden
        )

    def _warn_of_damage(self, error: DamagedDocumentError) -> None:
        self._tally.recorder.warning(
            f"{error.message}: it is compared with the catalog as if it had never been sent"
        )

    def _found_there(self, group: Sequence[_Outgoing]) -> list[_Outgoing]:
        found = found_together(self._target, [item.name for item in group])
        return [item._replace(seen=found[item.name], chosen=None) for item in group]

    def _keep(self, kind: str, outcomes: Iterable[_Sent]) -> None:
        """Remember what was acknowledged, also when the catalog is lost halfway through."""
        acknowledged: list[SentState] = []
        tally, streak = self._tally, Streak()
        try:
            for outcome in outcomes:
                self._show(kind)
                self._count(kind, outcome)
                if outcome.state is not None:
                    acknowledged.append(outcome.state)
                    self._arrived[kind] += 1
                elif outcome.error is not None:
                    if isinstance(outcome.error, PlatformForbiddenError):
                        self._forbidden = self._forbidden or outcome.error
                    tally.refused(kind, outcome.name, outcome.error)
                    if kind == DATASET:
                        self.refused_datasets.add(outcome.name)
                if streak.ends_run(outcome.error) and outcome.error is not None:
                    raise outcome.error
                if len(acknowledged) >= self._settings.batch_size:
                    done, acknowledged = acknowledged, []
                    self._states.put(kind, done, at=self._clock())
        finally:
            if acknowledged:
                self._states.put(kind, acknowledged, at=self._clock())

    def _count(self, kind: str, outcome: _Sent) -> None:
        tally = self._tally
        tally.writes += outcome.written
        tally.conflicts.extend(f"{outcome.name} {name}" for name in outcome.conflicts)
        tally.done(outcome.state is not None)
        differs = self._plan.differs(kind, outcome.name)
        tally.same_there += differs and outcome.state is not None and not outcome.written
        if outcome.written and not differs:  # it was the catalog that had lost or changed it
            tally.of(kind).unchanged -= 1
            tally.of(kind).changed += 1

    def _show(self, kind: str) -> None:
        self._shown[kind] += 1
        done, title = self._shown[kind], _plural(kind)
        if done == 1:
            self._progress.stage(f"sending {title}", total=self._plan.count(kind), unit=title)
        elif not done % _SHOWN_EVERY:
            self._progress.advance(done)

    def _send_chunk(self, chunk: Sequence[_Outgoing]) -> list[_Sent]:
        return together(self._sent_together, chunk, refused=self._refused)

    def _refused(self, item: _Outgoing, error: LumosError) -> _Sent:
        """Look again at what people changed between look-up and write, and send it once more."""
        for _ in range(_CONFLICTS if self._settings.truth.asks else 0):
            if not isinstance(error, PlatformConflictError):
                break
            try:
                return self._sent_together(self._found_there([item]))[0]
            except REFUSALS as another:
                error = another
        return _Sent(item.name, error=error)

    def _sent_together(self, chunk: Sequence[_Outgoing]) -> list[_Sent]:
        writing: list[Document] = []
        outcomes = [self._ready(item, writing) for item in chunk]
        if writing:
            self._states.require_lease()
            seen = {item.name: item.seen for item in chunk if isinstance(item.seen, Seen)}
            self._target.apply(Batch(datasets=writing), seen)
        return outcomes

    def _ready(self, item: _Outgoing, writing: list[Document]) -> _Sent:
        """Add what is to be written of a dataset, if anything is, and return its outcome."""
        remote, catalog = item.remote, self._target.name
        if isinstance(item.seen, LumosError):
            return _Sent(item.name, error=item.seen)
        if remote is None:
            writing.append(item.document)
            kept = remembered_of(item.document, catalog=catalog)
            return _Sent(item.name, SentState(item.name, item.hash, kept), written=True)
        ours = LumosDataset.from_document(item.document)
        chosen = item.chosen or self._merged(ours, item, remote)
        # What only the catalog knows of it may stand for something that has to be shown again.
        same = (
            ours.extensions == chosen.dataset.extensions
            and as_sent(shows(remote, item.kept, hidden=item.hidden), self._target)
            == chosen.dataset
        )
        if not same:
            writing.append(chosen.dataset.document)
        state = SentState(item.name, item.hash, chosen.kept)
        return _Sent(item.name, state, written=not same, conflicts=chosen.conflicts)


def _plural(kind: str) -> str:
    words = kind.replace("_", " ")
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _leads_to(item: SyncItem) -> str:
    return cast("LineageEdge", item.content).downstream_urn


def _attempted(item: SyncItem) -> _Sent:
    try:
        item.send()
    except REFUSALS as error:
        return _Sent(item.name, error=error)
    return _Sent(item.name, SentState(item.name, item.hash), written=True)
