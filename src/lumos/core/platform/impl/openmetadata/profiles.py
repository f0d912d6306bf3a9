"""Profiles of tables: those of Lumos shown in OpenMetadata, those made there read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lumos.core.models import with_parts
from lumos.core.models.dataset import OperationalMetadata
from lumos.core.platform.impl.openmetadata.entities import NAME, kept_of
from lumos.core.platform.impl.openmetadata.figures import (
    TABLE,
    count,
    kept_figures,
    profiled_at,
    still_kept,
    told_profile,
    wire_profile,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import DatasetProfile, LumosDataset
    from lumos.core.platform.impl.openmetadata.api import OpenMetadataApi
    from lumos.core.platform.stash import Json

PROFILED: Final = "profiled"
"""Where the stash keeps the time of a profile of Lumos that the dataset no longer tells of."""
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

    def __init__(self, api: OpenMetadataApi) -> None:
        self._api = api

    def seen(self, dataset: LumosDataset, entity: Json, *, stash: Json) -> SeenProfile:
        """Return a dataset with the latest profile of its table, if others made that.

        Args:
            dataset: what its entity and its stash tell.
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
        extension: JsonValue = {**kept_of(dataset), _KEPT: kept}
        parts: dict[str, object] = {"extensions": {**dataset.extensions, NAME: extension}}
        if profile := told_profile(kept, dataset):
            parts["profile"] = profile
        if dataset.statistics is None and (statistics := _statistics(kept)):
            parts["statistics"] = statistics
        return SeenProfile(with_parts(dataset, **parts), at, is_theirs=True)

    def kept_time(self, dataset: LumosDataset, before: LumosDataset, *, stash: Json) -> Json:
        """Return what the stash of a dataset has to tell of profiles that Lumos made before."""
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
        kept = still_kept(kept_of(dataset).get(_KEPT), dataset)
        is_theirs = kept is not None and told_profile(kept, dataset) == profile
        figures = kept if kept and is_theirs else wire_profile(dataset, profile)
        self._api.put_profile(entity, figures)


def tells_of_profile(dataset: LumosDataset) -> bool:
    """Tell whether a dataset has a profile, or one of OpenMetadata that it cannot tell."""
    return dataset.profile is not None or _KEPT in kept_of(dataset)


def _statistics(kept: Json) -> OperationalMetadata | None:
    table = cast("Json", kept[TABLE])
    rows, size = count(table.get("rowCount")), count(table.get("sizeInByte"))
    if rows is None and size is None:
        return None
    return OperationalMetadata(row_count=rows, total_size_bytes=size)


def _time(profile: DatasetProfile | None) -> int:
    return _NEVER if profile is None else round(profile.profiled_at.timestamp() * 1_000)


def _own_time(stash: Json) -> int:
    own = stash.get(PROFILED)
    return own if isinstance(own, int) else _NEVER
