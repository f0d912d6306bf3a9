"""The figures of a profile as OpenMetadata has them, and as Lumos has them.

What its profiler found is kept as it is, but for what could be text of the data or a value of a
personal column: smallest and largest values of text, the most frequent values, histograms of
anything but numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lumos.core.json_reading import as_object, object_at, objects_at
from lumos.core.models import DatasetProfile, Field, FieldType, TypeName
from lumos.core.models.base import LARGEST_INTEGER
from lumos.core.models.profile import ColumnProfile, LengthProfile, Quantile
from lumos.core.models.statistics import Bound, bound_of
from lumos.core.platform.impl.openmetadata.mapping.names import entity_name

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import LumosDataset

TABLE: Final = "tableProfile"
COLUMNS: Final = "columnProfile"
_INTEGERS: Final = frozenset(
    {TypeName.INT8, TypeName.INT16, TypeName.INT32, TypeName.INT64,
     TypeName.UINT8, TypeName.UINT16, TypeName.UINT32, TypeName.UINT64}
)  # fmt: skip
_NUMBERS: Final = _INTEGERS | {TypeName.FLOAT, TypeName.DOUBLE, TypeName.DECIMAL}
_TEXTS_OF_TABLES: Final = ("profileSampleType", "samplingMethodType", "createDateTime")
_QUARTILES: Final = {"firstQuartile": 0.25, "median": 0.5, "thirdQuartile": 0.75}
_IMPERSONAL: Final = ("Count", "Proportion", "Percentage", "Length", "timestamp")
_ALL: Final = 100
"""A sample of as many percent is none."""


class ProfiledField(NamedTuple):
    """A column, or a member of one, that OpenMetadata may have figures of."""

    path: str
    type: FieldType
    is_personal: bool


def profiled_fields(dataset: LumosDataset) -> dict[str, ProfiledField]:
    """Return the columns of a dataset and their members by their names on the wire."""
    found: dict[str, ProfiledField] = {}
    for name, field in _walk(dataset.schema.fields):
        found.setdefault(name, field)
    return found


def kept_figures(table: Json, dataset: LumosDataset) -> Json | None:
    """Return the profile that a table shows, as it may be kept; None where it shows none."""
    told = table.get("profile")
    shown = dict(_shown(table.get("columns")))
    columns = _fitting_columns(shown, dataset)
    figures: Json = table_figures(told) if isinstance(told, dict) else {}
    if not figures and not columns:
        return None
    if count(figures.get("timestamp")) is None:
        times = [count(as_object(each, "each").get("timestamp")) for each in columns]
        if (latest := max((at for at in times if at is not None), default=None)) is None:
            return None
        figures["timestamp"] = latest
    return {TABLE: figures, COLUMNS: columns}


def _fitting_columns(shown: Mapping[str, Json], dataset: LumosDataset) -> list[JsonValue]:
    """Return figures by the names of columns as they may be kept, without those of no column."""
    fields = profiled_fields(dataset)
    return [
        {"name": name, **_column_figures(figures, fields[name])}
        for name, figures in shown.items()
        if name in fields
    ]


def still_kept(kept: JsonValue | None, dataset: LumosDataset) -> Json | None:
    """Return kept figures without those of columns that are gone; None for what is no profile."""
    table = kept.get(TABLE) if isinstance(kept, dict) else None
    columns = kept.get(COLUMNS) if isinstance(kept, dict) else None
    if not isinstance(table, dict) or count(table.get("timestamp")) is None:
        return None
    given = columns if isinstance(columns, list) else []
    shown = {str(each.get("name")): each for each in given if isinstance(each, dict)}
    return {TABLE: table_figures(table), COLUMNS: _fitting_columns(shown, dataset)}


def profiled_at(kept: Mapping[str, JsonValue]) -> int:
    """Return the time of kept figures, in milliseconds."""
    return cast("int", count(object_at(kept, TABLE)["timestamp"]))


def told_profile(kept: Mapping[str, JsonValue], dataset: LumosDataset) -> DatasetProfile | None:
    """Return kept figures as a profile; None where they do not state of how many rows they are."""
    table, fields = object_at(kept, TABLE), profiled_fields(dataset)
    given = objects_at(kept, COLUMNS)
    sample = _sample(table)
    whole = count(table.get("rowCount"))
    told = (
        _told_column(each, fields[str(each["name"])], rows=None if sample else whole)
        for each in given
        if each["name"] in fields
    )
    columns = tuple(each for each in told if each is not None)
    seen = max((each.value_count + each.null_count for each in columns), default=None)
    rows = seen if whole is None or (sample and seen is not None) else whole
    moment = moment_of(profiled_at(kept))
    if rows is None or moment is None:
        return None
    return DatasetProfile(
        profiled_at=moment, row_count=rows, file_count=0, sample=sample, columns=columns
    )


def wire_profile(dataset: LumosDataset, profile: DatasetProfile) -> Json:
    """Return a profile as OpenMetadata's profiler would have found it."""
    at = round(profile.profiled_at.timestamp() * 1_000)
    statistics = dataset.statistics
    table: Json = {
        "timestamp": at,
        "rowCount": profile.row_count,
        "columnCount": len(dataset.schema.fields),
        "sizeInByte": statistics.total_size_bytes if statistics else None,
    }
    if profile.sample is not None:
        table["rowCount"] = statistics.row_count if statistics else None
        table |= {"profileSample": profile.sample * _ALL, "profileSampleType": "PERCENTAGE"}
    names = {field.path: name for name, field in profiled_fields(dataset).items()}
    return {
        TABLE: _without_none(table),
        COLUMNS: [
            {"name": names[column.path], "timestamp": at, **_wire_column(column)}
            for column in profile.columns
            if column.path in names
        ],
    }


