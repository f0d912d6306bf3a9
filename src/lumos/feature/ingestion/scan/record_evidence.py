"""What a scan by records looked at in full, and what it could not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lumos.core.models import LumosDataset, Urn
from lumos.spark.stages.rows import UNLISTED_PART

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.spark.record_pipeline import FoundProblem, FoundScope

_EVERYTHING = "lumos://"
"""The scope of a source that declares datasets of any platform."""


@dataclass
class RecordEvidence:
    """Only what lies in a scope that was listed in full, and could be read, may be gone."""

    scopes: dict[str, list[str]] = field(default_factory=dict)
    """URN prefixes by source."""
    unreadable: dict[str, set[str]] = field(default_factory=dict)
    """By source, the URNs of what is there and could not be read."""

    @classmethod
    def of(cls, scopes: Iterable[FoundScope], problems: Iterable[FoundProblem]) -> RecordEvidence:
        """Gather what a pipeline found.

        Nobody knows what lies in a part that could not be listed, so no scope of its source counts.
        """
        evidence = cls()
        for scope in scopes:
            evidence.scopes.setdefault(scope.source, []).append(scope.urn_prefix)
        for problem in problems:
            if problem.kind == UNLISTED_PART:
                evidence.scopes.pop(problem.source, None)
            if problem.urn is not None:
                evidence.unreadable.setdefault(problem.source, set()).add(problem.urn)
        return evidence

    def whole(
        self, found: LumosDataset, present: LumosDataset | None, *, source: str
    ) -> LumosDataset | None:
        """Return a dataset as it was found: a source of records sees all of it or nothing."""
        return found

    def is_gone(self, dataset: LumosDataset, *, source: str) -> bool:
        """Return whether a dataset that was not found is surely not there any more."""
        return self.covers(dataset.urn, source=source)

    def covers(self, urn: Urn, *, source: str) -> bool:
        """Return whether a source would have found a dataset, were it there."""
        if urn in self.unreadable.get(source, ()):
            return False
        return any(_is_within(urn, prefix) for prefix in self.scopes.get(source, ()))


def _is_within(urn: Urn, prefix: str) -> bool:
    if prefix == _EVERYTHING:
        return True
    if "/" not in prefix.removeprefix(_EVERYTHING).rstrip("/"):  # a platform alone is no URN
        return urn.platform == prefix.removeprefix(_EVERYTHING).rstrip("/")
    root = Urn(prefix.rstrip("/"))
    return urn.is_within(root.platform, *root.parts)
