"""Profiles in the stand-in for an OpenMetadata server: what is refused, what is the latest."""

from __future__ import annotations

from typing import Any

from doubles.openmetadata_tests import RefusedError

Json = dict[str, Any]
_DIGITS = 12
"""A time of fewer digits is taken for one in seconds, and refused."""


def check_profile(table: Json, body: Json) -> None:
    """Refuse figures of a column that is not there, and times that are not in milliseconds."""
    columns = body.get("columnProfile") or []
    for figures in (body["tableProfile"], *columns, *(body.get("systemProfile") or [])):
        if len(str(figures["timestamp"])) < _DIGITS:
            raise RefusedError(400, "it should be in milliseconds since epoch")
    if {each["name"] for each in columns} - {*_names(table["columns"])}:
        raise RefusedError(400, "Invalid column name")


def profiled(table: Json, profiles: list[Json]) -> Json:
    """Return a table with the latest figures of itself and, each by itself, of its columns."""
    ordered = sorted(profiles, key=lambda each: each["tableProfile"]["timestamp"])
    latest = {each["name"]: each for body in ordered for each in body.get("columnProfile") or []}
    shown = {**table, "columns": _with_figures(table["columns"], latest)}
    return {**shown, "profile": ordered[-1]["tableProfile"]} if ordered else shown


def between(profiles: list[Json], kind: str, query: dict[str, str]) -> Json:
    """Return figures of a kind by their times, the newest first; both ends have to be given."""
    if not {"startTs", "endTs"} <= query.keys():
        raise RefusedError(400, "query param must not be null")
    start, end = int(query["startTs"]), int(query["endTs"])
    given = [each.get(kind) for each in profiles]
    found = [one for each in given for one in (each if isinstance(each, list) else [each]) if one]
    shown = sorted(
        (each for each in found if start <= each["timestamp"] <= end),
        key=lambda each: -each["timestamp"],
    )
    # Cursors that lead nowhere: they are the ends of the time that was asked for.
    paging = {"before": query["startTs"], "after": query["endTs"], "total": len(shown)}
    return {"data": shown, "paging": paging}


def _with_figures(columns: list[Json], latest: Json, above: str = "") -> list[Json]:
    found = []
    for column in columns:
        name = f"{above}{column['name']}"
        shown = {**column, "profile": latest[name]} if name in latest else dict(column)
        if column.get("children"):
            shown["children"] = _with_figures(column["children"], latest, f"{name}.")
        found.append(shown)
    return found


def _names(columns: list[Json], above: str = "") -> list[str]:
    found = []
    for column in columns:
        name = f"{above}{column['name']}"
        found += [name, *_names(column.get("children") or [], f"{name}.")]
    return found
