"""Observations of a dataset as time series of DataHub, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.json_reading import object_at, objects_at
from lumos.core.models.base import LARGEST_INTEGER

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

MEASURED: Final = frozenset({"datasetProfile", "operation", "datasetUsageStatistics"})
"""Time series: what was measured of a dataset at some time, by whomever."""
SERIES: Final = MEASURED | {"assertionRunEvent"}
"""Time series that Lumos writes; the server keeps them in its index alone."""
TIMESERIES: Final = MEASURED | {"usageFeatures", "storageFeatures", "testResults"}
"""Aspects that are measured and not stated; the server makes some of them by itself."""
_OWN: Final = "lumos"
"""The message id of what Lumos measured, which distinguishes it from what others did."""

_LARGEST_INT: Final = 2**31 - 1
_COUNTS: Final = (
    ("datasetProfile", "rowCount", "row_count"),
    ("datasetProfile", "sizeInBytes", "total_size_bytes"),
    ("datasetUsageStatistics", "totalSqlQueries", "query_count"),
)
_TIMES: Final = (
    ("operation", "lastUpdatedTimestamp", "last_modified"),
    ("datasetUsageStatistics", "timestampMillis", "last_queried"),
)


def of_others(aspects: Mapping[str, JsonValue]) -> Json:
    """Return what others measured, as an extension keeps it."""
    found: Json = {}
    for name in sorted(MEASURED & aspects.keys()):
        value = aspects[name]
        if isinstance(value, dict) and value.get("messageId") != _OWN:
            found[name] = ["+", value]
    return found


def add_observations(document: Json, aspects: Mapping[str, JsonValue]) -> None:
    """Take over what others measured last, where the dataset itself has no figures."""
    if "statistics" in document:
        return
    told: Json = {}
    for name in MEASURED & aspects.keys():
        told.update(_told_by(name, aspects[name]))
    if told:
        document["statistics"] = told


def still_says(
    dataset: Mapping[str, JsonValue], name: str, measured: Mapping[str, JsonValue]
) -> bool:
    """Return whether a dataset says nothing else than what others measured of it."""
    statistics = object_at(dataset, "statistics")
    told = _told_by(name, dict(measured))
    if name == "datasetProfile" and dataset.get("profile"):
        return False
    return all(_same(statistics.get(key), value) for key, value in told.items())


def _told_by(name: str, measured: JsonValue) -> Json:
    values = measured if isinstance(measured, dict) else {}
    told: Json = {}
    for aspect, theirs, ours in _COUNTS:
        value = values.get(theirs) if aspect == name else None
        if isinstance(value, int) and 0 <= value <= LARGEST_INTEGER:
            told[ours] = value
    for aspect, theirs, ours in _TIMES:
        if aspect == name and (moment := _moment(values.get(theirs))):
            told[ours] = moment
    return told


def _same(ours: JsonValue, theirs: JsonValue) -> bool:
    if isinstance(ours, str) and isinstance(theirs, str):
        return datetime.fromisoformat(ours) == datetime.fromisoformat(theirs)
    return ours == theirs


def observations(dataset: Mapping[str, JsonValue]) -> Json:
    """Return the time series aspects of what was observed, as far as its time is known."""
    aspects: Json = {}
    statistics = object_at(dataset, "statistics")
    profile = object_at(dataset, "profile")
    modified = statistics.get("last_modified")
    if modified:
        at = _milliseconds(modified)
        aspects["operation"] = {
            "timestampMillis": at,
            "operationType": "UPDATE",
            "lastUpdatedTimestamp": at,
            "messageId": _OWN,
        }
    moment = profile.get("profiled_at") or modified
    if moment:
        told = _profile(statistics, profile)
        if told:
            at = _milliseconds(moment)
            aspects["datasetProfile"] = {"timestampMillis": at, **told, "messageId": _OWN}
    queried, queries = statistics.get("last_queried"), statistics.get("query_count")
    if queried and isinstance(queries, int) and queries <= _LARGEST_INT:
        aspects["datasetUsageStatistics"] = {
            "timestampMillis": _milliseconds(queried),
            "totalSqlQueries": queries,
            "messageId": _OWN,
        }
    return aspects


def _profile(statistics: Mapping[str, JsonValue], profile: Mapping[str, JsonValue]) -> Json:
    told: Json = {}
    rows = profile.get("row_count", statistics.get("row_count"))
    if isinstance(rows, int):
        told["rowCount"] = rows
    if isinstance(statistics.get("total_size_bytes"), int):
        told["sizeInBytes"] = statistics["total_size_bytes"]
    columns = objects_at(profile, "columns")
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
    quantiles = objects_at(column, "quantiles")
    if quantiles:
        told["quantiles"] = [
            {"quantile": _text(each["share"]), "value": _text(each["value"])} for each in quantiles
        ]
    return told


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _milliseconds(moment: JsonValue) -> int:
    return int(datetime.fromisoformat(str(moment)).timestamp() * 1000)


def _moment(milliseconds: JsonValue) -> str | None:
    if not isinstance(milliseconds, int):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
