"""Lumos in Python: the same requests as the command line, for programs and notebooks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from typing_extensions import override

from lumos.bootstrap import Dispatcher
from lumos.core.requests.base import NOBODY, Listener, Request
from lumos.core.requests.catalog import (
    BlameRequest,
    CompareRequest,
    HistoryRequest,
    SearchRequest,
    ShowRequest,
    TrendRequest,
)
from lumos.core.requests.people import (
    EnrichRequest,
    OwnershipAssignRequest,
    OwnershipGroupsRequest,
    OwnershipUsersRequest,
)
from lumos.core.requests.project import ReportRequest
from lumos.core.requests.snapshots import (
    DiffRequest,
    ExportRequest,
    ImportRequest,
    MigrateRequest,
    SnapshotCreateRequest,
    ValidateRequest,
)
from lumos.core.requests.sources import (
    DiscoverRequest,
    IngestRequest,
    ProfileRequest,
    SyncRequest,
    WatchRequest,
)
from lumos.core.requests.versions import (
    AlertsListRequest,
    AlertsSendRequest,
    VersionApplyRequest,
    VersionComputeRequest,
    VersionIncrementRequest,
)
from lumos.core.runtime.project import Project
from lumos.entry.notebook import (
    Blame,
    Comparison,
    Dataset,
    Diff,
    Export,
    History,
    Import,
    Ingestion,
    Migration,
    Profiles,
    SearchResults,
    StoredSnapshot,
    Sync,
    Trend,
    Validation,
    Versions,
    answer,
)
from lumos.feature.importing.plan import ImportMode
from lumos.feature.snapshot.forms import SnapshotForm
from lumos.feature.versioning.models import VersionUpdateResult

if TYPE_CHECKING:
    import threading

    from pydantic import BaseModel

    from lumos.core.controllers.results import WatchResult
    from lumos.core.run_report import RunReport
    from lumos.feature.alerting.results import AlertListResult, AlertSendResult
    from lumos.feature.extraction.catalog_report import CatalogReport

R = TypeVar("R")

__all__ = [
    "Blame",
    "Comparison",
    "Dataset",
    "Diff",
    "Export",
    "History",
    "Import",
    "ImportMode",
    "Ingestion",
    "Lumos",
    "Migration",
    "Profiles",
    "SearchResults",
    "StoredSnapshot",
    "Sync",
    "Trend",
    "Validation",
    "VersionUpdateResult",
    "Versions",
]


class Lumos:
    """One project of Lumos: its catalog, its snapshots and what can be done with them.

    Nothing is read before the first call, and nothing stays open between calls: each dispatches a
    request and closes what it opened. Every method raises a `LumosError` that says what failed and
    what to do.
    """

    def __init__(
        self,
        config: str | Path | None = None,
        *,
        state_dir: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Open a project.

        Args:
            config: the settings file; `lumos.yaml` of this folder, if there is one, by default.
            state_dir: the state folder, in place of that of the settings.
            environment: the variables that settings may use; those of the process by default.
        """
        self._config = config
        self._dispatcher = Dispatcher(
            Project(
                config=None if config is None else Path(config),
                given_state_dir=None if state_dir is None else Path(state_dir),
                environment=os.environ if environment is None else environment,
            )
        )

    def dispatch(self, request: Request[R], listener: Listener = NOBODY) -> R:
        """Carry out a request of `lumos.core.requests`, as all methods here do.

        Raises:
            LumosError: what failed, and what to do.
        """
        return self._dispatcher.dispatch(request, listener)

    def search(
        self,
        text: str = "",
        *,
        platform: str | None = None,
        platforms: Sequence[str] = (),
        owner: str | None = None,
        tag: str | None = None,
        column: str | None = None,
        min_quality: float | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchResults:
        """Find datasets by words in names, columns, descriptions, tags and owners, best first.

        Args:
            text: words, or beginnings of words.
            platform: only data of this platform, such as `s3`.
            platforms: the catalogs to ask at once; by default those of the settings. Where several
                are asked, `problems` of the answer names those that did not answer.
            owner: only datasets of this user or group.
            tag: only datasets with this tag.
            column: only datasets with a column of this name, or a beginning of it.
            min_quality: only datasets with at least this quality, in percent.
            limit: how many to return.
            offset: how many to pass over.
        """
        request = SearchRequest(
            text=text,
            platform=platform,
            catalogs=tuple(platforms),
            owner=owner,
            tag=tag,
            column=column,
            min_quality=min_quality,
            limit=limit,
            offset=offset,
        )
        return answer(SearchResults, self.dispatch(request))

    def dataset(self, urn_or_name: str) -> Dataset:
        """Return the dataset of a URN, or of a name that only one dataset has.

        Raises:
            DatasetNotFoundError: the catalog does not hold the URN.
            UnresolvedReferenceError: no dataset has the name, or several do.
        """
        return answer(Dataset, self.dispatch(ShowRequest(dataset=urn_or_name)))

    def history(
        self, urn_or_name: str, *, since: datetime | None = None, limit: int | None = None
    ) -> History:
        """Return the versions of a dataset, newest last, or only late ones or the newest.

        Raises:
            DatasetNotFoundError: the catalog does not hold the URN.
            UnresolvedReferenceError: no dataset has the name, or several do.
        """
        request = HistoryRequest(dataset=urn_or_name, since=since, limit=limit)
        return answer(History, self.dispatch(request))

    def trend(
        self, urn_or_name: str, *, since: datetime | None = None, limit: int | None = None
    ) -> Trend:
        """Return what was measured of a dataset over time, by kind, newest last.

        Args:
            urn_or_name: the dataset.
            since: only what was measured at this time or later.
            limit: of each kind only so many, the newest.

        Raises:
            DatasetNotFoundError: the catalog does not hold the URN.
            UnresolvedReferenceError: no dataset has the name, or several do.
        """
        request = TrendRequest(dataset=urn_or_name, since=since, limit=limit)
        return answer(Trend, self.dispatch(request))

    def blame(self, urn_or_name: str) -> Blame:
        """Return which version brought each column of a dataset in and which changed it last."""
        return answer(Blame, self.dispatch(BlameRequest(dataset=urn_or_name)))

    def compute_versions(
        self,
        *,
        source: str | Path | None = None,
        target: str | Path | None = None,
        retire: bool = False,
    ) -> Versions:
        """Return the versions that datasets would get; nothing is written.

        Args:
            source: the snapshot to compare with; the history by default.
            target: the snapshot whose datasets are versioned; the catalog by default.
            retire: also give versions to datasets that are gone.
        """
        request = VersionComputeRequest(
            source=None if source is None else str(source),
            target=None if target is None else str(target),
            retire=retire,
            limit=0,
        )
        return answer(Versions, self.dispatch(request))

    def apply_versions(
        self,
        *,
        source: str | Path | None = None,
        target: str | Path | None = None,
        retire: bool = False,
    ) -> Versions:
        """Write the versions that datasets get; what has its version already gets no other."""
        request = VersionApplyRequest(
            source=None if source is None else str(source),
            target=None if target is None else str(target),
            retire=retire,
            limit=0,
        )
        return answer(Versions, self.dispatch(request).as_scan())

    def increment_version(self, urn_or_name: str, change_type: str) -> VersionUpdateResult:
        """Raise the version of a dataset by declaration.

        `BREAKING_SCHEMA_CHANGE` raises the major number, `SCHEMA_CHANGE` the minor one, anything
        else, such as `DATA_UPDATE`, the patch number.

        Raises:
            VersionNotFoundError: the dataset has no version yet.
        """
        request = VersionIncrementRequest(dataset=urn_or_name, change_type=change_type)
        return self.dispatch(request)

    def compare(
        self, urn_or_name: str, first: str = "previous", *, second: str = "latest"
    ) -> Comparison:
        """Return how the version `second` of a dataset differs from the version `first`.

        A version is named by its number, its cloud version, or as latest, previous or first.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
        """
        request = CompareRequest(dataset=urn_or_name, first=first, second=second)
        return answer(Comparison, self.dispatch(request))

    def diff(
        self,
        source: str | Path,
        target: str | Path,
        *,
        profile: str | None = None,
        observations: bool = False,
        edited: bool = False,
    ) -> Diff:
        """Compare two snapshots by any name, as `lumos diff` takes them.

        Args:
            source: the older side.
            target: the newer side.
            profile: whom the rules protect; as the settings say if not given.
            observations: also compare rows, sizes, checks and costs.
            edited: accept documents that were edited since Lumos wrote them.
        """
        request = DiffRequest(
            source=str(source),
            target=str(target),
            profile=profile,
            observations=observations,
            edited=edited,
        )
        return answer(Diff, self.dispatch(request))

    def snapshot(self) -> StoredSnapshot:
        """Store what the catalog holds now."""
        return answer(StoredSnapshot, self.dispatch(SnapshotCreateRequest()))

    def export(
        self,
        path: str | Path,
        *,
        platform: str | None = None,
        snapshot: str | None = None,
        folder: bool = False,
    ) -> Export:
        """Write the catalog, or a snapshot in any form, as one portable file or folder."""
        request = ExportRequest(
            output=Path(path),
            platform=platform,
            snapshot=snapshot,
            form=SnapshotForm.FOLDER if folder else SnapshotForm.DOCUMENT,
        )
        return answer(Export, self.dispatch(request))

    def import_(
        self,
        path: str | Path,
        *,
        platform: str | None = None,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        key: str | Path | None = None,
        edited: bool = False,
    ) -> Import:
        """Read a snapshot into the catalog; nothing that it lacks is removed.

        With `key`, the file of a public key, the snapshot has to be signed with it. With `edited`,
        a document is accepted that was edited since Lumos wrote it.
        """
        request = ImportRequest(
            snapshot=str(path),
            platform=platform,
            mode=mode,
            dry_run=dry_run,
            key=Path(key) if key else None,
            edited=edited,
        )
        return answer(Import, self.dispatch(request))

    def validate(self, path: str | Path, *, edited: bool = False) -> Validation:
        """Check a snapshot in any form; what is wrong with it is in the answer.

        With `edited`, a document is accepted that was edited since Lumos wrote it.
        """
        request = ValidateRequest(snapshot=str(path), edited=edited)
        return answer(Validation, self.dispatch(request))

    def sync(
        self,
        output: str,
        *,
        sources: Sequence[str] = (),
        full: bool = False,
        dry_run: bool = False,
        max_removals: int | None = None,
    ) -> Sync:
        """Send another catalog what changed since it was last brought up to date.

        Args:
            output: the catalog, such as `datahub`, or the address of another Lumos catalog.
            sources: only datasets of these sources, and nothing is removed; all by default.
            full: compare everything with the catalog, not only what changed here.
            dry_run: only say what would happen.
            max_removals: in place of that of the settings.
        """
        request = SyncRequest(
            output=output,
            sources=tuple(sources),
            full=full,
            dry_run=dry_run,
            max_removals=max_removals,
        )
        return answer(Sync, self.dispatch(request))

    def migrate(
        self,
        source: str,
        target: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        restart: bool = False,
    ) -> Migration:
        """Move all metadata from one catalog to another and compare both; see `verified`.

        Args:
            source: the catalog to read.
            target: the catalog to fill.
            mode: what happens to datasets that the target has.
            dry_run: export and check, but write nothing to the target.
            restart: begin anew, also where a migration was interrupted.
        """
        request = MigrateRequest(
            source=source, target=target, mode=mode, dry_run=dry_run, restart=restart
        )
        return answer(Migration, self.dispatch(request))

    def ingest(
        self,
        *sources: str,
        dry_run: bool = False,
        full: bool = False,
        run_timestamp: datetime | str | None = None,
    ) -> Ingestion:
        """Scan the sources of the settings, or those named, on Spark and publish what changed.

        With a run timestamp, only the partition of that time is scanned, and checked.
        """
        if isinstance(run_timestamp, datetime):
            run_timestamp = run_timestamp.isoformat()
        request = IngestRequest(
            sources=sources, dry_run=dry_run, full=full, run_timestamp=run_timestamp
        )
        return answer(Ingestion, self.dispatch(request))

    def profile(
        self,
        *urns_or_names: str,
        source: str | None = None,
        sample: float | None = None,
        rows: int | None = None,
        seed: int = 0,
        values: bool = True,
    ) -> Profiles:
        """Look at the data of datasets on Spark, and keep the figures with them.

        Args:
            urns_or_names: the datasets.
            source: all datasets of this source, besides.
            sample: the share of rows to look at; all of them by default.
            rows: about how many rows to look at, in place of a share.
            seed: decides which rows a sample has.
            values: whether to keep the smallest, largest, mean and quantiles of numbers and times.

        Raises:
            ProfileUnavailableError: the data of the one dataset cannot be profiled.
        """
        request = ProfileRequest(
            datasets=urns_or_names,
            sources=(source,) if source else (),
            sample=sample,
            rows=rows,
            seed=seed,
            values=values,
        )
        return answer(Profiles, self.dispatch(request))

    def discover(self, address: str, *, instance: str | None = None) -> Ingestion:
        """Find the datasets below a folder or an address on Spark; the catalog is not written.

        Args:
            address: a folder, or an address such as `s3://bucket/prefix`.
            instance: the first part of the URNs, as the setting `instance`.
        """
        return answer(
            Ingestion, self.dispatch(DiscoverRequest(address=str(address), instance=instance))
        )

    def watch(
        self,
        *sources: str,
        once: bool = False,
        stop: threading.Event | None = None,
        on_refresh: Callable[[BaseModel], None] | None = None,
    ) -> WatchResult:
        """Keep the catalog current from events of the sources until it is stopped.

        Args:
            sources: only these sources of the settings; all by default.
            once: do what is waiting, then end.
            stop: ends it when it is set, from another thread.
            on_refresh: is called with the result of each refresh.
        """
        listener = Listener(stop=stop)
        if on_refresh is not None:
            listener = listener._replace(on_interim=on_refresh)
        return self.dispatch(WatchRequest(sources=sources, once=once), listener)

    def create_users(self, file: str | Path) -> RunReport:
        """Create the users of a YAML or JSON file, or bring them up to date."""
        return self.dispatch(OwnershipUsersRequest(file=Path(file)))

    def create_groups(self, file: str | Path) -> RunReport:
        """Create the groups of a YAML or JSON file, or bring them up to date."""
        return self.dispatch(OwnershipGroupsRequest(file=Path(file)))

    def assign_owners(self, file: str | Path) -> RunReport:
        """Give datasets the owners that a YAML or JSON file names."""
        return self.dispatch(OwnershipAssignRequest(file=Path(file)))

    def enrich(self, file: str | Path) -> RunReport:
        """Add the tags, documentation, properties and terms that a YAML or JSON file names."""
        return self.dispatch(EnrichRequest(file=Path(file)))

    def alerts(self, urn_or_name: str | None = None, *, limit: int = 100) -> AlertListResult:
        """Return the alerts on breaking changes, newest first, of all datasets or of one."""
        return self.dispatch(AlertsListRequest(dataset=urn_or_name, limit=limit))

    def send_alerts(self, *, everything: bool = False) -> AlertSendResult:
        """Send the alerts that are due; with `everything` also those that were given up."""
        return self.dispatch(AlertsSendRequest(everything=everything))

    def report(self, path: str | Path) -> CatalogReport:
        """Write one HTML page on the state of the catalog, and return what it says."""
        return self.dispatch(ReportRequest(output=Path(path)))

    def close(self) -> None:
        """Do nothing: every call closes what it opened. Kept for programs that call it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @override
    def __repr__(self) -> str:
        return f"Lumos({str(self._config)!r})" if self._config else "Lumos()"
