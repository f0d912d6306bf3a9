"""Edges in OpenMetadata, which keeps one between two entities, and what Lumos says beyond that.

All edges between two datasets are kept in the stash of the one that is made; OpenMetadata's own
edge shows them together. Where somebody changed that edge since, it counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.json_reading import object_at
from lumos.core.models import (
    DatasetLineage,
    LineageEdge,
    LumosDataset,
    NeighboursBuilder,
    Urn,
    with_parts,
)
from lumos.core.models.base import sha256_of
from lumos.core.platform.impl.openmetadata.mapping.entities import NAME, kept_of
from lumos.core.platform.impl.openmetadata.mapping.names import (
    decoded,
    entity_name,
    fqn,
    job_urn,
    path_of,
    pipeline_path,
)
from lumos.core.platform.impl.openmetadata.mapping.stashed import read_dataset
from lumos.core.platform.impl.openmetadata.side_store import stash_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.mapping.stashed import Node

EDGES: Final = "edges"
ITSELF: Final = "itself"
"""Where the extension of a dataset keeps an edge to itself."""
STEPS: Final = "steps"
"""Where the extension of a dataset keeps what edges into it say besides columns, by upstream."""
_SAID: Final = ("sqlQuery", "description")
_STATED: Final = ("source", "columnsLineage", *_SAID)
_MANUAL: Final = "Manual"
_PROVENANCE: Final = {
    "ViewLineage": "view",
    "QueryLineage": "query",
    "PipelineLineage": "pipeline",
    "DbtLineage": "dbt",
    "SparkLineage": "spark",
    "OpenLineage": "openlineage",
}
_SOURCES: Final = {ours: theirs for theirs, ours in _PROVENANCE.items()}


class Between(NamedTuple):
    """All edges from one dataset to another."""

    upstream: Node
    edges: Sequence[LineageEdge]


class Neighbours(NamedTuple):
    """What the server has of one entity's lineage."""

    references: Mapping[str, Json]
    """By id."""
    upstream: Mapping[str, Json]
    """What is said of the edge from each upstream id."""
    downstream: tuple[str, ...]
    itself: Json | None = None
    """What is said of an edge to itself, which is none in Lumos, where there is one."""


