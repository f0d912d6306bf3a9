"""Whether the version that a dataset declares is high enough for what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lumos.core.changes.diff import judged_findings
from lumos.core.changes.finding import Finding
from lumos.core.changes.profiles import DEFAULT_PROFILE
from lumos.core.changes.versions import bump_of, next_version
from lumos.core.errors import InvalidModelError
from lumos.core.models import Bump, Change, LumosDataset, SemanticVersion


def declared_version_changes(
    old: LumosDataset | None,
    new: LumosDataset | None,
    *,
    changes: Sequence[Change],
    profile: str = DEFAULT_PROFILE,
) -> tuple[Change, ...]:
    """Return what is wrong with the version that the new state declares, given what changed.

    Where a side declares none, or one that is no semantic version, nothing is said. Before 1.0.0
    a minor version may break.
    """
    if old is None or new is None:
        return ()
    before, after = _declared(old), _declared(new)
    if before is None or after is None:
        return ()
    findings = _findings(before, after, bump=bump_of(changes))
    return judged_findings(findings, new.urn, profile=profile)


def _declared(dataset: LumosDataset) -> SemanticVersion | None:
    try:
        return SemanticVersion.parse(dataset.version or "")
    except InvalidModelError:
        return None


def _findings(old: SemanticVersion, new: SemanticVersion, *, bump: Bump) -> Iterator[Finding]:
    if old.major == 0 and bump is Bump.MAJOR:
        bump = Bump.MINOR
    needed = next_version(old, bump)
    if new >= needed:
        return
    if new < old:
        rule = "version.decreased"
    elif new == old:
        rule = "version.not_bumped"
    else:
        rule = "version.major_missing" if bump is Bump.MAJOR else "version.minor_missing"
    yield Finding(rule, old=str(old), new=str(new), subject=str(needed))
