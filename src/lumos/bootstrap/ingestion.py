"""The commands that look at data: ingest, watch, profile, the engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.bootstrap.catalog import CatalogCommands

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.controllers.engine_controller import EngineController
    from lumos.core.controllers.ingestion_controller import IngestionController
    from lumos.core.controllers.profile_controller import ProfileController
    from lumos.core.controllers.run_timestamp_controller import RunTimestampController
    from lumos.core.controllers.watch_controller import WatchController
    from lumos.core.models import Change, LumosDataset
    from lumos.core.settings import SourceEntry
    from lumos.feature.versioning.publishing import StateTarget
    from lumos.spark.lazy_session import OpenSession


def _escaped(value: JsonValue) -> JsonValue:
    """Return a value in which nothing is a variable."""
    return value.replace("${", "$${") if isinstance(value, str) else value


class IngestionCommands(CatalogCommands):
    """What finds and measures datasets."""

    @cached_property
    def ingestion(self) -> IngestionController:
        return self._ingestion_on(self._spark_session)

    @cached_property
    def run_timestamps(self) -> RunTimestampController:
        from lumos.core.controllers.run_timestamp_controller import RunTimestampController

        return RunTimestampController(
            ingestion_on=self._ingestion_on,
            open_session=self._spark_session,
            state_dir=lambda: self.state_dir,
            clock=self._clock,
        )

    @cached_property
    def watching(self) -> WatchController:
        from lumos.core.controllers.watch_controller import WatchController

        return WatchController(
            ingestion_on=self._ingestion_on,
            open_session=self._spark_session,
            settings=lambda: self.settings.watch,
            state_dir=lambda: self.state_dir,
            clock=self._clock,
        )

    def _ingestion_on(self, open_session: OpenSession) -> IngestionController:
        from lumos.core.controllers.ingestion_controller import IngestionController
        from lumos.core.store.history import HistoryRepository
        from lumos.feature.versioning.planning import earlier_states

        def judge(old: LumosDataset | None, new: LumosDataset | None) -> tuple[Change, ...]:
            def earlier() -> list[LumosDataset]:
                urn = new.urn if new is not None else ""
                return earlier_states(lambda: HistoryRepository(self._reader).states(urn))

            return self._policy.judge(old, new, at=self._clock(), earlier=earlier)

        return IngestionController(
            entries=lambda: self.settings.sources,
            settings_file=self._known_settings_file,
            open_session=open_session,
            writer=self._state_writer,
            look_at_state=self._state_if_any,
            snapshots=lambda: self.snapshots,
            state_dir=lambda: self.state_dir,
            begin_run=self._begin_run,
            sync=self._following_sync,
            version_of=lambda urn: HistoryRepository(self._reader).current(urn),
            judge=judge,
            clock=self._clock,
        )

    def _known_settings_file(self) -> str | None:
        """Return the settings file by a name that is the same when the project is moved."""
        file = self.settings.file
        if file is None:
            return None
        return os.path.relpath(file.absolute(), self.state_dir.absolute())

    @cached_property
    def profiling(self) -> ProfileController:
        from lumos.core.controllers.profile_controller import ProfileController
        from lumos.core.platform.factory import EMBEDDED

        return ProfileController(
            entries=lambda: self.settings.sources,
            open_session=self._spark_session,
            catalog=lambda: self._platform(EMBEDDED),
            find=self._found_dataset,
            found_by=self._found_by,
            target=self._profile_target,
            state_dir=lambda: self.state_dir,
            begin_run=self._begin_run,
            sync=self._following_sync,
            clock=self._clock,
        )

    def _found_dataset(self, reference: str) -> LumosDataset:
        """Return a dataset of the state, by URN or by a name that only one has."""
        from lumos.core.controllers.catalog_controller import CatalogController
        from lumos.core.platform.factory import EMBEDDED

        state = self._platform(EMBEDDED)
        versions = self._versions(self._reader)
        catalog = CatalogController(
            state, versions, contributions=self._said_of, observations=self._observations
        )
        return catalog.show(reference)

    def _found_by(self, sources: Sequence[str]) -> list[str]:
        """Return the URNs of what some sources have."""
        from lumos.core.models import Contributor, ContributorKind
        from lumos.core.store.catalog.contributions import ContributionTable

        table = ContributionTable(self._reader)
        contributors = (Contributor(ContributorKind.SOURCE, name) for name in sources)
        return sorted(urn for each in contributors for urn, _ in table.found_states(each))

    def _profile_target(self) -> StateTarget:
        from lumos.core.models import Contributor, ContributorKind
        from lumos.core.platform.factory import EMBEDDED
        from lumos.feature.versioning.publishing import StateTarget

        by = Contributor(ContributorKind.INFERRED, "profile")
        adapter = self._platform(EMBEDDED, writing=True, by=by)
        return StateTarget(adapter, self._publisher(adapter), self._writer)

    def entries_of(self, source: Mapping[str, JsonValue]) -> tuple[SourceEntry, ...]:
        """Return the source that these settings stand for, as they are written."""
        from lumos.bootstrap.settings import settings_from_mapping

        written = {key: _escaped(value) for key, value in source.items()}
        return settings_from_mapping({"sources": [written]}, self._environment).sources

    def source_of(self, prefix: str, *, instance: str | None = None) -> dict[str, JsonValue]:
        """Return the settings of the source that a bare path or address stands for."""
        from lumos.feature.ingestion.source_addresses import source_mapping_of

        source = source_mapping_of(prefix)
        name = prefix.rstrip("/").rpartition("/")[2] or prefix
        if source["type"] == "local":
            path = os.path.abspath(Path(str(source["path"])).expanduser())
            name = os.path.basename(path) or path
            source["path"] = path
            folder = os.path.dirname(path) if os.path.isfile(path) else path
            if (root := os.path.basename(folder)) != name:
                source["root"] = root or None
        named = {} if instance is None else {"instance": instance}
        return {"type": source.pop("type"), "name": name, **named, **source}

    @cached_property
    def engine(self) -> EngineController:
        from lumos.core.controllers.engine_controller import EngineController

        return EngineController(lambda: self.settings.spark, environment=self._environment)