class LineageWires:
    """Reads and writes the edges of one server."""

    def __init__(self, api: OpenMetadataApi, urn_of_reference: Callable[[Json], Urn]) -> None:
        self._api = api
        self._urn_of = urn_of_reference
        self._latest: dict[str, Neighbours] = {}
        """What was last read of a dataset's edges, until they are written."""

    def neighbours(self, type_: str, entity: Json) -> Neighbours:
        """Ask what lies next to an entity."""
        answer = self._api.lineage(type_, entity)
        here = entity["id"]
        own: Json = {"id": here, "type": type_}
        nodes = [own, *(each for each in _objects(answer.get("nodes")))]
        into = {
            str(each.get("fromEntity")): _object(each.get("lineageDetails"))
            for each in _objects(answer.get("upstreamEdges"))
            if each.get("toEntity") == here
        }
        itself = into.pop(str(here), None)
        references = {str(each["id"]): each for each in nodes if each.get("id")}
        return Neighbours(
            references,
            {identity: into[identity] for identity in into if identity in references},
            tuple(
                str(each.get("toEntity"))
                for each in _objects(answer.get("downstreamEdges"))
                if each.get("fromEntity") == here
                and each.get("toEntity") != here
                and str(each.get("toEntity")) in references
            ),
            itself,
        )

    def of(self, type_: str, entity: Json) -> DatasetLineage:
        """Return the direct neighbours of an entity."""
        return self._between(self.neighbours(type_, entity))

    def around(self, node: Node, dataset: LumosDataset) -> LumosDataset:
        """Return a dataset with its neighbours, and with what is said of an edge to itself."""
        found = self.neighbours(node.type, node.entity)
        parts: dict[str, object] = {}
        if (lineage := self._between(found)) != DatasetLineage():
            upstream = NeighboursBuilder(
                edge for edges in self._edges_into(node, found).values() for edge in edges
            ).of(dataset.urn)
            parts["lineage"] = lineage.model_copy(update={"inferred": upstream.inferred})
        kept: Json = {}
        if found.itself is not None:
            kept[ITSELF] = _stated(found.itself)
        if steps := self._steps(found):
            kept[STEPS] = steps
        if kept:
            extension: JsonValue = {**kept_of(dataset), **kept}
            parts["extensions"] = {**dataset.extensions, NAME: extension}
        return with_parts(dataset, **parts) if parts else dataset

    def _steps(self, found: Neighbours) -> Json:
        """Return the SQL and the description of edges, by the URN that they come from."""
        said = {
            self._urn_of(found.references[each]): {
                name: details[name] for name in _SAID if details.get(name)
            }
            for each, details in found.upstream.items()
        }
        return {str(urn): each for urn, each in sorted(said.items()) if each}

    def put_itself(self, node: Node, dataset: LumosDataset) -> None:
        """Let a dataset lead to itself where it did so when it was read."""
        kept = kept_of(dataset).get(ITSELF)
        if isinstance(kept, dict):
            edge: Json = {"fromEntity": node.reference, "toEntity": node.reference}
            self._api.put_edge({**edge, "lineageDetails": kept})

    def _between(self, found: Neighbours) -> DatasetLineage:
        return DatasetLineage(
            upstream=tuple(self._urn_of(found.references[each]) for each in found.upstream),
            downstream=tuple(self._urn_of(found.references[each]) for each in found.downstream),
        )

    def into(self, node: Node) -> dict[Urn, tuple[LineageEdge, ...]]:
        """Return the edges that lead to a dataset, by where they come from."""
        found = self.neighbours(node.type, node.entity)
        self._latest[str(node.entity["id"])] = found
        return self._edges_into(node, found)

    def _edges_into(self, node: Node, found: Neighbours) -> dict[Urn, tuple[LineageEdge, ...]]:
        edges = {}
        for identity, details in found.upstream.items():
            upstream = self._urn_of(found.references[identity])
            told = self._told(upstream, node.urn, details=details)
            edges[upstream] = tuple(_held(node.stash, upstream, told=told))
        return edges

    def write(self, downstream: Node, between: Iterable[Between]) -> Json:
        """Make these the edges between others and a dataset; return what its stash is to be."""
        kept = dict(object_at(downstream.stash, EDGES))
        shown: list[Between] = []
        found = self._latest.pop(str(downstream.entity["id"]), None)
        held = found.upstream if found else {}
        steps = _steps_of(downstream)
        for upstream, edges in between:
            kept.pop(str(upstream.urn), None)
            given = sorted(edges, key=lambda edge: edge.key)
            if not given:
                self._api.delete_edge(upstream.reference, downstream.reference)
                continue
            before = held.get(str(upstream.entity["id"])) or _object(steps.get(str(upstream.urn)))
            edge: Json = {
                "fromEntity": upstream.reference,
                "toEntity": downstream.reference,
                "lineageDetails": {
                    **self._details(upstream, downstream, given),
                    **_kept_of_edge(before),
                },
            }
            self._api.put_edge(edge)
            shown.append(Between(upstream, given))
        if shown:
            kept |= self._not_shown(downstream, shown)
        return _with_edges(downstream.stash, kept)

    def _not_shown(self, downstream: Node, between: Iterable[Between]) -> Json:
        """Return for the stash what the server does not return of edges that were written."""
        seen = self.neighbours(downstream.type, downstream.entity)
        kept: Json = {}
        for upstream, given in between:
            details = seen.upstream.get(str(upstream.entity["id"]), {})
            told = self._told(upstream.urn, downstream.urn, details=details)
            if [told] != given:
                is_: list[JsonValue] = [each.to_json() for each in given]
                kept[str(upstream.urn)] = {"was": _mark(told), "is": is_}
        return kept

    def _details(self, upstream: Node, downstream: Node, edges: list[LineageEdge]) -> Json:
        known, made = _columns(upstream.entity), _columns(downstream.entity)
        columns: list[JsonValue] = []
        for mapping in (mapping for edge in edges for mapping in edge.column_mappings):
            source = _column_name(upstream.entity, mapping.upstream_column)
            target = _column_name(downstream.entity, mapping.downstream_column)
            if source in known and target in made:
                column: Json = {"fromColumns": [source], "toColumn": target}
                if mapping.transformation:
                    column["function"] = mapping.transformation
                columns.append(column)
        known_as = (_SOURCES.get(edge.provenance or "") for edge in edges)
        source = next(filter(None, known_as), _MANUAL)
        details: Json = {"source": source, "columnsLineage": columns}
        jobs = [edge.job_urn for edge in edges if edge.job_urn]
        pipeline = self._api.find("pipeline", fqn(pipeline_path(jobs[0]))) if jobs else None
        if pipeline is not None:
            details["pipeline"] = {"id": pipeline["id"], "type": "pipeline"}
        return details

    def _told(self, upstream: Urn, downstream: Urn, *, details: Json) -> LineageEdge:
        mappings: list[JsonValue] = []
        for column in _objects(details.get("columnsLineage")):
            sources = column.get("fromColumns")
            for source in sources if isinstance(sources, list) else ():
                ends = [path_of(str(end)) for end in (source, column.get("toColumn")) if end]
                if len(ends) != len(("from", "to")) or not all(ends):
                    continue
                mapping: Json = {
                    "upstream_column": decoded(ends[0][-1]),
                    "downstream_column": decoded(ends[1][-1]),
                }
                if column.get("function"):
                    mapping["transformation"] = column["function"]
                mappings.append(mapping)
        pipeline = details.get("pipeline")
        job = None
        if isinstance(pipeline, dict) and pipeline.get("fullyQualifiedName"):
            job = job_urn(str(pipeline["fullyQualifiedName"]))
        source = details.get("source")
        known_as = None if source in {None, _MANUAL} else _PROVENANCE.get(str(source), str(source))
        return LineageEdge.from_json(
            {
                "upstream_urn": upstream,
                "downstream_urn": downstream,
                "column_mappings": mappings,
                "job_urn": job,
                "provenance": known_as,
            }
        )


