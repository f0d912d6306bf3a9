"""The contract of platform adapters, as tests: what Lumos relies on of every catalog.

Subclass `PlatformContract`, give it a fixture `platform` with an empty catalog, and run pytest.
What an adapter cannot do it leaves out of its `capabilities`; the contract then checks that it
refuses.
"""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import copy
import inspect

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumos.core.errors import (
    CapabilityError,
    DatasetNotFoundError,
    InvalidModelError,
    InvalidUrnError,
    LumosError,
)
from lumos.core.models import ColumnMapping, DatasetLineage, LumosDataset, Owner, Urn, with_parts
from lumos.core.platform.interface import (
    ENTITY_KINDS,
    NEEDS,
    Capability,
    EntityKind,
    MetadataPlatformInterface,
)
from lumos.testing.platform_concepts import ConceptContract
from lumos.testing.platform_samples import (
    AT,
    ENTITY_MAKERS,
    HOSTILE_NAMES,
    MISSING,
    all_calls,
    dataset,
    edge,
    optional_calls,
    rich_dataset,
)
from lumos.testing.platform_search_contract import SearchContract, requires
from lumos.testing.strategies import datasets

_one_catalog_for_all_examples = settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,  # one test function, a subclass for each adapter
        HealthCheck.too_slow,
    ],
    deadline=None,
)


