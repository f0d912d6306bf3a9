"""What a profile shows, as OpenMetadata's profiler would have found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.platform.impl.openmetadata.names import entity_name

if TYPE_CHECKING:
    from lumos.core.models import DatasetProfile, LumosDataset
    from lumos.core.models.profile import ColumnProfile
    from lumos.core.platform.stash import Json


def wire_profile(dataset: LumosDataset, profile: DatasetProfile) -> Json:
    """Return the profile of a table and its columns; members of columns have none there."""
    at = round(profile.profiled_at.timestamp() * 1_000)
    names = {field.name for field in dataset.schema.fields}
    return {
        "tableProfile": {
            "timestamp": at,
            "rowCount": profile.row_count,
            "columnCount": len(names),
        },
        "columnProfile": [
            _column(column, at=at) for column in profile.columns if column.path in names
        ],
    }


def _column(column: ColumnProfile, *, at: int) -> Json:
    figures: Json = {
        "name": entity_name(column.path),
        "timestamp": at,
        "valuesCount": column.value_count,
        "nullCount": column.null_count,
        "nullProportion": column.null_share,
        "distinctCount": column.distinct_count,
        "mean": column.mean,
        "stddev": column.stddev,
    }
    return {name: value for name, value in figures.items() if value is not None}
