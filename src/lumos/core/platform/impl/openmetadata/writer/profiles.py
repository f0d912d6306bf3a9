"""Profiles of tables: those of Lumos shown in OpenMetadata, those made there read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.json_reading import as_object, object_at
from lumos.core.models import with_parts
from lumos.core.models.dataset import OperationalMetadata
from lumos.core.platform.impl.openmetadata.mapping.entities import NAME, kept_of
from lumos.core.platform.impl.openmetadata.mapping.figures import (
    TABLE,
    count,
    kept_figures,
    profiled_at,
    still_kept,
    told_profile,
    wire_profile,
)
from lumos.core.platform.impl.openmetadata.reader.profile_history import (
    SYSTEM,
    bodies_of,
    kept_history,
    last_written,
    told_history,
    window_before,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import DatasetProfile, LumosDataset
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi

PROFILED: Final = "profiled"
"""Where the stash keeps the time of a profile of Lumos that the dataset no longer has."""
_KEPT: Final = "profile"
"""Where the extension keeps a profile that was made in OpenMetadata."""
_EARLIEST: Final = 10**11
"""The least time in milliseconds that the server does not take for one in seconds."""
_NEVER: Final = -1


class SeenProfile(NamedTuple):
    """A dataset with the profile that counts, and the time of the latest one on the server."""

    dataset: LumosDataset
    latest: int = _NEVER
    is_theirs: bool = False
    """Whether others made the latest one."""


class ProfileWires:
    """Reads and writes the profiles of one server's tables."""

    def __init__(self, api: OpenMetadataApi, *, days: int) -> None:
        self._api = api
        self._days = days

    def seen(self, dataset: LumosDataset, entity: Json, *, stash: Json) -> SeenProfile:
        """Return a dataset with the latest profile of its table, if others made that.

        Args:
            dataset: from its entity and its stash.
            entity: the table.
            stash: its stash.
        """
        answer = self._api.latest_profile(str(entity["fullyQualifiedName"]))
        kept = kept_figures(answer, dataset) if answer else None
        if kept is None:
            return SeenProfile(dataset)
        at = profiled_at(kept)
        if at <= max(_time(dataset.profile), _own_time(stash)):
            return SeenProfile(dataset, at)
        kept |= self._history(entity, at)
        extension: JsonValue = {**kept_of(dataset), _KEPT: kept}
        parts: dict[str, object] = {"extensions": {**dataset.extensions, NAME: extension}}
        if profile := told_profile(kept, dataset):
            parts["profile"] = profile
        if dataset.statistics is None and (statistics := _statistics(kept)):
            parts["statistics"] = statistics
        return SeenProfile(with_parts(dataset, **parts), at, is_theirs=True)

    def kept_time(self, dataset: LumosDataset, before: LumosDataset, *, stash: Json) -> Json:
        """Return what the stash of a dataset must hold of profiles that Lumos made before."""
        own = max(_time(before.profile), _own_time(stash))
        return {PROFILED: own} if own > _time(dataset.profile) else {}

    def write(self, dataset: LumosDataset, entity: Json, *, there: SeenProfile | None) -> None:
        """Show the profile of a dataset, unless the server has one of the same time.

        Args:
            dataset: what was written.
            entity: its table.
            there: what was there before, where there was something.
        """
        profile = dataset.profile
        at = _time(profile)
        if profile is None or at < _EARLIEST:
            return
        if there and there.latest == at and (there.is_theirs or there.dataset.profile == profile):
            return
        given = kept_of(dataset).get(_KEPT)
        kept = still_kept(given, dataset)
        if kept and told_profile(kept, dataset) == profile:
            whole = kept | kept_history(as_object(given, "given"), before=at)
        else:
            whole = wire_profile(dataset, profile)
        for body in bodies_of(whole):
            self._api.put_profile(entity, body)

    def _history(self, table: Json, at: int) -> Json:
        """Ask for the history of a profile by two requests, by none where none is wanted."""
        if not self._days:
            return {}
        name, window = str(table["fullyQualifiedName"]), window_before(at, days=self._days)
        profiles = self._api.profiles_between(name, TABLE, window=window)
        writes = self._api.profiles_between(name, SYSTEM, window=window)
        return told_history(profiles, writes, before=at)


def tells_of_profile(dataset: LumosDataset) -> bool:
    """Return whether a dataset has a profile, or one of OpenMetadata that it cannot hold."""
    return dataset.profile is not None or _KEPT in kept_of(dataset)


def _statistics(kept: Json) -> OperationalMetadata | None:
    table = object_at(kept, TABLE)
    rows, size = count(table.get("rowCount")), count(table.get("sizeInByte"))
    written = last_written(kept)
    if rows is None and size is None and written is None:
        return None
    return OperationalMetadata(row_count=rows, total_size_bytes=size, last_modified=written)


def _time(profile: DatasetProfile | None) -> int:
    return _NEVER if profile is None else round(profile.profiled_at.timestamp() * 1_000)


def _own_time(stash: Json) -> int:
    own = stash.get(PROFILED)
    return own if isinstance(own, int) else _NEVER
