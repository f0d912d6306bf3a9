"""Platforms are found by name, made once for each configuration, and refuse what they cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest
from pydantic import JsonValue
from typing_extensions import override

from lumos.core.errors import CapabilityError, ConfigurationError, UnknownNameError
from lumos.core.models import LumosDataset
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.core.registry import Registry
from lumos.testing.platform_samples import AT, dataset, edge


class TinyCatalog(MetadataPlatformInterface):
    """Keeps datasets in memory, and nothing else."""

    name = "tiny"
    capabilities = frozenset[Capability]()

    def __init__(self) -> None:
        self.kept: dict[str, LumosDataset] = {}
        self.closed = False

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls()

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        if batch.edges:
            pytest.fail("an undeclared method was reached")
        self.kept |= {dataset.urn: dataset for dataset in batch.models()}

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        return self.kept[urn]

    @override
    def list(self, *, platform: str | None = None, page_size: int = 500) -> Iterator[LumosDataset]:
        return iter(self.kept.values())

    @override
    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def own_factory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    builtins = {"embedded": f"{EmbeddedHandler.__module__}:EmbeddedHandler"}
    registry: Registry[MetadataPlatformInterface] = Registry(
        "lumos.platforms", builtins=builtins, noun="platform"
    )
    monkeypatch.setattr(PlatformFactory, "_registry", registry)
    yield
    PlatformFactory.close_all()


def test_the_same_configuration_gives_the_same_adapter(tmp_path: Path) -> None:
    def at(name: str) -> MetadataPlatformInterface:
        return PlatformFactory.get_instance("embedded", {"database_url": str(tmp_path / name)})

    assert at("a.db") is at("a.db")
    assert at("a.db") is not at("b.db")


def test_adapters_are_made_anew_after_closing_all() -> None:
    PlatformFactory.register("tiny", TinyCatalog)
    first = PlatformFactory.get_instance("tiny")
    PlatformFactory.close_all()

    assert isinstance(first, TinyCatalog)
    assert first.closed
    assert PlatformFactory.get_instance("tiny") is not first


def test_an_unknown_platform_lists_the_known_ones() -> None:
    PlatformFactory.register("tiny", TinyCatalog)
    with pytest.raises(UnknownNameError, match="datahup") as caught:
        PlatformFactory.get_instance("datahup")

    assert "embedded, tiny" in str(caught.value.hint)
    assert PlatformFactory.names() == ("embedded", "tiny")


@pytest.mark.parametrize("config", [{"databse_url": "x"}, {"database_url": {"a": 1}}])
def test_wrong_settings_are_a_configuration_error(config: dict[str, JsonValue]) -> None:
    with pytest.raises(ConfigurationError, match=r"platform_config\.embedded"):
        PlatformFactory.get_instance("embedded", config)


def test_knowing_the_names_loads_no_adapter() -> None:
    script = (
        "import sys\n"
        "from lumos.core.platform.factory import PlatformFactory\n"
        "assert 'embedded' in PlatformFactory.names()\n"
        "assert not [name for name in sys.modules if name.startswith('lumos.core.platform.impl')]\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_undeclared_method_is_refused_before_it_starts() -> None:
    tiny = TinyCatalog()
    with pytest.raises(CapabilityError, match="tiny does not support LINEAGE") as caught:
        tiny.emit_lineage(dataset("a").urn, dataset("b").urn)
    with pytest.raises(CapabilityError, match="LINEAGE"):
        tiny.apply(Batch(edges=[edge(dataset("a"), dataset("b"))]))

    assert caught.value.hint == "it supports datasets only"


def test_a_method_that_was_not_written_is_refused() -> None:
    tiny = TinyCatalog()
    with pytest.raises(CapabilityError, match="SEARCH"):
        tiny.search("customers")
    with pytest.raises(CapabilityError, match="EXPORT"):
        tiny.export_all(at=AT)


def test_an_export_leaves_out_what_the_platform_does_not_keep() -> None:
    class Exporting(TinyCatalog):
        capabilities = frozenset({Capability.EXPORT})

    catalog = Exporting()
    catalog.emit_dataset(dataset())

    exported = catalog.export_all(at=AT)

    assert exported.datasets == (dataset(),)
    assert exported.lineage_edges == ()


def test_an_adapter_is_closed_by_its_block() -> None:
    with TinyCatalog() as tiny:
        assert not tiny.closed
    assert tiny.closed
