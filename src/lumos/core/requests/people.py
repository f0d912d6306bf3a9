"""Requests that bring users, owners and documentation from files into the state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core.requests.base import Request

if TYPE_CHECKING:
    from lumos.core.run_report import RunReport


class _FileRequest(Request["RunReport"]):
    result: ClassVar[str] = "run-report"

    file: Path = Field(description="A YAML or JSON file.")


class OwnershipUsersRequest(_FileRequest):
    """Create the users of a file, or bring them up to date."""

    operation: ClassVar[str] = "ownership-users"


class OwnershipGroupsRequest(_FileRequest):
    """Create the groups of a file, or bring them up to date."""

    operation: ClassVar[str] = "ownership-groups"


class OwnershipAssignRequest(_FileRequest):
    """Give datasets the owners that a file names."""

    operation: ClassVar[str] = "ownership-assign"


class EnrichRequest(_FileRequest):
    """Add the tags, documentation, properties and terms that a file names."""

    operation: ClassVar[str] = "enrich"
