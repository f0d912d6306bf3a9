"""Requests that read what is known of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core.models.base import UtcDatetime
from lumos.core.requests.base import Request

if TYPE_CHECKING:
    from lumos.core.controllers.catalog_results import (
        ComparisonResult,
        ShownDataset,
        TrendResult,
    )
    from lumos.core.models import SchemaHistory
    from lumos.core.platform.search_page import SearchPage
    from lumos.feature.versioning.results import BlameResult

_DATASET = "A URN, or a name that only one dataset has."


class SearchRequest(Request["SearchPage"]):
    """Find datasets by words in names, columns, descriptions, tags and owners."""

    operation: ClassVar[str] = "search"
    result: ClassVar[str] = "search"

    text: str = Field(
        default="",
        description="Words, or beginnings of words, and terms such as `column:email`, `tag:pii`, "
        "`owner:ada` or `platform:s3`.",
    )
    catalogs: tuple[str, ...] = Field(
        default=(), description="The catalogs to ask; those of the settings if there is none."
    )
    platforms: tuple[str, ...] = Field(
        default=(), description="More catalogs to ask, or one platform of data, such as `s3`."
    )
    platform: str | None = Field(default=None, description="Only data of this platform.")
    owner: str | None = Field(default=None, description="Only datasets of this user or group.")
    tag: str | None = Field(default=None, description="Only datasets with this tag.")
    column: str | None = Field(
        default=None, description="Only datasets with a column of this name, or a beginning of it."
    )
    min_quality: float | None = Field(
        default=None, description="Only datasets with at least this quality, in percent."
    )
    limit: int = Field(default=20, description="How many to return.")
    offset: int = Field(default=0, description="How many to pass over.")


class ShowRequest(Request["ShownDataset"]):
    """Show all that is known of a dataset."""

    operation: ClassVar[str] = "show"
    result: ClassVar[str] = "show"

    dataset: str = Field(description=_DATASET)
    contributions: bool = Field(
        default=False, description="Also return which contributor states which facet."
    )


class TrendRequest(Request["TrendResult"]):
    """Show what was measured of a dataset over time."""

    operation: ClassVar[str] = "show-trend"
    result: ClassVar[str] = "show-trend"

    dataset: str = Field(description=_DATASET)
    since: UtcDatetime | None = Field(default=None, description="Only measurements since then.")
    limit: int | None = Field(default=None, description="Only the newest so many of each kind.")


class HistoryRequest(Request["SchemaHistory"]):
    """List the versions of a dataset."""

    operation: ClassVar[str] = "history"
    result: ClassVar[str] = "history"

    dataset: str = Field(description=_DATASET)
    since: UtcDatetime | None = Field(default=None, description="Only versions made since then.")
    limit: int | None = Field(default=None, description="Only the newest so many.")


class BlameRequest(Request["BlameResult"]):
    """Return which version added each column of a dataset, and which changed it last."""

    operation: ClassVar[str] = "history-blame"
    result: ClassVar[str] = "history-blame"

    dataset: str = Field(description=_DATASET)


class CompareRequest(Request["ComparisonResult"]):
    """Compare two versions of a dataset."""

    operation: ClassVar[str] = "compare"
    result: ClassVar[str] = "compare"

    dataset: str = Field(description=_DATASET)
    first: str = Field(
        default="previous",
        description="A version: its number, its cloud version, latest, previous or first.",
    )
    second: str = Field(default="latest", description="The version compared with it.")
