"""All commands of one project, and those that run other commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.bootstrap.ingestion import IngestionCommands
from lumos.core.settings import SETTINGS_FILE

if TYPE_CHECKING:
    from lumos.core.controllers.chain_controller import ChainController
    from lumos.core.controllers.demo_controller import DemoController
    from lumos.core.controllers.state_controller import StateController
    from lumos.core.controllers.system_controller import SystemController
    from lumos.core.progress import Progress
    from lumos.core.settings import InvalidSettingsError
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.integrity import DocumentCheck
    from lumos.feature.ingestion.reaching import SourceAttempts

DOCTOR_SECONDS = 10.0
"""How long somebody who asks for the state of a catalog waits for one answer of it."""


class Application(IngestionCommands):
    """One project: its settings file never changes, and it shares nothing with other projects.

    Each part is made when it is first asked for.
    """

    @cached_property
    def system(self) -> SystemController:
        from lumos.core.controllers.system_controller import SystemController

        return SystemController(
            environment=self._environment,
            load_settings=self._describe_settings,
            unset_variables=self._unset_variables,
            spark_settings=lambda: self.settings.spark,
            state_dir=lambda: self.state_dir,
            make_state=lambda: self._writer.place,
            look_at_state=self._checked_state,
            check_documents=self._checked_documents,
            reach_platform=self._describe_platform,
            other_platforms=self._other_platforms,
            reach_sources=self._source_attempts,
            clock_warnings=lambda: self.snapshots.list().warnings,
        )

    @cached_property
    def state(self) -> StateController:
        from lumos.core.controllers.state_controller import StateController
        from lumos.core.store.same_database import same_database

        return StateController(
            open_state=self._existing_state,
            is_own=lambda address: same_database(self._state_address, address),
            exclude_writers=self._exclude_writers,
            state_dir=lambda: self.state_dir,
            environment=self._environment,
        )

    def _existing_state(self) -> StateDatabase:
        """Return the state database for writing; one that does not exist is not made."""
        _ = self._reader  # refuses a place without a state
        return self._opened(read_only=False)

    @contextmanager
    def _exclude_writers(self, purpose: str) -> Iterator[None]:
        """Hold the lease to write, over a connection that nothing else is done with."""
        from lumos.core.store.leases import WRITE_STATE, acquire

        request = self._lease_request(purpose)
        with acquire(self._writer, WRITE_STATE, request=request, clock=self._clock):
            yield

    @cached_property
    def chains(self) -> ChainController:
        from lumos.core.controllers.chain_controller import ChainController
        from lumos.core.controllers.chain_operations import ChainOperations

        return ChainController(ChainOperations(self, clock=self._clock).by_name())

    @cached_property
    def demo(self) -> DemoController:
        from lumos.core.controllers.demo_controller import DemoController

        def open_project(folder: Path) -> Application:
            return Application(
                config=folder / "lumos.yaml",
                state_dir=folder / ".lumos",
                environment=self._environment,
                clock=self._clock,
            )

        return DemoController(open_project=open_project, open_session=self._spark_session)

    def project_of(self, file: Path) -> Application:
        """Return the project of a settings file, which shares nothing with this one.

        It has the state folder, catalogs and connections that its own settings name, and is closed
        with this project. A state folder given on the command line holds for both.
        """
        if file.absolute() == (self._config or Path(SETTINGS_FILE)).absolute():
            return self
        other = Application(
            config=file,
            state_dir=self._given_state_dir,
            environment=self._environment,
            clock=self._clock,
            notice=self._notice,
            on_logging=self._on_logging,
        )
        return self._resources.enter_context(other)

    def _checked_state(self) -> str:
        from lumos.core.store.integrity import check_structure

        check_structure(self._reader)
        return self._reader.place

    def _checked_documents(self, progress: Progress) -> DocumentCheck:
        from lumos.core.store.integrity import check_documents

        return check_documents(self._reader, progress)

    def _describe_settings(self) -> str:
        file = self.settings.file
        if file is None:
            return "no lumos.yaml here; the defaults are used"
        if not self.settings.change_policy.exceptions:
            return f"{file} is valid"
        expired = len(self._policy.expired(self._clock()))
        told = f"; expired exceptions of the change policy: {expired}" if expired else ""
        return f"{file} is valid{told}"

    def _unset_variables(self) -> InvalidSettingsError | None:
        return self.settings.unset_variables()

    def _describe_platform(self, name: str | None) -> str:
        from lumos.core.platform.http import impatient

        with impatient(DOCTOR_SECONDS):
            return f"{self._platform(name).reached()} answers"

    def _source_attempts(self) -> SourceAttempts:
        from lumos.feature.ingestion.reaching import SourceAttempts
        from lumos.feature.ingestion.source_types import is_planned

        read = [entry for entry in self.settings.sources if not is_planned(entry.type)]
        return SourceAttempts(read, seconds=DOCTOR_SECONDS)

    def _other_platforms(self) -> tuple[str, ...]:
        """Return the catalogs of the settings that are not the project's own."""
        named = {*self.settings.platform_config, *self.settings.platforms}
        return tuple(sorted(named - {self.settings.platform}))
