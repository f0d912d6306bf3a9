"""What changed in a catalog since it was looked up is not overwritten by who looked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import TOKEN, openmetadata_server
from lumos.core.errors import PlatformConflictError
from lumos.core.models import Documentation, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.interface import MetadataPlatformInterface
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
    made = [dataset("a", platform="postgres"), dataset("b", platform="postgres")]
    lumos.apply(Batch(datasets=made))
    a, b = (each.urn for each in lumos.list())
    seen = lumos.find_datasets([a, b])

    edited = with_parts(other.get_dataset(a), documentation=Documentation(description="By hand."))
    other.emit_dataset(with_parts(edited, tags=("by-hand",)))
    wanted = [with_parts(lumos.get_dataset(urn), tags=("ours",)) for urn in (a, b)]
    old = with_parts(wanted[0], documentation=Documentation())

    with pytest.raises(PlatformConflictError):
        lumos.apply(Batch(datasets=[old]), seen)
    assert other.get_dataset(a).tags == ("by-hand",)
    lumos.apply(Batch(datasets=[wanted[1]]), seen)
    assert other.get_dataset(b).tags == ("ours",)

    both = with_parts(wanted[0], tags=("by-hand", "ours"))
    lumos.apply(Batch(datasets=[both]), lumos.find_datasets([a]))
    held = other.get_dataset(a)
    assert (held.tags, held.documentation.description) == (("by-hand", "ours"), "By hand.")


def test_what_was_not_looked_up_is_written_all_the_same(two: Two) -> None:
    lumos, other = two
    other.emit_dataset(dataset("a"))
    lumos.apply(Batch(datasets=[rich_dataset("a"), rich_dataset("b")]))
    assert [*other.list()] == [rich_dataset("a"), rich_dataset("b")]


def test_what_was_seen_is_never_forgotten_however_much_is_seen_after_it(two: Two) -> None:
    lumos, other = two
    other.emit_dataset(dataset("a"))
    seen = lumos.find_datasets([dataset("a").urn])
    for start in range(0, 2_500, 500):
        lumos.find_datasets([dataset(f"t{number}").urn for number in range(start, start + 500)])
    other.emit_dataset(dataset("a", tags=("theirs",)))

    with pytest.raises(PlatformConflictError):
        lumos.apply(Batch(datasets=[dataset("a", tags=("ours",))]), seen)


@pytest.mark.parametrize("count", [1, 3])
def test_what_somebody_made_since_it_was_looked_for_is_not_overwritten(
    two: Two, count: int
) -> None:
    lumos, other = two
    wanted = [dataset(f"t{number}", platform="postgres") for number in range(count)]
    seen = lumos.find_datasets([each.urn for each in wanted])
    theirs = with_parts(wanted[0], tags=("theirs",))
    other.emit_dataset(theirs)

    with pytest.raises(PlatformConflictError):
        lumos.apply(Batch(datasets=wanted), seen)
    assert other.get_dataset(theirs.urn) == theirs
