"""The contract of platform adapters, as tests: what Lumos relies on of every catalog.

Subclass `PlatformContract`, give it a fixture `platform` with an empty catalog, and run pytest.
What an adapter cannot do it leaves out of its `capabilities`; the contract then checks that it
refuses.
"""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumos.core.errors import (
    CapabilityError,
    DatasetNotFoundError,
    InvalidUrnError,
    LumosError,
    PlatformConflictError,
)
from lumos.core.models import DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.models.base import canonical_json
from lumos.core.platform.abilities import Ability, Capability, DocumentAbility
from lumos.core.platform.batch import Batch, Identity, Seen
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_concepts import ConceptContract
from lumos.testing.platform_entity_contract import EntityContract, OwnershipContract
from lumos.testing.platform_lineage_contract import LineageContract
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
        for name, promised in _promised(platform).items():
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

    def test_final_methods_are_those_of_the_interface(
        self, platform: MetadataPlatformInterface
    ) -> None:
        for name, promised in _promised(platform).items():
            if getattr(promised, "__final__", False):
                mine = inspect.getattr_static(type(platform), name)
                assert mine is promised, f"{name} is made of other methods and not overridden"

    def test_declared_capabilities_are_there(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(dataset())
        for optional in optional_calls(platform):
            if optional.capability in platform.capabilities:
                optional.call()

    def test_undeclared_capabilities_are_refused(self, platform: MetadataPlatformInterface) -> None:
        platform.emit_dataset(dataset())
        for optional in optional_calls(platform):
            if optional.capability not in platform.capabilities:
                with pytest.raises(CapabilityError):
                    optional.call()

    def test_declared_methods_refuse_as_soon_as_the_declaration_goes(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(dataset())
        limited = copy.copy(platform)
        limited.__class__ = type("Limited", (type(platform),), {"capabilities": frozenset()})
        for optional in optional_calls(limited):
            with pytest.raises(CapabilityError):
                optional.call()

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

    def test_what_was_looked_up_can_be_brought_up_to_date(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(dataset("a"))
        wanted = [rich_dataset("a"), rich_dataset("b"), rich_dataset("c")]
        names = [each.urn for each in wanted]
        seen = platform.find_datasets(names[:2])
        assert seen == {names[0]: Seen(dataset("a")), names[1]: Seen()}

        platform.apply(Batch(datasets=[wanted[0], wanted[1].to_json(), wanted[2]]), seen)

        assert [platform.get_dataset(name) for name in names] == wanted

    @pytest.mark.parametrize("present", [True, False], ids=["changed", "made"])
    def test_what_changed_since_it_was_looked_up_is_not_overwritten(
        self, platform: MetadataPlatformInterface, present: bool
    ) -> None:
        urn = dataset().urn
        if present:
            platform.emit_dataset(dataset())
        seen = platform.find_datasets([urn])
        theirs = dataset(tags=["theirs"])
        platform.emit_dataset(theirs)

        with pytest.raises(PlatformConflictError):
            platform.apply(Batch(datasets=[dataset(tags=["ours"])]), seen)
        assert platform.get_dataset(urn) == theirs

        both = dataset(tags=["ours", "theirs"])
        platform.apply(Batch(datasets=[both]), platform.find_datasets([urn]))
        assert platform.get_dataset(urn) == both

    @requires(Capability.DOCUMENTS)
    @pytest.mark.parametrize("neighbours", [True, False])
    def test_documents_are_the_datasets_as_they_are_written(
        self, platform: MetadataPlatformInterface, neighbours: bool
    ) -> None:
        for name in ("b", "a", "c"):
            platform.emit_dataset(rich_dataset(name))
        listed = {each.urn: each for each in platform.list()}
        if not neighbours:
            listed = {
                urn: with_parts(each, lineage=DatasetLineage()) for urn, each in listed.items()
            }
        written = [(urn, canonical_json(each.to_json())) for urn, each in listed.items()]

        whole = DocumentAbility.of(platform)
        assert [*whole.documents(neighbours=neighbours)] == written
        some = [written[0][0], "lumos://nowhere/none", written[2][0]]
        found = whole.documents(some, neighbours=neighbours)
        assert [*found] == [written[0], written[2]]

    def test_a_listing_of_one_platform_leaves_out_the_others(
        self, platform: MetadataPlatformInterface
    ) -> None:
        for name in ("one", "two", "three"):
            platform.emit_dataset(dataset(name, platform="s3"))
            platform.emit_dataset(dataset(name, platform="kafka"))

        found = [each.urn for each in platform.list(platform="kafka", page_size=2)]

        assert found == [Urn.of("kafka", "lake", name) for name in ("one", "three", "two")]
        assert platform.unreadable() == ()

    def test_an_empty_catalog_lists_nothing(self, platform: MetadataPlatformInterface) -> None:
        assert [*platform.list()] == []

    def test_what_is_missing_is_said_to_be_missing(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(dataset())
        with pytest.raises(DatasetNotFoundError) as caught:
            platform.get_dataset(MISSING)

        assert MISSING in str(caught.value)
        assert platform.find_datasets([MISSING]) == {MISSING: Seen()}

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

        assert platform.find_datasets([dataset("one").urn]) == {dataset("one").urn: Seen()}
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
                platform.apply(Batch(entities=[make("x")]))
        if Capability.IDENTITY_MAP in can:
            for _ in range(2):
                platform.apply(
                    Batch(identities=[Identity(one.urn, "datahub", "urn:li:dataset:'1'")])
                )
        if Capability.EXTENSIONS in can:
            platform.apply(Batch(extensions={"datahub 'x'": "early"}))
            platform.apply(Batch(extensions={"datahub 'x'": {"nested": ["late", None]}}))
        if Capability.LINEAGE in can:
            platform.apply(Batch(edges=[edge(one, two, provenance="sql")]))

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


def _promised(platform: MetadataPlatformInterface) -> dict[str, Callable[..., object]]:
    """Return the methods of the interface and of the abilities that an adapter inherits."""
    promising = [each for each in Ability.__subclasses__() if isinstance(platform, each)]
    return {
        name: method
        for each in (MetadataPlatformInterface, *promising)
        for name, method in inspect.getmembers(each, inspect.isfunction)
        if not name.startswith("_")
    }


def _update_times(platform: MetadataPlatformInterface) -> list[object]:
    if Capability.SEARCH not in platform.capabilities:
        return []
    return [hit.updated_at for hit in platform.search("").hits]
