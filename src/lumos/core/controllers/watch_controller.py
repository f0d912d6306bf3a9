"""Watching: events of the sources lead to refreshes of the folders that they are about."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from lumos.core.controllers.ingestion_controller import IngestionController, chosen_sources
from lumos.core.controllers.results import ErrorDetail, WatchRefresh, WatchResult
from lumos.core.errors import ConfigurationError, InputUnreadableError, LumosError, UsageError
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.watching.folders import WHOLE_FOLDER, fewest
from lumos.feature.watching.inbox import Gathered, Inbox
from lumos.feature.watching.local_events import LocalEvents
from lumos.feature.watching.queue_events import QueueEvents, is_below
from lumos.spark.warm_session import WarmSession

if TYPE_CHECKING:
    import threading

    from lumos.core.controllers.results import IngestResult
    from lumos.core.run_report import Clock, ItemOutcome
    from lumos.core.runtime.project import Project
    from lumos.core.storage.s3 import S3Source
    from lumos.feature.ingestion.handlers.factory import AnyHandler
    from lumos.feature.ingestion.scan.sources import Folders
    from lumos.spark.lazy_session import OpenSession, Tell

Reason = Literal["start", "events", "listing"]
OnRefresh = Callable[[WatchRefresh], None]

_LOOK_AT_STOP_SECONDS: Final = 0.2
_FIRST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 300.0
_SECONDS_PER_MINUTE: Final = 60


class Ingest(Protocol):
    """Looks into the folders of a refresh."""

    def __call__(
        self, *, names: Sequence[str], under: Folders | None, snapshot_always: bool
    ) -> IngestResult: ...


class WatchController:
    """What `lumos watch` does."""

    def __init__(self, project: Project, open_session: OpenSession) -> None:
        """Take the project, each refresh of which is a run, and the way to start Spark for all."""
        self._project = project
        self._open_session = open_session

    def watch(
        self,
        *,
        names: Sequence[str] = (),
        once: bool = False,
        listing: bool = True,
        stop: threading.Event,
        on_refresh: OnRefresh,
        tell: Tell,
    ) -> WatchResult:
        """Keep the catalog current until `stop` is set.

        It begins with an ordinary ingest, so that nothing is missed of what happened before. Then
        each refresh looks into the folders that events are about. What fails is tried again.

        Args:
            names: the sources to watch; all of the settings if none is given.
            once: end after the first ingest and a refresh for what waits in queues.
            listing: whether to begin with an ordinary ingest; without, events alone lead to looks.
            stop: ends the watch, after the refresh that is running.
            on_refresh: is called with each refresh.
            tell: is called with a line that says what is watched and how.

        Raises:
            UsageError: there is no source, or none of that name.
            ConfigurationError: the settings cannot be used.
            LumosError: with `once`, what the only try failed of.
        """
        settings = self._project.settings.watch
        inbox = Inbox(quiet=settings.quiet_seconds, longest=settings.longest_seconds)
        with WarmSession(self._open_session) as session, ExitStack() as running:
            skip = str(self._project.state_dir.absolute())
            chosen = chosen_sources(self._project.settings.sources, names)
            handlers = [HandlerFactory.get_handler(each) for each in chosen]
            sources = [each for handler in handlers for each in _watched(handler)]
            ingest = partial(self._ingested, session)
            run = _Watch(ingest, sources, inbox, on_refresh=on_refresh, clock=self._project.clock)
            queues = _queues(handlers, inbox)
            if once:
                if listing:
                    run.refresh(run.everything(), "start")
                for queue in queues:
                    queue.drain()
                if waiting := inbox.take_all():
                    run.refresh(waiting, "events")
                return WatchResult(refreshes=run.refreshes)
            for handler in handlers:
                for folder in handler.event_folders():
                    events = LocalEvents(folder.without_folder(skip), inbox)
                    running.enter_context(events.running())
            for queue in queues:
                running.enter_context(queue.running())
            tell(_introduction(sources, list_minutes=settings.list_minutes))
            run.until(stop, listing=listing, list_minutes=settings.list_minutes)
        return WatchResult(refreshes=run.refreshes)

    def _ingested(
        self,
        session: OpenSession,
        *,
        names: Sequence[str],
        under: Folders | None,
        snapshot_always: bool,
    ) -> IngestResult:
        """Carry out one refresh; it closes all that it opens, but not Spark."""
        with UnitOfWork(self._project, open_session=session) as work:
            return IngestionController(work).ingest(
                names=names, under=under, snapshot_always=snapshot_always
            )


class _Watched(NamedTuple):
    """A storage of a source, or a source that has none, and who reports its changes."""

    entry: str
    """The source, as the settings call it."""
    name: str
    folders: tuple[str, ...] = ()
    """The only folders of the storage that are looked into; none stands for all."""
    reported_by: str | None = None
    """None where nobody reports changes: it is listed from time to time."""


@dataclass
class _Watch:
    """One watch while it runs."""

    ingest: Ingest
    sources: Sequence[_Watched]
    inbox: Inbox
    on_refresh: OnRefresh
    clock: Clock
    refreshes: int = 0
    """How many there were so far."""
    _failures: int = 0
    _has_begun: bool = False
    _owes_snapshot: bool = True
    """A look that ended early may have changed the catalog and not have stored a snapshot."""
    _known_failed: set[tuple[str, str | None]] = field(default_factory=set)

    def everything(self) -> Gathered:
        """Return what asks for a look at all of every source."""
        return Gathered(folders={source.name: {WHOLE_FOLDER} for source in self.sources})

    def until(self, stop: threading.Event, *, listing: bool, list_minutes: float) -> None:
        """Deal with events, and list everything from time to time, until `stop` is set."""
        gathered = self.everything() if listing else None
        reason: Reason = "start"
        self._has_begun = not listing
        next_listing = self._next_listing(list_minutes)
        while not stop.is_set():
            if gathered is None and time.monotonic() >= next_listing:
                gathered, reason = self.everything(), "listing"
                next_listing = self._next_listing(list_minutes)
            if gathered is not None:
                self._try(gathered, reason)
            else:
                self.inbox.wait(_LOOK_AT_STOP_SECONDS)
            gathered, reason = self.inbox.take(), "events" if self._has_begun else "start"

    def refresh(self, gathered: Gathered, reason: Reason) -> None:
        """Scan the folders, and acknowledge the events to their sender.

        Raises:
            LumosError: nothing was changed, and the events were not acknowledged.
        """
        folders = {
            name: self._folders(name, found) for name, found in gathered.folders.items() if found
        }
        whole = [name for name, found in folders.items() if found == (WHOLE_FOLDER,)]
        if whole:
            self._look(whole, None, gathered=gathered, reason=reason)
        if parts := {name: found for name, found in folders.items() if name not in whole}:
            self._look(list(parts), parts, gathered=gathered, reason=reason)
        if not folders and gathered.problems:
            self._report_problems(gathered, reason)
        for acknowledge in gathered.acknowledgements:
            acknowledge()

    def _folders(self, name: str, found: Iterable[bytes]) -> tuple[bytes, ...]:
        """Return the folders to look into, or everything where they reach beyond the source."""
        chosen = fewest(found)
        source = next(each for each in self.sources if each.name == name)
        if all(is_below(f"{os.fsdecode(folder)}/", source.folders) for folder in chosen):
            return chosen
        return (WHOLE_FOLDER,)

    def _try(self, gathered: Gathered, reason: Reason) -> None:
        started = self.clock()
        try:
            self.refresh(gathered, reason)
        except (UsageError, ConfigurationError):
            raise  # no other try will help
        except (LumosError, OSError) as error:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._failures)
            self._failures += 1
            self._owes_snapshot = True
            told = error if isinstance(error, LumosError) else _as_lumos_error(error)
            self.on_refresh(
                WatchRefresh(
                    reason=reason,
                    started_at=started,
                    finished_at=self.clock(),
                    events=gathered.events,
                    folders=_shown(gathered.folders),
                    warnings=tuple(gathered.problems),
                    error=ErrorDetail.model_validate(told.as_json()),
                    retry_seconds=pause,
                )
            )
            self.inbox.put_back(gathered, pause=pause)
        else:
            self._failures = 0
            self._has_begun = True

    def _look(
        self, names: Sequence[str], under: Folders | None, *, gathered: Gathered, reason: Reason
    ) -> None:
        entries = {each.name: each.entry for each in self.sources}
        result = self.ingest(
            names=sorted({entries[name] for name in names}),
            under=under,
            snapshot_always=self._owes_snapshot,
        )
        self._owes_snapshot = False
        self.refreshes += 1
        self.on_refresh(
            WatchRefresh(
                reason=reason,
                started_at=result.started_at,
                finished_at=result.finished_at,
                events=gathered.events,
                folders=_shown(under or dict.fromkeys(names, (WHOLE_FOLDER,))),
                files=result.files,
                datasets=result.datasets,
                changes=result.changes,
                versions=result.versions,
                snapshot=result.snapshot,
                failed=self._news(result, is_all=under is None),
                warnings=(*gathered.problems, *_catalog_warnings(result)),
            )
        )

    def _news(self, result: IngestResult, *, is_all: bool) -> tuple[ItemOutcome, ...]:
        """Return the failures that were not reported yet; each run reports all of its sources."""
        failed = {(item.item, item.reason): item for item in result.failed}
        news = tuple(item for key, item in failed.items() if key not in self._known_failed)
        self._known_failed = set(failed) if is_all else self._known_failed | set(failed)
        return news

    def _report_problems(self, gathered: Gathered, reason: Reason) -> None:
        now = self.clock()
        self.on_refresh(
            WatchRefresh(
                reason=reason,
                started_at=now,
                finished_at=now,
                events=gathered.events,
                folders={},
                warnings=tuple(gathered.problems),
            )
        )

    def _next_listing(self, minutes: float) -> float:
        return time.monotonic() + minutes * _SECONDS_PER_MINUTE if minutes else float("inf")


def _catalog_warnings(result: IngestResult) -> tuple[str, ...]:
    """Return what people should know of the catalog that the refresh was sent to."""
    if result.sync_error is None:
        return ()
    return (f"the catalog is not up to date: {result.sync_error.message}",)


def _watched(handler: AnyHandler) -> Iterator[_Watched]:
    """Yield what of a source can be looked at: each of its storages, and its records."""
    reported = {folder.name: "file events" for folder in handler.event_folders()}
    for queue in handler.event_queues():
        shown = f"queue {queue.url.rpartition('/')[2]}"
        reported |= {storage.name: shown for storage in queue.storages}
    for storage in handler.storages():
        by = reported.get(storage.name)
        yield _Watched(handler.name, storage.name, storage.chosen_folders(), by)
    if handler.scanner() is not None:
        yield _Watched(handler.name, handler.name)


def _queues(handlers: Sequence[AnyHandler], inbox: Inbox) -> list[QueueEvents]:
    """Return a reader for each queue; sources that name the same one share it."""
    of_queue: dict[str, list[S3Source]] = {}
    for handler in handlers:
        for queue in handler.event_queues():
            of_queue.setdefault(queue.url, []).extend(queue.storages)
    return [QueueEvents(url, storages, inbox) for url, storages in of_queue.items()]


def _introduction(sources: Sequence[_Watched], *, list_minutes: float) -> str:
    listed = f"listed every {list_minutes:g} minutes" if list_minutes else "listed once"
    shown = [f"{source.name} ({source.reported_by or listed})" for source in sources]
    return f"watching {', '.join(shown)}; Ctrl-C ends it"


def _shown(folders: Mapping[str, Sequence[bytes] | set[bytes]]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(folder.decode("utf-8", "backslashreplace") or "/" for folder in fewest(found))
        for name, found in sorted(folders.items())
    }


def _as_lumos_error(error: OSError) -> LumosError:
    reason = error.strerror or type(error).__name__
    return InputUnreadableError(f"the refresh failed: {reason}", hint="it is tried again")
