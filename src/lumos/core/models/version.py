"""Versions of a dataset's metadata and the history that they form."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import AliasChoices, Field, StringConstraints
from typing_extensions import override

from lumos.core.errors import InvalidModelError
from lumos.core.models.base import CanonicalModel, Name, Properties, UtcDatetime
from lumos.core.models.frozen import FrozenDict
from lumos.core.models.urn import Urn

_SEMANTIC = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)\Z")


class SemanticVersion(NamedTuple):
    """A version number `major.minor.patch`, ordered by its parts."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `1.2.3`.

        Raises:
            InvalidModelError: the text is no semantic version.
        """
        match = _SEMANTIC.match(text)
        if match is None:
            raise InvalidModelError("a version looks like 1.2.3")
        return cls(int(match[1]), int(match[2]), int(match[3]))

    @override
    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


FIRST_VERSION = SemanticVersion(1, 0, 0)
VersionText = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]


class VersionCategory(StrEnum):
    """What kind of change made a version."""

    SCHEMA_CHANGE = "SCHEMA_CHANGE"
    DATA_UPDATE = "DATA_UPDATE"
    METADATA_UPDATE = "METADATA_UPDATE"


class AlertState(StrEnum):
    """Whether alerts on a breaking change were sent."""

    PENDING = "PENDING"
    SENT = "SENT"
    FAILED = "FAILED"


class DatasetVersion(CanonicalModel):
    """One version of a dataset: number, time, author, and what changed."""

    version: VersionText = Field(validation_alias=AliasChoices("version", "schema_version"))
    timestamp: UtcDatetime
    fields: tuple[str, ...] = Field(default=(), description="The columns of the first version.")
    change_type: Name | None = Field(
        default=None, description="COLUMN_ADDED, COLUMN_TYPE_CHANGED, …; none for the first."
    )
    change_details: Properties = Field(default_factory=FrozenDict)
    backward_compatible: bool | None = None
    breaking_change_alert: AlertState | None = None
    category: VersionCategory | None = None
    author: str | None = None
    previous_version: VersionText | None = None
    cloud_version: str | None = None

    @property
    def schema_version(self) -> str:
        """The semantic version, under the name it has beside `cloud_version`."""
        return self.version


class VersionMapping(CanonicalModel):
    """Which semantic version belongs to a cloud version such as `S-312`."""

    cloud_version: Name
    schema_version: VersionText


class SchemaHistory(CanonicalModel):
    """All versions of one dataset, newest last."""

    dataset: Name = Field(description="The name of the dataset.")
    urn: Urn | None = None
    schema_history: tuple[DatasetVersion, ...] = ()
