"""An address is the shortest spelling of a source."""

from __future__ import annotations

from typing import Any

import pytest

from lumos.core.errors import UsageError
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.handlers.storage_handler import StorageHandler
from lumos.feature.ingestion.source_addresses import source_mapping_of


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("data/lake", {"type": "local", "path": "data/lake"}),
        ("file:///srv/my%20lake", {"type": "local", "path": "/srv/my lake"}),
        ("s3://lake", {"type": "s3", "bucket": "lake"}),
        ("S3A://lake/raw/events/", {"type": "s3", "bucket": "lake", "prefixes": ["raw/events"]}),
        ("s3://lake/a%20b", {"type": "s3", "bucket": "lake", "prefixes": ["a%20b"]}),
        ("gs://lake/raw", {"type": "gcs", "bucket": "lake", "prefixes": ["raw"]}),
        (
            "abfss://raw@acme.dfs.core.windows.net/events",
            {"type": "azure", "account": "acme", "container": "raw", "prefixes": ["events"]},
        ),
        (
            "hdfs://nn:8020/data/raw",
            {"type": "hdfs", "namenode": "http://nn:9870", "prefixes": ["data/raw"]},
        ),
        ("webhdfs://nn:9871/", {"type": "hdfs", "namenode": "http://nn:9871"}),
        (
            "swebhdfs://nn:9871/x",
            {"type": "hdfs", "namenode": "https://nn:9871", "prefixes": ["x"]},
        ),
    ],
)
def test_an_address_names_a_source_that_can_be_made(address: str, expected: dict[str, Any]) -> None:
    mapping = source_mapping_of(address)
    assert mapping == expected
    handler = HandlerFactory.get_handler(mapping)
    (storage,) = handler.storages()
    assert storage.platform == expected["type"]


@pytest.mark.parametrize(
    "address",
    ["s3://", "ftp://host/x", "abfss://raw/events", "hdfs:///data", "s3://key:secret@lake/raw"],
)
def test_an_address_that_names_no_source_is_refused_with_a_hint(address: str) -> None:
    with pytest.raises(UsageError) as raised:
        source_mapping_of(address)
    assert raised.value.hint
    assert "secret" not in raised.value.message


def test_several_buckets_are_storages_with_names_of_their_own() -> None:
    handler = HandlerFactory.get_handler(
        {"type": "s3", "name": "aws-data-lake", "buckets": ["raw-data", "ml-features"]}
    )
    assert isinstance(handler, StorageHandler)
    assert [storage.name for storage in handler.storages()] == [
        "aws-data-lake/raw-data",
        "aws-data-lake/ml-features",
    ]
