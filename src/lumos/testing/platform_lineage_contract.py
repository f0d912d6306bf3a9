"""The part of the platform contract that is about lineage."""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import pytest

from lumos.core.errors import InvalidModelError
from lumos.core.models import ColumnMapping, DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.platform.abilities import LineageAbility
from lumos.core.platform.batch import Batch
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.testing.platform_samples import AT, MISSING, dataset, edge
from lumos.testing.platform_search_contract import requires


@requires(Capability.LINEAGE)
class LineageContract:
    """Edges are the truth; what datasets say of their neighbours follows from them."""

    @pytest.fixture
    def ends(self, platform: MetadataPlatformInterface) -> tuple[LumosDataset, LumosDataset]:
        """Two datasets in the catalog."""
        upstream, downstream = dataset("upstream"), dataset("downstream")
        platform.emit_dataset(upstream)
        platform.emit_dataset(downstream)
        return upstream, downstream

    def test_an_edge_shows_at_both_ends(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        upstream, downstream = ends
        platform.emit_lineage(upstream.urn, downstream.urn)

        assert platform.get_dataset(upstream.urn).lineage.downstream == (downstream.urn,)
        assert platform.get_dataset(downstream.urn).lineage.upstream == (upstream.urn,)
        assert [each.lineage for each in platform.list()] == [
            DatasetLineage(upstream=(upstream.urn,)),
            DatasetLineage(downstream=(downstream.urn,)),
        ]

    def test_an_edge_keeps_its_parts_and_is_kept_once(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        mapping = ColumnMapping(upstream_column="a'b", downstream_column="c", transformation="f(a)")
        for _ in range(2):
            platform.emit_lineage(
                ends[0].urn,
                ends[1].urn,
                "COPIED",
                column_mappings=(mapping,),
                job_urn=Urn.of("airflow", "load"),
                confidence=0.5,
                provenance="sql",
                created_at=AT,
                created_by="ada",
            )

        (found,) = LineageAbility.of(platform).list_edges()
        assert found == edge(
            *ends,
            lineage_type="COPIED",
            column_mappings=(mapping,),
            job_urn=Urn.of("airflow", "load"),
            confidence=0.5,
            provenance="sql",
            created_at=AT,
            created_by="ada",
        )

    def test_an_inferred_edge_is_told_apart_and_is_not_part_of_the_contract(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        before = platform.get_dataset(ends[1].urn).contract_hash
        inferred = edge(*ends, basis="INFERRED", confidence=0.8, provenance="sql")
        platform.apply(Batch(edges=[inferred]))

        found = platform.get_dataset(ends[1].urn)
        assert [*LineageAbility.of(platform).list_edges()] == [inferred]
        assert (found.lineage.upstream, found.lineage.inferred) == ((ends[0].urn,), (ends[0].urn,))
        assert found.contract_hash == before
        declared = edge(*ends, job_urn=Urn.of("airflow", "load"))
        platform.apply(Batch(edges=[declared]))
        found = platform.get_dataset(ends[1].urn)
        assert (found.lineage.upstream, found.lineage.inferred) == ((ends[0].urn,), ())
        assert found.contract_hash != before

    def test_an_edge_of_the_same_ends_and_job_is_replaced(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        platform.apply(Batch(edges=[edge(*ends, confidence=0.5)]))
        platform.apply(Batch(edges=[edge(*ends, confidence=0.9)]))
        platform.apply(Batch(edges=[edge(*ends, job_urn=Urn.of("airflow", "load"))]))

        found = sorted(LineageAbility.of(platform).list_edges(), key=lambda each: each.key)
        assert [each.confidence for each in found] == [0.9, 1.0]
        assert platform.get_dataset(ends[1].urn).lineage.upstream == (ends[0].urn,)

    def test_several_edges_at_once_are_as_good_as_one_by_one(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        upstream, downstream = ends
        job = Urn.of("airflow", "load")
        mapping = ColumnMapping(upstream_column="a", downstream_column="b", transformation="f(a)")
        platform.apply(Batch(edges=[]))
        platform.apply(Batch(edges=[edge(*ends, confidence=0.5)]))
        wanted = [
            edge(*ends, confidence=0.9, column_mappings=(mapping,)),
            edge(*ends, job_urn=job, provenance="sql", created_at=AT, created_by="ada"),
            edge(dataset("elsewhere"), downstream),
            edge(downstream, upstream),
        ]
        for _ in range(2):
            platform.apply(
                Batch(edges=[edge(*ends, job_urn=job), *wanted])
            )  # the last of a pair counts

        by_ends = sorted(wanted, key=lambda each: each.key)
        assert (
            sorted(LineageAbility.of(platform).list_edges(), key=lambda each: each.key) == by_ends
        )
        lineage = platform.get_dataset(downstream.urn).lineage
        assert lineage.upstream == (dataset("elsewhere").urn, upstream.urn)
        assert lineage.downstream == (upstream.urn,)

    def test_neighbours_that_a_dataset_lists_become_edges_and_stay(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        lineage = DatasetLineage(upstream=(ends[0].urn,), downstream=(ends[1].urn,))
        platform.emit_dataset(dataset("middle", lineage=lineage))
        platform.emit_dataset(dataset("middle"))

        assert platform.get_dataset(dataset("middle").urn).lineage == lineage
        assert platform.get_dataset(ends[1].urn).lineage.upstream == (dataset("middle").urn,)

    def test_a_listed_neighbour_does_not_replace_a_known_edge(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        known = edge(*ends, provenance="sql", confidence=0.7)
        platform.apply(Batch(edges=[known]))
        platform.emit_dataset(with_parts(ends[1], lineage={"upstream": [ends[0].urn]}))

        assert [*LineageAbility.of(platform).list_edges()] == [known]

    def test_a_dataset_that_lists_itself_has_no_edge_to_itself(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        urns = ends[0].urn, ends[1].urn
        lineage = DatasetLineage(upstream=urns, downstream=urns[:1])
        platform.emit_dataset(with_parts(ends[0], lineage=lineage))

        assert [each.key[:2] for each in LineageAbility.of(platform).list_edges()] == [
            (ends[1].urn, ends[0].urn)
        ]

    def test_what_is_no_edge_is_refused_and_leaves_no_trace(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        with pytest.raises(InvalidModelError):
            platform.emit_lineage(ends[0].urn, ends[1].urn, "GUESSED")
        with pytest.raises(InvalidModelError):
            platform.emit_lineage(ends[0].urn, ends[0].urn)
        with pytest.raises(InvalidModelError):
            platform.emit_lineage(ends[0].urn, "customers")

        assert [*LineageAbility.of(platform).list_edges()] == []

    def test_an_edge_can_be_removed_alone(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        plain, with_job = edge(*ends), edge(*ends, job_urn=MISSING)
        platform.apply(Batch(edges=[plain]))
        for _ in range(2):
            platform.apply(Batch(removed_edges=[plain]))
        platform.apply(Batch(edges=[with_job]))
        platform.apply(Batch(removed_edges=[plain]))

        assert [*LineageAbility.of(platform).list_edges()] == [with_job]

    @requires(Capability.DELETE)
    def test_a_deleted_dataset_takes_its_edges_along(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        platform.emit_lineage(ends[0].urn, ends[1].urn)
        platform.delete(ends[0].urn)

        assert [*LineageAbility.of(platform).list_edges()] == []
        assert platform.get_dataset(ends[1].urn) == ends[1]
