"""The models of versioning, under the names people look for here."""

from __future__ import annotations

from lumos.core.models import DatasetVersion, Urn, VersionMapping
from lumos.core.models.base import CanonicalModel

__all__ = ["DatasetVersion", "VersionMapping", "VersionUpdateResult"]


class VersionUpdateResult(CanonicalModel):
    """What incrementing the version of a dataset did."""

    dataset_urn: Urn
    update: DatasetVersion

    @property
    def schema_version(self) -> str:
        """The new semantic version."""
        return self.update.version

    @property
    def cloud_version(self) -> str | None:
        """The new cloud version."""
        return self.update.cloud_version

    @property
    def previous_version(self) -> str | None:
        """The semantic version before."""
        return self.update.previous_version