class DeclarationContract:
    """What an adapter says of itself."""

    def test_it_has_a_name_and_declares_its_capabilities(
        self, platform: MetadataPlatformInterface
    ) -> None:
        assert platform.name
        assert isinstance(platform.capabilities, frozenset)
        assert all(isinstance(capability, Capability) for capability in platform.capabilities)

    def test_methods_can_be_called_as_the_interface_says(
        self, platform: MetadataPlatformInterface
    ) -> None:
        for name, promised in inspect.getmembers(MetadataPlatformInterface, inspect.isfunction):
            if name.startswith("_"):
                continue
            given_ = inspect.signature(getattr(type(platform), name)).parameters
            expected = inspect.signature(promised).parameters
            for parameter in expected.values():
                mine = given_.get(parameter.name)
                assert mine is not None, f"{name} does not take {parameter.name}"
                assert mine.kind == parameter.kind, f"{name} takes {parameter.name} differently"
                assert mine.default == parameter.default, f"{name}: default of {parameter.name}"
            in_order = [key for key in given_ if key in expected]
            assert in_order == [*expected], f"{name} takes its arguments in another order"
            for key in given_.keys() - expected.keys():
                assert given_[key].default is not inspect.Parameter.empty, f"{name} needs {key}"

    def test_declared_capabilities_are_there(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(dataset())
        for name, call in optional_calls(platform).items():
            if NEEDS[name] in platform.capabilities:
                call()

    def test_undeclared_capabilities_are_refused(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(dataset())
        for name, call in optional_calls(platform).items():
            if NEEDS[name] not in platform.capabilities:
                with pytest.raises(CapabilityError):
                    call()

    def test_declared_methods_refuse_as_soon_as_the_declaration_goes(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(dataset())
        limited = copy.copy(platform)
        limited.__class__ = type("Limited", (type(platform),), {"capabilities": frozenset()})
        for call in optional_calls(limited).values():
            with pytest.raises(CapabilityError):
                call()

    def test_no_foreign_exception_escapes_from_a_broken_connection(
        self, broken_platform: MetadataPlatformInterface
    ) -> None:
        for name, call in all_calls(broken_platform).items():
            try:
                call()
            except LumosError:
                continue
            except Exception as error:  # noqa: BLE001 - any other error is what this is about
                pytest.fail(f"{name} let a {type(error).__name__} escape: {error}")


class DatasetContract:
    """Datasets go in, come back equal, are listed and removed."""

    def test_what_went_in_comes_back_equal(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())

        assert platform.get_dataset(rich_dataset().urn) == rich_dataset()

    @_one_catalog_for_all_examples
    @given(data=st.data())
    def test_any_dataset_comes_back_equal(
        self, platform: MetadataPlatformInterface, data: st.DataObject
    ) -> None:
        emitted = data.draw(self.any_dataset())
        platform.emit_dataset(emitted)

        assert platform.get_dataset(emitted.urn) == emitted

    def any_dataset(self) -> st.SearchStrategy[LumosDataset]:
        """Datasets without lineage; override for what the catalog can hold beyond these."""
        return datasets()

    @pytest.mark.parametrize("name", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES.keys())
    def test_hostile_names_are_only_names(
        self, platform: MetadataPlatformInterface, name: str
    ) -> None:
        neighbour = rich_dataset("neighbour")
        hostile = dataset(
            name,
            schema={"fields": [{"name": name, "type": "STRING", "description": name}]},
            ownership=[{"user": name}],
            tags=[name],
            documentation={"description": name},
            properties={name: name},
        )
        platform.emit_dataset(neighbour)
        platform.emit_dataset(hostile)

        assert platform.get_dataset(hostile.urn) == hostile
        assert platform.get_dataset(neighbour.urn) == neighbour
        assert [found.urn for found in platform.list()] == sorted([hostile.urn, neighbour.urn])

    def test_emitting_returns_nothing_and_twice_changes_nothing(
        self, platform: MetadataPlatformInterface
    ) -> None:
        emit = platform.emit_dataset
        assert emit(rich_dataset()) is None
        before = [*platform.list()], _update_times(platform)
        emit(rich_dataset())

        assert ([*platform.list()], _update_times(platform)) == before

    def test_the_last_emit_counts_as_a_whole(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())
        platform.emit_dataset(dataset())

        assert platform.get_dataset(dataset().urn) == dataset()

    @pytest.mark.parametrize("page_size", [1, 2, 3, 6, 7, 8, 500])
    def test_a_listing_is_complete_and_in_order(
        self, platform: MetadataPlatformInterface, page_size: int
    ) -> None:
        emitted = [rich_dataset(name) for name in ("g", "A", "c", "é", "b", "a", "z/1")]
        for each in emitted:
            platform.emit_dataset(each)

        listed = [*platform.list(page_size=page_size)]

        assert listed == sorted(emitted, key=lambda each: each.urn)

    def test_a_listing_of_one_platform_leaves_out_the_others(
        self, platform: MetadataPlatformInterface
    ) -> None:
        for name in ("one", "two", "three"):
            platform.emit_dataset(dataset(name, platform="s3"))
            platform.emit_dataset(dataset(name, platform="kafka"))

        found = [each.urn for each in platform.list(platform="kafka", page_size=2)]

        assert found == [Urn.of("kafka", "lake", name) for name in ("one", "three", "two")]

    def test_an_empty_catalog_lists_nothing(self, platform: MetadataPlatformInterface) -> None:
        assert [*platform.list()] == []

    def test_what_is_missing_is_said_to_be_missing(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(dataset())
        with pytest.raises(DatasetNotFoundError) as caught:
            platform.get_dataset(MISSING)

        assert MISSING in str(caught.value)
        assert platform.find_dataset(MISSING) is None

    def test_text_that_is_no_urn_is_refused(self, platform: MetadataPlatformInterface) -> None:
        with pytest.raises(InvalidUrnError):
            platform.get_dataset("customers")

    @requires(Capability.DELETE)
    def test_what_is_deleted_is_gone_and_the_rest_stays(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(rich_dataset("one"))
        platform.emit_dataset(rich_dataset("two"))
        platform.delete(dataset("one").urn)

        assert platform.find_dataset(dataset("one").urn) is None
        assert [*platform.list()] == [rich_dataset("two")]

    @requires(Capability.DELETE)
    def test_what_is_missing_cannot_be_deleted(self, platform: MetadataPlatformInterface) -> None:
        with pytest.raises(DatasetNotFoundError):
            platform.delete(MISSING)

    @requires(Capability.DELETE)
    def test_what_was_deleted_can_come_back(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(rich_dataset())
        platform.delete(rich_dataset().urn)
        platform.emit_dataset(rich_dataset())

        assert [*platform.list()] == [rich_dataset()]


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

        (found,) = platform.list_edges()
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

    def test_an_edge_of_the_same_ends_and_job_is_replaced(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        platform.emit_edge(edge(*ends, confidence=0.5))
        platform.emit_edge(edge(*ends, confidence=0.9))
        platform.emit_edge(edge(*ends, job_urn=Urn.of("airflow", "load")))

        found = sorted(platform.list_edges(), key=lambda each: each.key)
        assert [each.confidence for each in found] == [0.9, 1.0]
        assert platform.get_dataset(ends[1].urn).lineage.upstream == (ends[0].urn,)

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
        platform.emit_edge(known)
        platform.emit_dataset(with_parts(ends[1], lineage={"upstream": [ends[0].urn]}))

        assert [*platform.list_edges()] == [known]

    def test_what_is_no_edge_is_refused_and_leaves_no_trace(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        with pytest.raises(InvalidModelError):
            platform.emit_lineage(ends[0].urn, ends[1].urn, "GUESSED")
        with pytest.raises(InvalidModelError):
            platform.emit_lineage(ends[0].urn, ends[0].urn)
        with pytest.raises(InvalidModelError):
            platform.emit_lineage(ends[0].urn, "customers")

        assert [*platform.list_edges()] == []

    def test_an_edge_can_be_removed_alone(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        plain, with_job = edge(*ends), edge(*ends, job_urn=MISSING)
        for change in (platform.emit_edge, platform.remove_edge, platform.remove_edge):
            change(plain)
        platform.emit_edge(with_job)
        platform.remove_edge(plain)

        assert [*platform.list_edges()] == [with_job]

    @requires(Capability.DELETE)
    def test_a_deleted_dataset_takes_its_edges_along(
        self, platform: MetadataPlatformInterface, ends: tuple[LumosDataset, LumosDataset]
    ) -> None:
        platform.emit_lineage(ends[0].urn, ends[1].urn)
        platform.delete(ends[0].urn)

        assert [*platform.list_edges()] == []
        assert platform.get_dataset(ends[1].urn) == ends[1]


@requires(Capability.OWNERSHIP)
class OwnershipContract:
    """Owners are added one by one."""

    def test_owners_are_added_once_and_others_stay(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(rich_dataset())
        for _ in range(2):
            platform.emit_ownership(rich_dataset().urn, "o'grace", "BUSINESS_OWNER")
            platform.emit_ownership(rich_dataset().urn, "data", category="group")

        added = Owner(user="o'grace", type="BUSINESS_OWNER"), Owner(group="data")
        found = platform.get_dataset(rich_dataset().urn)
        expected = (*rich_dataset().ownership.owners, *added)
        assert found == with_parts(rich_dataset(), ownership=expected)

    def test_a_missing_dataset_has_no_owners(self, platform: MetadataPlatformInterface) -> None:
        with pytest.raises(DatasetNotFoundError):
            platform.emit_ownership(MISSING, "ada")

    @pytest.mark.parametrize(("owner", "category"), [("", "user"), ("ada", "robot")])
    def test_what_is_no_owner_is_refused(
        self, platform: MetadataPlatformInterface, owner: str, category: str
    ) -> None:
        platform.emit_dataset(rich_dataset())
        with pytest.raises(InvalidModelError):
            platform.emit_ownership(rich_dataset().urn, owner, category=category)

        assert platform.get_dataset(rich_dataset().urn) == rich_dataset()


@requires(Capability.ENTITIES)
class EntityContract:
    """Users, groups, tags, terms, domains and jobs."""

    @pytest.mark.parametrize("kind", ENTITY_KINDS)
    def test_entities_come_back_equal_once_and_in_order(
        self, platform: MetadataPlatformInterface, kind: EntityKind
    ) -> None:
        names = sorted([*HOSTILE_NAMES.values(), "A", "b", "a"])
        entities = [ENTITY_MAKERS[kind](name) for name in names]
        for entity in (*reversed(entities), *entities):
            platform.emit_entity(entity)

        found = [*platform.list_entities(kind)]
        if kind == "job":
            entities.sort(key=lambda entity: str(getattr(entity, "urn", "")))
        assert found == entities
        for other in ENTITY_KINDS:
            assert other == kind or [*platform.list_entities(other)] == []

    @pytest.mark.parametrize("kind", ENTITY_KINDS)
    def test_the_last_emit_counts(
        self, platform: MetadataPlatformInterface, kind: EntityKind
    ) -> None:
        first = ENTITY_MAKERS[kind]("one")
        field = "properties" if kind == "job" else "description"
        field = {"user": "title", "glossary_term": "definition"}.get(kind, field)
        value: object = {"a": "b"} if kind == "job" else "new"
        second = type(first).model_validate({**dict(first), field: value})
        platform.emit_entity(first)
        platform.emit_entity(second)

        assert [*platform.list_entities(kind)] == [second]


@requires(Capability.EXPORT)
class ExportContract:
    """Everything can be taken out again."""

    def test_an_export_holds_all_that_was_emitted(
        self, platform: MetadataPlatformInterface
    ) -> None:
        one, two = rich_dataset("one"), rich_dataset("two")
        platform.emit_dataset(one)
        platform.emit_dataset(two)
        can = platform.capabilities
        if Capability.ENTITIES in can:
            for make in ENTITY_MAKERS.values():
                platform.emit_entity(make("x"))
        if Capability.IDENTITY_MAP in can:
            for _ in range(2):
                platform.emit_identity(one.urn, "datahub", external_id="urn:li:dataset:'1'")
        if Capability.EXTENSIONS in can:
            platform.emit_extension("datahub 'x'", "early")
            platform.emit_extension("datahub 'x'", {"nested": ["late", None]})
        if Capability.LINEAGE in can:
            platform.emit_edge(edge(one, two, provenance="sql"))

        exported = platform.export_all(at=AT)

        lineage = Capability.LINEAGE in can
        edges = (edge(one, two, provenance="sql"),) if lineage else ()
        assert exported.export_timestamp == AT
        assert exported.source_platform == platform.name
        assert exported.lineage_edges == edges
        assert [each.urn for each in exported.datasets] == [one.urn, two.urn]
        assert exported.datasets == (
            with_parts(one, lineage={"downstream": [two.urn]} if lineage else {}),
            with_parts(two, lineage={"upstream": [one.urn]} if lineage else {}),
        )
        assert exported.statistics == exported.counted()
        if Capability.ENTITIES in can:
            for section in ("users", "groups", "tags", "glossary", "domains", "jobs"):
                assert len(getattr(exported, section)) == 1, section
        if Capability.IDENTITY_MAP in can:
            assert exported.identity_map == {one.urn: {"datahub": "urn:li:dataset:'1'"}}
        if Capability.EXTENSIONS in can:
            assert exported.extensions == {"datahub 'x'": {"nested": ["late", None]}}


class PlatformContract(
    DeclarationContract,
    DatasetContract,
    LineageContract,
    OwnershipContract,
    EntityContract,
    SearchContract,
    ExportContract,
    ConceptContract,
):
    """All that Lumos relies on of a catalog; subclass it and define the fixture `platform`."""

    @pytest.fixture
    def platform(self) -> MetadataPlatformInterface:
        """An adapter over an empty catalog."""
        pytest.fail("define a fixture `platform` that gives an adapter over an empty catalog")

    @pytest.fixture
    def broken_platform(self, platform: MetadataPlatformInterface) -> MetadataPlatformInterface:
        """An adapter whose catalog is out of reach; override where closing it is not enough."""
        platform.emit_dataset(dataset())
        platform.close()
        return platform


def _update_times(platform: MetadataPlatformInterface) -> list[object]:
    if Capability.SEARCH not in platform.capabilities:
        return []
    return [hit.updated_at for hit in platform.search("").hits]
