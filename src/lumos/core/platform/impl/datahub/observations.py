"""What was observed of a dataset as time series of DataHub, and what those tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

import orjson

if TYPE_CHECKING:
    from pydantic import JsonValue

Json = dict[str, "JsonValue"]
TIMESERIES: Final = frozenset({
    "datasetProfile", "operation", "datasetUsageStatistics", "usageFeatures", "storageFeatures",
    "testResults",
})  # fmt: skip
"""Aspects that are measured and not stated."""


def add_observations(document: Json, aspects: Mapping[str, JsonValue]) -> None:
    """Take over rows and size of the latest profile where the dataset tells of none itself."""
    profile = aspects.get("datasetProfile")
    if not isinstance(profile, dict) or "statistics" in document:
        return
    told: Json = {}
    for name, theirs in (("row_count", "rowCount"), ("total_size_bytes", "sizeInBytes")):
        value = profile.get(theirs)
        if isinstance(value, int) and value >= 0:
            told[name] = value
    operation = aspects.get("operation")
    if isinstance(operation, dict) and isinstance(operation.get("lastUpdatedTimestamp"), int):
        moment = cast("int", operation["lastUpdatedTimestamp"]) / 1000
        told["last_modified"] = datetime.fromtimestamp(moment, tz=UTC).isoformat()
    if told:
        document["statistics"] = told


def observations(dataset: Mapping[str, JsonValue]) -> Json:
    """Return the time series aspects of what was observed, as far as its time is known."""
    aspects: Json = {}
    statistics = cast("Json", dataset.get("statistics") or {})
    profile = cast("Json", dataset.get("profile") or {})
    modified = statistics.get("last_modified")
    if modified:
        at = _milliseconds(modified)
        aspects["operation"] = {
            "timestampMillis": at,
            "operationType": "UPDATE",
            "lastUpdatedTimestamp": at,
        }
    moment = profile.get("profiled_at") or modified
    if moment:
        told = _profile(statistics, profile)
        if told:
            aspects["datasetProfile"] = {"timestampMillis": _milliseconds(moment), **told}
    return aspects


def _profile(statistics: Mapping[str, JsonValue], profile: Mapping[str, JsonValue]) -> Json:
    told: Json = {}
    rows = profile.get("row_count", statistics.get("row_count"))
    if isinstance(rows, int):
        told["rowCount"] = rows
    if isinstance(statistics.get("total_size_bytes"), int):
        told["sizeInBytes"] = statistics["total_size_bytes"]
    columns = cast("list[Json]", profile.get("columns") or [])
    if columns:
        told["columnCount"] = len(columns)
        told["fieldProfiles"] = [_field_profile(column) for column in columns]
    return told


def _field_profile(column: Mapping[str, JsonValue]) -> Json:
    told: Json = {"fieldPath": column["path"]}
    names = {"uniqueCount": "distinct_count", "nullCount": "null_count"}
    told.update({theirs: column[ours] for theirs, ours in names.items() if ours in column})
    if "null_share" in column:
        told["nullProportion"] = column["null_share"]
    for theirs, ours in (("min", "min"), ("max", "max"), ("mean", "mean"), ("stdev", "stddev")):
        if ours in column:
            told[theirs] = _text(column[ours])
    quantiles = cast("list[Json]", column.get("quantiles") or [])
    if quantiles:
        told["quantiles"] = [
            {"quantile": _text(each["share"]), "value": _text(each["value"])} for each in quantiles
        ]
    return told


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _milliseconds(moment: JsonValue) -> int:
    return int(datetime.fromisoformat(str(moment)).timestamp() * 1000)