def _held(stash: Json, upstream: Urn, *, told: LineageEdge) -> Iterator[LineageEdge]:
    kept = stash.get(EDGES)
    pair = kept.get(upstream) if isinstance(kept, dict) else None
    if isinstance(pair, dict) and pair.get("was") == _mark(told):
        yield from (LineageEdge.from_json(each) for each in _objects(pair.get("is")))
    else:
        yield told


def _steps_of(node: Node) -> Json:
    """Return what edges into a dataset said in the catalog that it was read from."""
    if stash_of(node.entity) is None:
        return {}
    return _object(kept_of(read_dataset(node.type, node.entity)).get(STEPS))


def _kept_of_edge(details: Json) -> Json:
    """Return what of an edge stays when it is written over: what Lumos has no words for."""
    kept: Json = {name: details[name] for name in _SAID if details.get(name)}
    source = details.get("source")
    return kept if source in {None, _MANUAL} else {**kept, "source": source}


def _stated(details: Json) -> Json:
    """Return what people said of an edge, without what belongs to one server."""
    return {name: details[name] for name in _STATED if details.get(name) is not None}


def _with_edges(stash: Json, edges: Json) -> Json:
    rest = {name: value for name, value in stash.items() if name != EDGES}
    return {**rest, EDGES: edges} if edges else rest


def _mark(edge: LineageEdge) -> str:
    return sha256_of(edge.to_json())[:16]


def _columns(entity: Json) -> set[str]:
    model = entity.get("dataModel")
    columns = model.get("columns") if isinstance(model, dict) else entity.get("columns")
    return {_column_name(entity, str(each["name"])) for each in _objects(columns)}


def _column_name(entity: Json, column: str) -> str:
    return fqn((*path_of(str(entity["fullyQualifiedName"])), entity_name(column)))


def _object(value: JsonValue | None) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue | None) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
