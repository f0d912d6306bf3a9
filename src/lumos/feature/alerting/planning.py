"""Decides who gets alerts on a version: routes, owners, and the datasets downstream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from lumos.core.changes.policy import matches_dataset
from lumos.core.models import Change, ChangeLevel, DatasetVersion, LumosDataset
from lumos.core.models.alert import AffectedDataset, Alert, AlertFinding
from lumos.core.models.base import sha256_of
from lumos.feature.alerting.settings import AlertRoute, AlertSettings

MOST_LISTED = 50
MOST_FOLLOWED = 1000
DECLARED_RULE = "version.declared"


class DownstreamPort(Protocol):
    """Who is made from a dataset, and who belongs to which group."""

    def of(self, urn: str, *, depth: int, limit: int) -> tuple[AffectedDataset, ...]:
        """Return datasets downstream, the nearest first."""

    def groups_of_users(self) -> Mapping[str, frozenset[str]]:
        """Return the groups of each user."""


class RecordedVersion(NamedTuple):
    """A version that is being recorded, and what it is a version of."""

    version: DatasetVersion
    dataset: LumosDataset
    changes: Sequence[Change]


class AlertPlanner:
    """Makes the alerts of a version, at most one for each finding and channel."""

    def __init__(self, settings: AlertSettings, downstream: DownstreamPort) -> None:
        self._settings = settings
        self._downstream = downstream
        everything = AlertRoute.model_construct(
            channels=tuple(channel.name for channel in settings.channels),
            owners=(),
            pattern="*",
            level="breaking",
        )
        self._routes = settings.routes or ((everything,) if settings.channels else ())
        mildest = (ChangeLevel(route.level.upper()).rank for route in self._routes)
        self._mildest = min(mildest, default=ChangeLevel.BREAKING.rank)

    def alerts_of(self, recorded: RecordedVersion) -> tuple[Alert, ...]:
        """Return the alerts on a version, most severe first."""
        changes = [change for change in _findings(recorded) if change.level.rank >= self._mildest]
        if not changes or not self._routes:
            return ()
        concerned = _Concerned(recorded.dataset, self._downstream, settings=self._settings)
        return tuple(
            Alert(
                id=sha256_of([finding.fingerprint, finding.version, channel]),
                channel=channel,
                created_at=recorded.version.timestamp,
                finding=finding,
            )
            for finding in (concerned.finding(change, recorded.version) for change in changes)
            for channel in self._channels_for(finding, concerned)
        )

    def _channels_for(self, finding: AlertFinding, concerned: _Concerned) -> list[str]:
        chosen = {
            channel
            for route in self._routes
            if finding.level.rank >= ChangeLevel(route.level.upper()).rank and concerned.fits(route)
            for channel in route.channels
        }
        return sorted(chosen)


def _findings(recorded: RecordedVersion) -> Iterator[Change]:
    """Yield the findings on a version; one declared breaking without a change is a finding too."""
    changes = [each for each in recorded.changes if not (each.policy and each.policy.ignored)]
    yield from changes
    version = recorded.version
    if version.backward_compatible is False and not recorded.changes:
        yield Change.from_json(
            {
                "dataset": recorded.dataset.urn,
                "path": "",
                "rule": DECLARED_RULE,
                "level": ChangeLevel.BREAKING,
                "scope": "DATASET",
                "bump": "MAJOR",
                "new": version.version,
                "message": "a breaking change was declared",
            }
        )


class _Concerned:
    """The dataset that changed and those downstream, looked up once for a version."""

    def __init__(
        self, dataset: LumosDataset, downstream: DownstreamPort, *, settings: AlertSettings
    ) -> None:
        self._port = downstream
        self._changed = AffectedDataset(
            urn=dataset.urn,
            name=dataset.name,
            owners=tuple(owner.name for owner in dataset.ownership.owners),
        )
        self._affected = downstream.of(
            dataset.urn, depth=settings.downstream_depth, limit=MOST_FOLLOWED
        )

    @cached_property
    def _groups(self) -> Mapping[str, frozenset[str]]:
        return self._port.groups_of_users()

    def fits(self, route: AlertRoute) -> bool:
        """Return whether a route is meant for the owners of any of the datasets."""
        return any(
            matches_dataset(route.pattern, each.urn) and self._is_owned(each, route.owners)
            for each in (self._changed, *self._affected)
        )

    def _is_owned(self, dataset: AffectedDataset, names: Sequence[str]) -> bool:
        if not names:
            return True
        wanted = frozenset(names)
        return any(
            owner in wanted or not wanted.isdisjoint(self._groups.get(owner, ()))
            for owner in dataset.owners
        )

    def finding(self, change: Change, version: DatasetVersion) -> AlertFinding:
        """Return a change as alerts show it."""
        return AlertFinding(
            fingerprint=change.fingerprint,
            dataset=self._changed.urn,
            name=self._changed.name,
            version=version.version,
            previous_version=version.previous_version,
            timestamp=version.timestamp,
            author=version.author,
            rule=change.rule,
            level=change.level,
            path=change.path,
            message=change.message,
            owners=self._changed.owners,
            affected=self._affected[:MOST_LISTED],
            affected_count=len(self._affected),
        )
