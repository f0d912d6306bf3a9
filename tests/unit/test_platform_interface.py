"""The interface of catalogs stays small, and its final methods are made of the others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumos.core.errors import CapabilityError
from lumos.core.platform.abilities import (
    NEEDS,
    Ability,
    Capability,
    DocumentAbility,
    LineageAbility,
    content_fingerprint,
    derives_versions,
    reading_at_once,
)
from lumos.core.platform.batch import Batch, Identity, Seen
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.amundsen.handler import AmundsenGraphHandler
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import dataset, edge

MOST_METHODS = 15
FINAL = {"delete", "emit_dataset", "emit_lineage", "emit_ownership", "export_all"}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[EmbeddedHandler]:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        yield EmbeddedHandler(database)


class Limited(EmbeddedHandler):
    """A catalog that has the methods of all abilities and declares none."""

    name = "limited"
    capabilities: frozenset[Capability] = frozenset()  # type: ignore[misc]


def methods_of(kind: type) -> set[str]:
    names = (name for name in dir(kind) if not name.startswith("_"))
    return {name for name in names if callable(getattr(kind, name))}


def test_the_interface_has_few_methods() -> None:
    assert len(methods_of(MetadataPlatformInterface)) <= MOST_METHODS


def test_final_methods_are_marked_as_such() -> None:
    marked = {
        name
        for name in methods_of(MetadataPlatformInterface)
        if getattr(getattr(MetadataPlatformInterface, name), "__final__", False)
    }
    assert marked == FINAL


@pytest.mark.parametrize("name", PlatformFactory.names())
def test_no_adapter_overrides_a_final_method(name: str) -> None:
    for adapter in (PlatformFactory.handler(name), AmundsenGraphHandler):
        for method in FINAL:
            mine = inspect.getattr_static(adapter, method)
            assert mine is inspect.getattr_static(MetadataPlatformInterface, method), method


def test_every_ability_has_a_capability_of_its_own_and_its_methods_need_it() -> None:
    abilities = Ability.__subclasses__()
    assert len({each.capability for each in abilities}) == len(abilities)
    for each in abilities:
        for method in methods_of(each) - methods_of(Ability) - {"reading_at_once"}:
            assert NEEDS[method] is each.capability


def test_an_ability_is_there_only_where_its_capability_is_declared(
    catalog: EmbeddedHandler,
) -> None:
    assert LineageAbility.of(catalog) is catalog
    limited = Limited(catalog._database)
    assert LineageAbility.find(limited) is None
    with pytest.raises(CapabilityError, match="limited does not support LINEAGE"):
        LineageAbility.of(limited)


def test_a_catalog_without_whole_documents_has_no_fingerprint_and_derives_no_versions(
    catalog: EmbeddedHandler,
) -> None:
    limited = Limited(catalog._database)
    assert (content_fingerprint(limited), derives_versions(limited)) == (None, False)
    with reading_at_once(limited):
        assert [*limited.list()] == []
    whole = DocumentAbility.of(catalog)
    assert content_fingerprint(catalog) == whole.content_fingerprint() is not None
    assert derives_versions(catalog)


def test_a_batch_says_what_it_needs_and_gives_datasets_in_both_forms() -> None:
    one, two = dataset("one"), dataset("two")
    batch = Batch(datasets=[one, two.to_json()])
    assert batch.models() == [one, two]
    assert batch.documents() == [one.to_json(), two.to_json()]
    assert [*batch.needs()] == []
    whole = Batch(
        removed_edges=[edge(one, two)],
        removed_datasets=[one.urn],
        identities=[Identity(one.urn, "other", "x")],
        definitions={"other": 1},
    )
    assert {*whole.needs()} == {
        Capability.LINEAGE, Capability.DELETE, Capability.IDENTITY_MAP, Capability.EXTENSIONS,
    }  # fmt: skip


def test_a_refused_part_of_a_batch_leaves_the_embedded_catalog_as_it_was(
    catalog: EmbeddedHandler,
) -> None:
    seen = catalog.find_datasets([dataset("b").urn])
    catalog.emit_dataset(dataset("b"))

    with pytest.raises(Exception, match="in between"):
        catalog.apply(Batch(datasets=[dataset("a"), dataset("b", tags=["ours"])]), seen)

    assert [*catalog.list()] == [dataset("b")]


def test_versions_seen_mean_nothing_to_callers() -> None:
    assert Seen(dataset(), version=1) == Seen(dataset(), version=2)
    assert "2" not in repr(Seen(None, version=2))
