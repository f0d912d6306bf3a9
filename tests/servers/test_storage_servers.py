"""Storages against full servers that are built from Go modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from go_servers import running_fake_gcs, running_versitygw
from lumos.core.errors import SourceError
from lumos.core.storage.gcs import GcsSource
from lumos.core.storage.port import ListedObject
from lumos.core.storage.reading import ReadItem, read_items
from lumos.core.storage.s3 import S3Source
from s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

pytestmark = pytest.mark.servers
KEYS = ["raw/a b.csv", "raw/dt=1/ünï+köd%.csv", "top.csv"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buckets")
    for key in KEYS:
        path = folder / "lake" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a,b\n1,2\n")
    return folder


@pytest.fixture(scope="module")
def versitygw(lake: Path) -> Iterator[S3Server]:
    with running_versitygw(lake) as server:
        yield server


def source(server: S3Server, **settings: Any) -> S3Source:
    given = {
        "bucket": "lake",
        "endpoint_url": server.url,
        "region": REGION,
        "access_key_id": ACCESS_KEY,
        "secret_access_key": SECRET_KEY,
        "retries": 1,
        **settings,
    }
    return S3Source(name="lake", **given)


def test_an_s3_that_checks_signatures_is_listed_and_read_with_one_request_each(
    versitygw: S3Server,
) -> None:
    storage = source(versitygw).open()
    found = [each for unit in storage.units(4) for each in storage.list(unit)]
    listed = [each for each in found if isinstance(each, ListedObject)]
    assert [each.path.decode() for each in listed] == KEYS
    versitygw.requests.clear()
    answers = list(read_items([ReadItem(each.path, each.size) for each in listed], storage))
    assert all(isinstance(each, bytes) for each in answers)
    assert len(versitygw.requests) == len(KEYS)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"secret_access_key": "wrong"}, "the credentials are not accepted"),
        ({"access_key_id": "AKIAWRONG"}, "at least not for these credentials"),
        ({"access_key_id": None, "secret_access_key": None, "anonymous": True}, "no permission"),
        ({"bucket": "nowhere"}, "the bucket does not exist"),
        ({"region": "us-west-2"}, "the bucket lies in another region"),
    ],
)
def test_what_an_s3_refuses_is_said(
    versitygw: S3Server, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SourceError, match=reason):
        source(versitygw, **settings).open().check()


def test_a_google_bucket_is_listed_and_read(lake: Path) -> None:
    with running_fake_gcs(lake) as url:
        storage = GcsSource(
            name="lake", bucket="lake", endpoint_url=url, token=SecretStr("any")
        ).open()
        found = [each for unit in storage.units(4) for each in storage.list(unit)]
        listed = [each for each in found if isinstance(each, ListedObject)]
        assert [each.path.decode() for each in listed] == KEYS
        answers = list(read_items([ReadItem(each.path, each.size) for each in listed], storage))
        assert all(isinstance(each, bytes) for each in answers)