def count(value: JsonValue | None) -> int | None:
    """Return a number of things, which OpenMetadata may spell with a fraction of zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return int(value) if value <= LARGEST_INTEGER and value == int(value) else None


def _walk(fields: Iterable[Field]) -> Iterator[tuple[str, ProfiledField]]:
    """Yield columns before members, so that a column with a dot in its name is found first."""
    level = [
        (entity_name(field.name), ProfiledField(field.name, field, field.pii)) for field in fields
    ]
    while level:
        yield from level
        level = [each for name, above in level for each in _members(name, above)]


def _members(name: str, above: ProfiledField) -> Iterator[tuple[str, ProfiledField]]:
    is_list = above.type.type is TypeName.ARRAY
    inner = above.type.items if is_list else above.type
    if inner is None or inner.type is not TypeName.STRUCT:
        return
    for field in inner.fields:
        path = f"{above.path}{'[]' if is_list else ''}.{field.name}"
        personal = above.is_personal or field.pii
        yield f"{name}.{entity_name(field.name)}", ProfiledField(path, field, personal)


def _shown(columns: JsonValue | None, above: str = "") -> Iterator[tuple[str, Json]]:
    for column in columns if isinstance(columns, list) else []:
        if not isinstance(column, dict):
            continue
        name = f"{above}{column.get('name')}"
        figures = column.get("profile")
        if isinstance(figures, dict):
            yield name, figures
        yield from _shown(column.get("children"), f"{name}.")


def table_figures(told: Json) -> Json:
    """Return what may be kept of the figures of a table as a whole."""
    figures: Json = {name: _held(value) for name, value in told.items() if _is_number(value)}
    figures |= {name: told[name] for name in _TEXTS_OF_TABLES if isinstance(told.get(name), str)}
    if metrics := _metrics(told.get("customMetrics")):
        figures["customMetrics"] = metrics
    return figures


def _column_figures(told: Mapping[str, JsonValue], field: ProfiledField) -> Json:
    figures: Json = {name: _held(value) for name, value in told.items() if _is_number(value)}
    if field.is_personal:
        return {name: value for name, value in figures.items() if name.endswith(_IMPERSONAL)}
    for name in ("min", "max"):
        if isinstance(told.get(name), str) and _bound(told[name], field.type) is not None:
            figures[name] = told[name]
    if told.get("histogram") and field.type.type in _NUMBERS:
        figures["histogram"] = told["histogram"]
    if metrics := _metrics(told.get("customMetrics")):
        figures["customMetrics"] = metrics
    return figures


def _held(number: JsonValue) -> JsonValue:
    """Return a number as a snapshot can hold it."""
    fits = isinstance(number, float) or abs(cast("int", number)) <= LARGEST_INTEGER
    return number if fits else float(cast("int", number))


def _metrics(told: JsonValue | None) -> list[JsonValue]:
    return [
        {"name": each.get("name"), "value": _held(each["value"])}
        for each in (told if isinstance(told, list) else [])
        if isinstance(each, dict) and _is_number(each.get("value"))
    ]


def _told_column(figures: Json, field: ProfiledField, *, rows: int | None) -> ColumnProfile | None:
    values, nulls = count(figures.get("valuesCount")), count(figures.get("nullCount"))
    if rows is not None:
        values = rows - nulls if values is None and nulls is not None else values
        nulls = rows - values if nulls is None and values is not None else nulls
    if values is None or nulls is None or min(values, nulls) < 0:
        return None
    share = figures.get("nullProportion")
    of_rows = nulls / (values + nulls) if values + nulls else None
    is_number = field.type.type in _NUMBERS
    return ColumnProfile(
        path=field.path,
        type=field.type.signature(),
        value_count=values,
        null_count=nulls,
        null_share=share if isinstance(share, int | float) and 0 <= share <= 1 else of_rows,
        distinct_count=count(figures.get("distinctCount")),
        min=_bound(figures.get("min"), field.type),
        max=_bound(figures.get("max"), field.type),
        mean=_finite(figures.get("mean")) if is_number else None,
        stddev=_finite(figures.get("stddev")) if is_number else None,
        quantiles=tuple(_told_quantiles(figures, field.type)) if is_number else (),
        length=_told_length(figures) if field.type.type is TypeName.STRING else None,
    )


def _told_quantiles(figures: Json, type_: FieldType) -> Iterator[Quantile]:
    for name, share in _QUARTILES.items():
        value = _bound(figures.get(name), type_)
        if value is not None:
            yield Quantile(share=share, value=value)


def _told_length(figures: Json) -> LengthProfile | None:
    """Return how long texts are; the mean that OpenMetadata has of them is of their lengths."""
    least, most = count(figures.get("minLength")), count(figures.get("maxLength"))
    mean = _finite(figures.get("mean"))
    if least is None or most is None or mean is None or not least <= mean <= most:
        return None
    return LengthProfile(min=least, mean=mean, max=most)


def _wire_column(column: ColumnProfile) -> Json:
    length = column.length
    quantiles = {each.share: each.value for each in column.quantiles}
    figures: dict[str, object] = {
        "valuesCount": column.value_count,
        "nullCount": column.null_count,
        "nullProportion": column.null_share,
        "distinctCount": column.distinct_count,
        "min": column.min,
        "max": column.max,
        "mean": length.mean if length and column.mean is None else column.mean,
        "stddev": column.stddev,
        "minLength": length.min if length else None,
        "maxLength": length.max if length else None,
    }
    figures |= {
        name: value
        for name, share in _QUARTILES.items()
        if _is_number(cast("JsonValue", value := quantiles.get(share)))
    }
    told = ((name, None if isinstance(value, bool) else value) for name, value in figures.items())
    return _without_none(cast("Json", dict(told)))


def _bound(value: JsonValue | None, type_: FieldType) -> Bound | None:
    """Return the end of a range of numbers or times; None for what may be text of the data."""
    try:
        if type_.type in _NUMBERS:
            return _number(value, type_)
        if isinstance(value, str):
            return _time(value, type_)
    except (ValueError, InvalidOperation, OverflowError):
        return None
    return None


def _number(value: JsonValue | None, type_: FieldType) -> Bound | None:
    if isinstance(value, str):
        exact = Decimal(value)
        is_whole = exact.is_finite() and exact == exact.to_integral_value()
        return bound_of(int(exact) if type_.type in _INTEGERS and is_whole else exact)
    if not _is_number(value):
        return None
    number = cast("int | float", value)
    is_whole = math.isfinite(number) and number == int(number)
    return bound_of(int(number) if type_.type in _INTEGERS and is_whole else number)


def _time(value: str, type_: FieldType) -> Bound | None:
    match type_.type:
        case TypeName.DATE:
            return bound_of(date.fromisoformat(value[:10]))
        case TypeName.TIME:
            return bound_of(time.fromisoformat(value))
        case TypeName.TIMESTAMP | TypeName.TIMESTAMP_NTZ:
            moment = datetime.fromisoformat(value)
            return bound_of(moment.astimezone(UTC) if moment.tzinfo else moment)
        case _:
            return None


def _sample(table: Json) -> float | None:
    percent = table.get("profileSample")
    if table.get("profileSampleType", "PERCENTAGE") != "PERCENTAGE" or not _is_number(percent):
        return None
    share = cast("float", percent) / _ALL
    return share if 0 < share < 1 else None


def moment_of(milliseconds: int) -> datetime | None:
    """Return a time as the server states it, None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(milliseconds / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _finite(value: JsonValue | None) -> float | None:
    return float(cast("float", value)) if _is_number(value) else None


def _is_number(value: JsonValue | None) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and math.isfinite(cast("float", value))


def _without_none(figures: Json) -> Json:
    return {name: value for name, value in figures.items() if value is not None}
