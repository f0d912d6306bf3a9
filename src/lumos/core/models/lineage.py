"""Where data comes from and goes to: edges between datasets and jobs, down to columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import override

from lumos.core.models.base import CanonicalModel, Name, Properties, UtcDatetime
from lumos.core.models.frozen import FrozenDict
from lumos.core.models.urn import Urn


class LineageType(StrEnum):
    """How the downstream side is made from the upstream side."""

    TRANSFORMED = "TRANSFORMED"
    COPIED = "COPIED"
    VIEW = "VIEW"

    @classmethod
    @override
    def _missing_(cls, value: object) -> LineageType | None:
        """Read a type written in any case."""
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class EdgeBasis(StrEnum):
    """How an edge is known."""

    DECLARED = "DECLARED"
    """Somebody said so: a person, a dbt manifest, a catalog, a job that reported its run."""
    FOUND = "FOUND"
    """A server's own dependency tables have it."""
    INFERRED = "INFERRED"
    """Lumos concluded it, such as from SQL text. It is never part of a contract."""


class TransformationType(StrEnum):
    """Whether a column's values come from another column, or only depend on it (a filter, say)."""

    DIRECT = "DIRECT"
    INDIRECT = "INDIRECT"


class ColumnMapping(CanonicalModel):
    """One column of the upstream side that goes into one column of the downstream side."""

    upstream_column: Name
    downstream_column: Name
    transformation: str | None = Field(default=None, description="The SQL expression, if known.")
    transformation_type: TransformationType | None = None
    transformation_subtype: str | None = None


def _sorted_mappings(mappings: tuple[ColumnMapping, ...]) -> tuple[ColumnMapping, ...]:
    return tuple(
        sorted(
            set(mappings),
            key=lambda mapping: (
                mapping.downstream_column,
                mapping.upstream_column,
                mapping.transformation or "",
                mapping.transformation_type or "",
                mapping.transformation_subtype or "",
            ),
        )
    )


class LineageEdge(CanonicalModel):
    """One step of lineage: dataset to dataset, or between a dataset and a job."""

    upstream_urn: Urn
    downstream_urn: Urn
    lineage_type: LineageType = Field(
        default="transformed",  # validated to upper case, so that it is always written out
        validate_default=True,
        json_schema_extra={"default": "TRANSFORMED"},
    )
    job_urn: Urn | None = Field(default=None, description="The job that makes this step.")
    basis: EdgeBasis = Field(default=EdgeBasis.DECLARED, description="DECLARED, FOUND or INFERRED.")
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    provenance: str | None = Field(
        default=None, description="How the edge is known: manual, sql, dbt, openlineage, …"
    )
    created_at: UtcDatetime | None = None
    created_by: str | None = None
    column_mappings: Annotated[tuple[ColumnMapping, ...], AfterValidator(_sorted_mappings)] = ()

    @model_validator(mode="after")
    def _has_two_ends(self) -> Self:
        if self.upstream_urn == self.downstream_urn:
            raise PydanticCustomError("lineage", "an edge cannot lead from a dataset to itself")
        return self

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the edge: its ends, and the job between them."""
        return (self.upstream_urn, self.downstream_urn, self.job_urn or "")


def _sorted_urns(urns: tuple[Urn, ...]) -> tuple[Urn, ...]:
    return tuple(sorted(set(urns)))


UrnSet = Annotated[tuple[Urn, ...], AfterValidator(_sorted_urns)]


class DatasetLineage(CanonicalModel):
    """A dataset's direct neighbours, derived from the edges."""

    upstream: UrnSet = ()
    downstream: UrnSet = ()
    inferred: UrnSet = Field(
        default=(), description="Those of `upstream` that are only inferred, not declared or found."
    )

    @model_validator(mode="after")
    def _inferred_are_upstream(self) -> Self:
        if not set(self.inferred) <= set(self.upstream):
            raise PydanticCustomError("lineage", "an inferred dataset is not upstream")
        return self

    def ends(self, urn: Urn) -> list[tuple[Urn, Urn]]:
        """Return the ends of the edges between a dataset and its neighbours, never itself.

        Neighbours that are only inferred are left out: a list of them is no evidence for an edge.
        """
        known = [each for each in self.upstream if each not in self.inferred]
        upstream = [(each, urn) for each in known if each != urn]
        return upstream + [(urn, each) for each in self.downstream if each != urn]


class NeighboursBuilder:
    """Collects edges, and returns the neighbours of each dataset that they touch."""

    def __init__(self, edges: Iterable[LineageEdge] = ()) -> None:
        self._upstream: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        self._downstream: defaultdict[str, list[str]] = defaultdict(list)
        for edge in edges:
            is_inferred = edge.basis is EdgeBasis.INFERRED
            self.add(edge.upstream_urn, edge.downstream_urn, is_inferred=is_inferred)

    def add(self, upstream: str, downstream: str, *, is_inferred: bool) -> None:
        """Add an edge; one that is not inferred outweighs an inferred one between the same ends."""
        known = self._upstream[downstream]
        known[upstream] = known.get(upstream, True) and is_inferred
        self._downstream[upstream].append(downstream)

    def datasets(self) -> set[str]:
        """Return the datasets that the edges touch."""
        return {*self._upstream, *self._downstream}

    def of(self, urn: str) -> DatasetLineage:
        """Return the neighbours of a dataset."""
        upstream = self._upstream.get(urn, {})
        return DatasetLineage.from_json(
            {
                "upstream": tuple(upstream),
                "downstream": tuple(self._downstream.get(urn, ())),
                "inferred": tuple(each for each, is_inferred in upstream.items() if is_inferred),
            }
        )


class Job(CanonicalModel):
    """A pipeline step that reads and writes datasets."""

    urn: Urn
    name: Name
    orchestrator: str | None = None
    flow_id: str | None = None
    job_id: str | None = None
    type: str | None = None
    description: str | None = None
    inputs: UrnSet = ()
    outputs: UrnSet = ()
    properties: Properties = Field(default_factory=FrozenDict)
