"""Which files belong to which source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lumos.core.controllers.scan_sources import ScanSource, _refuse_overlaps
from lumos.core.errors import ConfigurationError
from lumos.core.models import Urn
from lumos.core.storage.s3 import S3Source

if TYPE_CHECKING:
    from collections.abc import Mapping


def bucket(*prefixes: str) -> ScanSource:
    return ScanSource.of(
        S3Source(name="any", bucket="lake", anonymous=True, prefixes=prefixes or ("",))
    )


@pytest.mark.parametrize(
    "sources",
    [
        {"a": bucket("raw"), "b": bucket("raw/orders")},
        {"a": bucket(), "b": bucket("raw")},
        {"a": bucket("x", "raw"), "b": bucket("raw")},
        {"a": bucket("raw", "raw/x"), "b": bucket("raw/y")},
    ],
)
def test_sources_that_would_find_the_same_files_are_refused(
    sources: Mapping[str, ScanSource],
) -> None:
    with pytest.raises(ConfigurationError, match="overlap"):
        _refuse_overlaps(sources)


def test_different_prefixes_of_a_bucket_are_different_sources() -> None:
    _refuse_overlaps({"a": bucket("raw"), "b": bucket("raw-old", "curated")})


def test_a_source_holds_only_what_lies_below_its_prefixes() -> None:
    source = bucket("raw", "curated/eu")

    assert source.holds(Urn.of("s3", "lake", "raw", "orders"))
    assert source.holds(Urn.of("s3", "lake", "curated", "eu", "orders"))
    assert not source.holds(Urn.of("s3", "lake", "curated", "us", "orders"))
    assert not source.holds(Urn.of("s3", "other", "raw", "orders"))
