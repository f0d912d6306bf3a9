"""What changed in a catalog since it was looked up is not overwritten by who looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import TOKEN, openmetadata_server
from lumos.core.errors import PlatformConflictError
from lumos.core.models import Documentation, with_parts
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.platform.last_seen import LastSeen
from lumos.testing.platform_samples import dataset, rich_dataset

Two = tuple[MetadataPlatformInterface, MetadataPlatformInterface]


@pytest.fixture(params=["datahub", "openmetadata"])
def two(request: pytest.FixtureRequest) -> Iterator[Two]:
    """Two adapters of one server: Lumos, and somebody else."""
    if request.param == "datahub":
        with datahub_double() as (url, _):
            config = {"gms_server": url}
            with (
                DataHubHandler.from_config(config) as one,
                DataHubHandler.from_config(config) as it,
            ):
                yield one, it
    else:
        with openmetadata_server() as (url, _):
            there = {"server": url, "auth_token": TOKEN}
            with (
                OpenMetadataHandler.from_config(there) as one,
                OpenMetadataHandler.from_config(there) as other,
            ):
                yield one, other


def test_what_somebody_else_changed_is_refused_until_it_is_looked_up_again(two: Two) -> None:
    lumos, other = two
    lumos.emit_datasets([dataset("a", platform="postgres"), dataset("b", platform="postgres")])
    a, b = (each.urn for each in lumos.list())
    assert {*lumos.find_datasets([a, b])} == {a, b}

    edited = with_parts(other.get_dataset(a), documentation=Documentation(description="By hand."))
    other.emit_dataset(with_parts(edited, tags=("by-hand",)))
    wanted = [with_parts(lumos.get_dataset(urn), tags=("ours",)) for urn in (a, b)]
    old = with_parts(wanted[0], documentation=Documentation())

    with pytest.raises(PlatformConflictError):
        lumos.update_datasets([old])
    assert other.get_dataset(a).tags == ("by-hand",)
    lumos.update_datasets([wanted[1]])
    assert other.get_dataset(b).tags == ("ours",)

    lumos.find_datasets([a])
    lumos.update_datasets([with_parts(wanted[0], tags=("by-hand", "ours"))])
    held = other.get_dataset(a)
    assert (held.tags, held.documentation.description) == (("by-hand", "ours"), "By hand.")


def test_what_was_not_looked_up_is_written_all_the_same(two: Two) -> None:
    lumos, other = two
    other.emit_dataset(dataset("a"))
    lumos.update_datasets([rich_dataset("a"), rich_dataset("b")])
    assert [*other.list()] == [rich_dataset("a"), rich_dataset("b")]


def test_only_so_much_is_remembered() -> None:
    asked: list[int] = []

    def ask(names: Sequence[int]) -> dict[int, str]:
        asked.extend(names)
        return {name: str(name) for name in names if name % 2}

    seen = LastSeen(ask)
    for start in range(0, 3_000, 100):
        assert len(seen.look(range(start, start + 100))) == 50
    asked.clear()
    assert seen.of([1, 2, 2_998, 2_999]) == {1: "1", 2_999: "2999"}
    assert asked == [1, 2]
