"""S3 as a storage, against a real server process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from lumos.core.storage import object_storage
from lumos.core.storage.port import ListedObject, UnlistedPrefix
from lumos.core.storage.s3 import S3Source
from s3_server import Bucket


def source(bucket: Bucket, **settings: Any) -> S3Source:
    return S3Source(name="lake", **bucket.settings(**settings))


def listed(source: S3Source, *, wanted: int = 1) -> list[str]:
    storage = source.open()
    found = [each for unit in storage.units(wanted) for each in storage.list(unit)]
    assert not [each for each in found if isinstance(each, UnlistedPrefix)]
    return sorted(each.path.decode() for each in found if isinstance(each, ListedObject))


def test_a_bucket_is_listed_with_sizes_times_and_tags(s3_bucket: Bucket) -> None:
    s3_bucket.put("raw/a.csv", b"a,b\n1,2\n")
    s3_bucket.put("top.csv", b"a\n")
    storage = source(s3_bucket).open()
    (unit,) = storage.units(8)
    first, second = storage.list(unit)
    assert isinstance(first, ListedObject)
    assert isinstance(second, ListedObject)
    assert (first.path, first.size) == (b"raw/a.csv", 8)
    assert (second.path, second.size) == (b"top.csv", 2)
    assert first.mtime_us > 1_600_000_000_000_000
    assert first.etag
    assert storage.shown(first.path) == f"s3://{s3_bucket.name}/raw/a.csv"
    assert storage.urn_parts() == (s3_bucket.name,)
    assert storage.read(first.path, start=2, length=3) == b"b\n1"
    assert storage.read(first.path, start=6, length=100) == b"2\n"


def test_a_source_travels_and_hides_its_keys(s3_bucket: Bucket) -> None:
    there = source(s3_bucket)
    assert pickle.loads(pickle.dumps(there)) == there
    assert "wJalr" not in repr(there) + str(there)
    assert "wJalr" in pickle.dumps(there).decode("latin-1"), "executors need them"


@pytest.mark.parametrize("wanted", [1, 3, 8, 40])
def test_however_it_is_divided_everything_is_listed_once(
    s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    monkeypatch.setattr(object_storage, "PAGE", 20)  # what is larger than this gets divided
    keys = [f"raw/t{table}/d={day:02}/p.csv" for table in range(3) for day in range(9)]
    keys += ["top.csv", "raw/x.csv", "raw/t1.csv", "raw/t1-b/y.csv", "raw/t0/d=05.csv", "ü/ö.csv"]
    for key in keys:
        s3_bucket.put(key, b"a\n")
    units = source(s3_bucket).open().units(wanted)
    assert wanted // 2 <= len(units) <= 2 * wanted + 4
    assert listed(source(s3_bucket), wanted=wanted) == sorted(keys)
