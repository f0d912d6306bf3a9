"""Carries out the requests that look at data and bring catalogs up to date."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lumos.core.requests.sources import (
    DiscoverRequest,
    IngestRequest,
    ProfileRequest,
    SyncRequest,
    WatchRequest,
)

if TYPE_CHECKING:
    from lumos.bootstrap.dispatcher import Call
    from lumos.core.controllers.results import IngestResult, ProfileResult, WatchResult
    from lumos.feature.sync.results import SyncResult


def ingest(call: Call, request: IngestRequest) -> IngestResult:
    if request.run_timestamp is not None:
        from lumos.core.controllers.run_timestamp_controller import RunTimestampController

        return RunTimestampController(call.work).ingest(
            request.run_timestamp,
            names=request.sources,
            dry_run=request.dry_run,
            full=request.full,
            progress=call.listener.progress,
        )
    from lumos.core.controllers.ingestion_controller import IngestionController

    return IngestionController(call.work).ingest(
        names=request.sources,
        dry_run=request.dry_run,
        full=request.full,
        progress=call.listener.progress,
    )


def discover(call: Call, request: DiscoverRequest) -> IngestResult:
    from lumos.core.controllers.ingestion_controller import IngestionController

    return IngestionController(call.work).discover(
        request.address,
        instance=request.instance,
        config=request.config,
        progress=call.listener.progress,
    )


def profile(call: Call, request: ProfileRequest) -> ProfileResult:
    from lumos.core.controllers.profile_controller import ProfileController
    from lumos.feature.profiling.profiler import ProfileOptions

    return ProfileController(call.work).profile(
        request.datasets,
        sources=request.sources,
        options=ProfileOptions(
            sample=request.sample,
            rows=request.rows,
            seed=request.seed,
            values=request.values,
        ),
        progress=call.listener.progress,
    )


def sync(call: Call, request: SyncRequest) -> SyncResult:
    from lumos.core.controllers.sync_controller import SyncController

    return SyncController(call.work).sync(
        request.output,
        sources=request.sources,
        full=request.full,
        dry_run=request.dry_run,
        max_removals=request.max_removals,
        planned=call.listener.on_interim,
        progress=call.listener.progress,
    )


def watch(call: Call, request: WatchRequest) -> WatchResult:
    from lumos.core.controllers.watch_controller import WatchController

    return WatchController(call.work.project, call.work.spark_session).watch(
        names=request.sources,
        once=request.once,
        listing=request.listing,
        stop=call.listener.stop or threading.Event(),
        on_refresh=call.listener.on_interim,
        tell=call.work.notice,
    )


OPERATIONS = {
    IngestRequest: ingest,
    DiscoverRequest: discover,
    ProfileRequest: profile,
    SyncRequest: sync,
    WatchRequest: watch,
}
