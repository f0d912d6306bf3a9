"""People, owners and documentation kept in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lumos.core.events import running
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.settings import SettingsDocument, read_document
from lumos.core.settings.yaml_document import ITEMS
from lumos.feature.enrichment import EnrichmentService
from lumos.feature.ownership import OwnershipService
from lumos.feature.sync.following_sync import with_sync

if TYPE_CHECKING:
    from lumos.core.controllers.runs import BeginRun
    from lumos.core.models import LumosDataset
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import Clock
    from lumos.feature.sync.following_sync import FollowingSync
    from lumos.feature.versioning.publishing import Publisher


class _Operation(Protocol):
    def __call__(self, document: SettingsDocument, *, recorder: RunRecorder) -> None: ...


class PeopleController:
    """What `ownership` and `enrich` do; running a file again changes nothing."""

    def __init__(
        self,
        *,
        ownership: tuple[MetadataPlatformInterface, Publisher],
        enrichment: tuple[MetadataPlatformInterface, Publisher],
        begin_run: BeginRun,
        sync: FollowingSync | None,
        clock: Clock,
    ) -> None:
        """Take the state and what publishes to it, once as each of the two contributors."""
        self._ownership = OwnershipService(ownership[0], publish=_publish_by(ownership[1]))
        self._enrichment = EnrichmentService(enrichment[0], publish=_publish_by(enrichment[1]))
        self._sync = sync
        self._begin_run = begin_run
        self._clock = clock

    def create_users(self, file: Path) -> RunReport:
        """Create the users of a file, or bring them up to date."""
        return self._run("create users", file, operation=self._ownership.create_users)

    def create_groups(self, file: Path) -> RunReport:
        """Create the groups of a file, or bring them up to date."""
        return self._run("create groups", file, operation=self._ownership.create_groups)

    def assign(self, file: Path) -> RunReport:
        """Give datasets the owners that a file names."""
        return self._run("assign ownership", file, operation=self._ownership.assign)

    def enrich(self, file: Path) -> RunReport:
        """Add the tags, documentation, properties and terms that a file names."""
        return self._run("enrich", file, operation=self._enrichment.enrich)

    def _run(self, name: str, file: Path, *, operation: _Operation) -> RunReport:
        with running(name):
            recorder = RunRecorder(name, started_at=self._clock())
            document = read_document(file, kind=ITEMS)
            with self._begin_run(name) as run:
                operation(document, recorder=recorder)
                report = recorder.finish(at=self._clock())
                run.keep(report)
            return with_sync(report, self._sync)


def _publish_by(publisher: Publisher) -> Callable[[LumosDataset, LumosDataset], None]:
    def publish(_: LumosDataset, new: LumosDataset) -> None:
        publisher.publish(new)

    return publish
