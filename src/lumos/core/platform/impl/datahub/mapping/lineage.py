"""Edges of Lumos as the upstream lineage of DataHub's datasets, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_object, list_at, object_at
from lumos.core.models import LineageEdge
from lumos.core.platform.impl.datahub.mapping.fields import column_of
from lumos.core.platform.impl.datahub.mapping.stash import KEY, packed, unpacked
from lumos.core.platform.impl.datahub.mapping.urns import (
    dataset_urn,
    escaped,
    field_of,
    field_urn,
    lumos_dataset_urn,
    simple_name,
    simple_urn,
)
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

ASPECT: Final = "upstreamLineage"
_ACTOR: Final = "urn:li:corpuser:lumos"
_TYPES: Final[Mapping[str, str]] = {"TRANSFORMED": "TRANSFORMED", "COPIED": "COPY", "VIEW": "VIEW"}
_READ_TYPES: Final[Mapping[str, str]] = {theirs: ours for ours, theirs in _TYPES.items()}


def with_edges(
    aspect: Mapping[str, JsonValue], downstream: str, edges: Sequence[LineageEdge], *,
    upstream: str, environment: str,
) -> Json:  # fmt: skip
    """Return the lineage of a dataset with these edges, and no other, from one upstream dataset."""
    there = dataset_urn(upstream, environment=environment)
    here = dataset_urn(downstream, environment=environment)
    upstreams = [
        each for each in list_at(aspect, "upstreams")
        if not isinstance(each, dict) or each.get("dataset") != there
    ]  # fmt: skip
    fine = [
        each for each in list_at(aspect, "fineGrainedLineages")
        if not isinstance(each, dict) or not _is_between(each, there)
    ]  # fmt: skip
    if edges:
        columns = _column_lineage(edges, there=there, here=here)
        upstreams.append(_upstream(edges, columns, there=there, here=here, environment=environment))
        fine.extend(columns)
    whole: Json = {**aspect, "upstreams": upstreams}
    whole.pop("fineGrainedLineages", None)
    if fine:
        whole["fineGrainedLineages"] = fine
    return whole


def read_edges(
    here: str, aspect: Mapping[str, JsonValue], *, environment: str, downstream: str | None = None
) -> list[LineageEdge]:
    """Return the edges in the lineage of a dataset.

    What is none in Lumos, such as a dataset that is made from itself, stays in the aspect, and is
    kept verbatim in the extension of a snapshot.
    """
    name = downstream or lumos_dataset_urn(here, environment=environment)
    fine = aspect.get("fineGrainedLineages")
    rows = [row for row in fine if isinstance(row, dict)] if isinstance(fine, list) else []
    upstreams = aspect.get("upstreams")
    tables = upstreams if isinstance(upstreams, list) else []
    edges: dict[tuple[str, str, str], LineageEdge] = {}
    for upstream in (*tables, *_by_columns_alone(rows, tables)):
        with suppress(*UNFIT):
            read = _edges_of(
                as_object(upstream, "upstream"), rows, name=name, environment=environment
            )
            edges.update({edge.key: edge for edge in read})
    return [*edges.values()]


def _by_columns_alone(rows: Sequence[Json], tables: Sequence[JsonValue]) -> list[Json]:
    """Return the upstream datasets that column lineage names and table lineage does not."""
    known = {each.get("dataset") for each in tables if isinstance(each, dict)}
    named = (source[0] for row in rows for source in _columns(row, "upstreams") if source)
    return [{"dataset": urn} for urn in dict.fromkeys(named) if urn not in known]


def _edges_of(
    upstream: Json, fine: Sequence[Json], *, name: str, environment: str
) -> list[LineageEdge]:
    found = _plain(upstream, fine, downstream=name, environment=environment)
    if found["upstream_urn"] == found["downstream_urn"]:
        return []
    kept = unpacked(object_at(upstream, "properties").get(KEY))
    documents: list[JsonValue] = [found]
    if isinstance(kept, dict) and kept.get("found") == found:
        documents = list_at(kept, "edges")
    return [LineageEdge.from_json(document) for document in documents]


def _upstream(
    edges: Sequence[LineageEdge], columns: Sequence[Json], *, there: str, here: str,
    environment: str,
) -> Json:  # fmt: skip
    first = edges[0]
    stamp: Json = {
        "time": int(first.created_at.timestamp() * 1000) if first.created_at else 0,
        "actor": simple_urn("corpuser", first.created_by) if first.created_by else _ACTOR,
    }
    upstream: Json = {
        "auditStamp": stamp,
        "dataset": there,
        "type": _TYPES[first.lineage_type.value],
    }
    found = _plain(upstream, columns, downstream=first.downstream_urn, environment=environment)
    documents: list[JsonValue] = [edge.to_json() for edge in edges]
    if documents != [found]:
        upstream["properties"] = {KEY: packed({"found": found, "edges": documents})}
    return upstream


def _column_lineage(edges: Iterable[LineageEdge], *, there: str, here: str) -> list[Json]:
    rows: dict[tuple[str, str, str], Json] = {}
    for edge in edges:
        for mapping in edge.column_mappings:
            key = (mapping.upstream_column, mapping.downstream_column, mapping.transformation or "")
            row: Json = {
                "upstreamType": "FIELD_SET",
                "upstreams": [field_urn(there, escaped(mapping.upstream_column))],
                "downstreamType": "FIELD",
                "downstreams": [field_urn(here, escaped(mapping.downstream_column))],
                "confidenceScore": edge.confidence,
            }
            if mapping.transformation is not None:
                row["transformOperation"] = mapping.transformation
            rows.setdefault(key, row)
    return [*rows.values()]


def _plain(
    upstream: Mapping[str, JsonValue], fine: Iterable[Mapping[str, JsonValue]], *,
    downstream: str, environment: str,
) -> Json:  # fmt: skip
    there = str(upstream["dataset"])
    edge: Json = {
        "upstream_urn": str(lumos_dataset_urn(there, environment=environment)),
        "downstream_urn": str(downstream),
        "lineage_type": _READ_TYPES.get(str(upstream.get("type")), "TRANSFORMED"),
    }
    stamp = object_at(upstream, "auditStamp")
    moment = stamp.get("time")
    if isinstance(moment, int) and moment > 0:
        with suppress(ValueError, OverflowError, OSError):  # no year that there is
            at = datetime.fromtimestamp(moment / 1000, tz=UTC)
            edge["created_at"] = at.isoformat().replace("+00:00", "Z")
    if stamp.get("actor") not in (None, _ACTOR):
        edge["created_by"] = simple_name(str(stamp["actor"]))
    mappings = [mapping for row in fine for mapping in _mappings(row, there)]
    if mappings:
        edge["column_mappings"] = [*mappings]
    return edge


def _mappings(row: Mapping[str, JsonValue], there: str) -> list[Json]:
    targets, sources = _columns(row, "downstreams"), _columns(row, "upstreams")
    told: Json = {}
    if row.get("transformOperation") is not None:
        told["transformation"] = row["transformOperation"]
    return [
        {
            "upstream_column": column_of(source[1]),
            "downstream_column": column_of(target[1]),
            **told,
        }
        for source in sources
        for target in targets
        if source and target and source[0] == there
    ]


def _columns(row: Mapping[str, JsonValue], end: str) -> list[tuple[str, str] | None]:
    urns = row.get(end)
    return [field_of(str(urn)) for urn in urns] if isinstance(urns, list) else []


def _is_between(row: Mapping[str, JsonValue], there: str) -> bool:
    sources = _columns(row, "upstreams")
    return bool(sources) and all(source is not None and source[0] == there for source in sources)
