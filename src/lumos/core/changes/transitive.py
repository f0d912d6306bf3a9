"""What changed against every version that is kept, and not only against the last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from lumos.core.changes.diff import diff_datasets, severity_order
from lumos.core.changes.profiles import resolve_profile
from lumos.core.models import Change, ChangeLevel, LumosDataset

_BELOW = (".", "[", "{", "<")


def diff_against_history(
    earlier: Sequence[LumosDataset],
    new: LumosDataset | None,
    *,
    profile: str,
    at: datetime | None = None,
) -> tuple[Change, ...]:
    """Return what changed since the last of the earlier states, which come oldest first.

    Under a transitive profile, what breaks a state before the last one is added: a field that went
    away and comes back as another type, say. What the last state had broken already is not reported
    again, nor is anything on a field whose break is reported.

    Raises:
        UnknownNameError: there is no such profile.
    """
    last = earlier[-1] if earlier else None
    changes = diff_datasets(last, new, profile=profile, at=at)
    if last is None or new is None or not resolve_profile(profile).transitive:
        return changes
    found = [*changes]
    seen = {last.contract_hash}
    for state in reversed(earlier[:-1]):
        if state.contract_hash not in seen:
            seen.add(state.contract_hash)
            found.extend(_broken_anew(state, last, new, told=found, profile=profile, at=at))
    return tuple(sorted(found, key=severity_order))


def _broken_anew(
    state: LumosDataset,
    last: LumosDataset,
    new: LumosDataset,
    *,
    told: Sequence[Change],
    profile: str,
    at: datetime | None,
) -> Iterator[Change]:
    breaks = [
        change
        for change in _breaking(diff_datasets(state, new, profile=profile, at=at))
        if not any(_covers(other, change) for other in _breaking(told))
    ]
    if not breaks:
        return
    old_news = {
        change.fingerprint
        for change in _breaking(diff_datasets(state, last, profile=profile, at=at))
    }
    against = f"version {state.version}" if state.version else "an earlier version"
    for change in breaks:
        if change.fingerprint not in old_news:
            message = f"{change.message} (compared with {against})"
            yield change.model_copy(update={"message": message})


def _breaking(changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.level is ChangeLevel.BREAKING]


def _covers(told: Change, change: Change) -> bool:
    """Return whether a break is reported already: at the same field, or at one that holds it."""
    if not told.path or not change.path:
        return told.path == change.path and told.rule == change.rule
    return change.path == told.path or change.path.startswith(
        tuple(told.path + step for step in _BELOW)
    )
