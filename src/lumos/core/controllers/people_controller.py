"""People, owners and documentation kept in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lumos.core.controllers.parts import following_sync, state_target
from lumos.core.events import running
from lumos.core.models import Contributor, ContributorKind
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.settings import SettingsDocument, read_document
from lumos.core.settings.yaml_document import ITEMS
from lumos.feature.enrichment import EnrichmentService
from lumos.feature.ownership import OwnershipService
from lumos.feature.sync.following_sync import with_sync

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.versioning.publishing import Publisher, StateTarget


class _Operation(Protocol):
    def __call__(self, document: SettingsDocument, *, recorder: RunRecorder) -> None: ...


class PeopleController:
    """What `ownership` and `enrich` do; running a file again changes nothing."""

    def __init__(self, work: UnitOfWork) -> None:
        """Write to the state, once as each of the two contributors."""
        self._work = work

    def create_users(self, file: Path) -> RunReport:
        """Create the users of a file, or bring them up to date."""
        return self._run("create users", file, operation=lambda: self._ownership().create_users)

    def create_groups(self, file: Path) -> RunReport:
        """Create the groups of a file, or bring them up to date."""
        return self._run("create groups", file, operation=lambda: self._ownership().create_groups)

    def assign(self, file: Path) -> RunReport:
        """Give datasets the owners that a file names."""
        return self._run("assign ownership", file, operation=lambda: self._ownership().assign)

    def enrich(self, file: Path) -> RunReport:
        """Add the tags, documentation, properties and terms that a file names."""
        return self._run("enrich", file, operation=lambda: self._enrichment().enrich)

    def _ownership(self) -> OwnershipService:
        target = self._target("ownership")
        return OwnershipService(target.platform, publish=_publish_by(target.publisher))

    def _enrichment(self) -> EnrichmentService:
        target = self._target("enrichment")
        return EnrichmentService(target.platform, publish=_publish_by(target.publisher))

    def _target(self, name: str) -> StateTarget:
        return state_target(self._work, Contributor(ContributorKind.DECLARED, name))

    def _run(self, name: str, file: Path, *, operation: Callable[[], _Operation]) -> RunReport:
        with running(name):
            recorder = RunRecorder(name, started_at=self._work.clock())
            document = read_document(file, kind=ITEMS)
            with self._work.begin_run(name) as run:
                operation()(document, recorder=recorder)
                report = recorder.finish(at=self._work.clock())
                run.keep(report)
            return with_sync(report, following_sync(self._work))


def _publish_by(publisher: Publisher) -> Callable[[LumosDataset, LumosDataset], None]:
    def publish(_: LumosDataset, new: LumosDataset) -> None:
        publisher.publish(new)

    return publish
