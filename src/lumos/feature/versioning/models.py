"""The models of versioning, under the names people look for here."""

from lumos.core.models import DatasetVersion, VersionMapping

__all__ = ["DatasetVersion", "VersionMapping"]
