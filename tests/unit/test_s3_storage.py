"""S3 as a storage, against a real server process."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.storage import object_storage
from lumos.core.storage.port import ListedObject, UnlistedPrefix
from lumos.core.storage.reading import ReadItem, read_items
from lumos.core.storage.s3 import S3Source
from lumos.core.storage.sealed import SealedSource, sealed
from ports import closed_port
from s3_server import REGION, Answer, Bucket, CutOff, OddServer, PageOf, Reset, Times

IMPATIENT = {"retries": 1, "retry_seconds": 2, "timeout": 30}


def source(there: Bucket, **settings: Any) -> S3Source:
    return S3Source(name="lake", **there.settings(**settings))


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


def test_a_source_travels_sealed_and_hides_its_keys(s3_bucket: Bucket, tmp_path: Path) -> None:
    there = source(s3_bucket)
    assert "wJalr" not in repr(there) + str(there)
    with pytest.raises(TypeError, match="must not be pickled"):
        pickle.dumps(there)

    travelling = sealed(there, tmp_path)

    assert isinstance(travelling, SealedSource)
    assert "wJalr" not in pickle.dumps(travelling).decode("latin-1")
    assert pickle.loads(pickle.dumps(travelling)).unsealed() == there


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


def test_folder_markers_and_housekeeping_are_not_listed(s3_bucket: Bucket) -> None:
    for key in ("raw/", "raw/t.parquet/", "raw/_SUCCESS", "raw/.x.crc", "raw/_temporary/0/a.csv"):
        s3_bucket.put(key)
    s3_bucket.put("raw/t.parquet/part-0.parquet", b"x")
    s3_bucket.put("raw/empty.csv")
    s3_bucket.put("raw/notes.txt", b"x")
    s3_bucket.put("raw/_delta_log/00000000000000000000.json", b"{}")
    assert listed(source(s3_bucket, patterns=("*.parquet", "*.csv"))) == [
        "raw/_delta_log/00000000000000000000.json",
        "raw/empty.csv",
        "raw/t.parquet/part-0.parquet",
    ]


def test_prefixes_patterns_and_excludes_narrow_the_listing(s3_bucket: Bucket) -> None:
    for key in ("raw/a/1.csv", "raw/a/old/2.csv", "raw/ab/3.csv", "top.csv", "x/4.json"):
        s3_bucket.put(key, b"a\n")
    assert listed(source(s3_bucket, prefixes=("/raw/a/", "x"))) == [
        "raw/a/1.csv",
        "raw/a/old/2.csv",
        "x/4.json",
    ]
    assert listed(source(s3_bucket, prefixes=("raw",), exclude=("old",))) == [
        "raw/a/1.csv",
        "raw/ab/3.csv",
    ]
    assert listed(source(s3_bucket, prefixes=("raw/ab/3.csv",))) == ["raw/ab/3.csv"]
    asked = {request.prefix for request in s3_bucket.server.listings()}
    assert asked == {"raw/a/", "x/", "raw/", "raw/ab/3.csv/"}, "nothing else is looked at"


def test_a_listing_goes_over_all_pages(s3_bucket: Bucket) -> None:
    for number in range(7):
        s3_bucket.put(f"{number}.csv", b"a\n")
    storage = source(s3_bucket).open()
    (unit,) = storage.units(1)
    # The server takes the size of a page from the request, which obstore leaves to it: 1,000.
    s3_bucket.server.faults.append(PageOf(3))
    found = [each.path.decode() for each in storage.list(unit) if isinstance(each, ListedObject)]
    assert found == [f"{number}.csv" for number in range(7)]


def test_keys_that_are_no_paths_are_listed_and_read(s3_bucket: Bucket) -> None:
    """Storages allow keys such as `a//b`, which the main client refuses with all around them."""
    keys = ["a.csv", "raw//b.csv", "raw/d.csv"]
    s3_bucket.server.faults.append(OddServer(keys, b"a,b\n1,2\n"))
    storage = source(s3_bucket).open()
    found = [each for unit in storage.units(1) for each in storage.list(unit)]
    assert [each.path.decode() for each in found if isinstance(each, ListedObject)] == keys
    assert storage.read(b"raw//b.csv", start=0, length=3) == b"a,b"


@pytest.mark.parametrize(
    ("status", "code", "reason", "hint"),
    [
        (404, "NoSuchBucket", "the bucket does not exist", "check its name"),
        (403, "InvalidAccessKeyId", "the credentials are not accepted", "check the keys"),
        (403, "SignatureDoesNotMatch", "the credentials are not accepted", "check the keys"),
        (400, "ExpiredToken", "the credentials have expired", "renew"),
        (403, "AccessDenied", "there is no permission", "allow listing"),
        (403, "RequestTimeTooSkewed", "the clock of this machine differs", "set the clock"),
        (301, "PermanentRedirect", "the bucket lies in another region", "set region"),
        (400, "AuthorizationHeaderMalformed", "the bucket lies in another region", "set region"),
        (503, "SlowDown", "the storage was too busy", "run again later"),
        (500, "InternalError", "the storage was too busy", "run again later"),
        (418, "Teapot", "the storage refused for an unknown reason", "--debug"),
    ],
)
def test_what_keeps_a_bucket_shut_is_said_in_one_line(
    s3_bucket: Bucket, status: int, code: str, reason: str, hint: str
) -> None:
    s3_bucket.server.faults.append(lambda request: Answer(status, code))
    with pytest.raises(SourceError) as raised:
        source(s3_bucket, **IMPATIENT).open().check()
    assert raised.value.message.startswith(f"source 'lake': s3://{s3_bucket.name}: {reason}")
    assert hint in (raised.value.hint or "")
    assert "hunter2" not in raised.value.message, "what the server says is not repeated"
    assert raised.value.retryable == (status >= 500)


def test_a_missing_bucket_of_the_real_server_is_said(s3_bucket: Bucket) -> None:
    with pytest.raises(SourceError, match="the bucket does not exist"):
        source(s3_bucket, bucket="no-such-bucket").open().units(4)


def test_an_endpoint_that_nobody_listens_at_is_said(s3_bucket: Bucket) -> None:
    nobody = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(SourceError, match="the storage cannot be reached") as raised:
        source(s3_bucket, endpoint_url=nobody, **IMPATIENT).open().check()
    assert raised.value.retryable


def test_a_prefix_without_objects_is_an_error_and_not_an_empty_source(s3_bucket: Bucket) -> None:
    s3_bucket.put("raw/a.csv", b"a\n")
    with pytest.raises(SourceError, match=r"s3://.*/nowhere: nothing lies below it"):
        source(s3_bucket, prefixes=("nowhere",)).open().check()
    storage = source(s3_bucket, prefixes=("nowhere", "raw")).open()
    found = [each for unit in storage.units(1) for each in storage.list(unit)]
    assert [type(each) for each in found] == [UnlistedPrefix, ListedObject]


def test_an_empty_bucket_is_fine(s3_bucket: Bucket) -> None:
    assert listed(source(s3_bucket)) == []


def test_a_slow_down_is_waited_for(s3_bucket: Bucket) -> None:
    s3_bucket.put("a.csv", b"a\n1\n")
    storage = source(s3_bucket).open()
    busy = Times(2, Answer(503, "SlowDown"))
    s3_bucket.server.faults.append(busy)
    assert listed(source(s3_bucket)) == ["a.csv"]
    busy.left = 2
    assert storage.read(b"a.csv", start=0, length=4) == b"a\n1\n"
    assert busy.left == 0


@pytest.mark.parametrize("fault", [Reset(), CutOff()])
def test_a_connection_that_breaks_is_made_again(s3_bucket: Bucket, fault: Reset | CutOff) -> None:
    s3_bucket.put("a.csv", b"a\n1\n")
    storage = source(s3_bucket).open()
    breaking = Times(1, fault)
    s3_bucket.server.faults.append(breaking)
    assert storage.read(b"a.csv", start=0, length=4) == b"a\n1\n"
    assert breaking.left == 0


def test_a_forbidden_prefix_is_named_and_the_others_are_listed(
    s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "PAGE", 2)
    for folder in ("a", "locked", "z"):
        for number in range(3):
            s3_bucket.put(f"{folder}/{number}/x.csv", b"a\n")
    s3_bucket.server.faults.append(
        lambda request: Answer(403, "AccessDenied") if "locked" in request.prefix else None
    )
    storage = source(s3_bucket).open()
    found = [each for unit in storage.units(3) for each in storage.list(unit)]
    (unlisted,) = [each for each in found if isinstance(each, UnlistedPrefix)]
    assert unlisted.shown == f"s3://{s3_bucket.name}/locked"
    assert str(unlisted.error) == "there is no permission"
    assert len(found) == 7


def test_a_forbidden_object_is_unreadable_and_the_others_are_read(s3_bucket: Bucket) -> None:
    s3_bucket.put("a.csv", b"a\n1\n")
    s3_bucket.put("locked.csv", b"a\n1\n")
    s3_bucket.server.faults.append(
        lambda request: Answer(403, "AccessDenied") if "locked" in request.path else None
    )
    storage = source(s3_bucket).open()
    items = [ReadItem(b"locked.csv", 4), ReadItem(b"gone.csv", 4), ReadItem(b"a.csv", 4)]
    locked, gone, read = read_items(items, storage)
    assert str(locked) == "there is no permission"
    assert str(gone) == "it is gone since it was listed"
    assert isinstance(locked, UnreadableItemError)
    assert locked.retryable, "nothing was seen of the object, so it is tried again"
    assert isinstance(read, bytes)


def test_a_bucket_that_vanishes_in_the_middle_is_never_an_empty_one(s3_bucket: Bucket) -> None:
    s3_bucket.put("a.csv", b"a\n1\n")
    storage = source(s3_bucket).open()
    (unit,) = storage.units(4)
    s3_bucket.remove()
    (unlisted,) = storage.list(unit)
    assert isinstance(unlisted, UnlistedPrefix)
    assert str(unlisted.error) == "the bucket does not exist"
    (answer,) = read_items([ReadItem(b"a.csv", 4)], storage)
    assert str(answer) == "the bucket does not exist"


def test_a_listing_that_breaks_off_says_so(s3_bucket: Bucket) -> None:
    for number in range(5):
        s3_bucket.put(f"{number}.csv", b"a\n")
    storage = source(s3_bucket, **IMPATIENT).open()
    (unit,) = storage.units(1)
    s3_bucket.server.faults += [
        lambda request: Answer(503, "SlowDown") if "continuation-token" in request.query else None,
        PageOf(3),
    ]
    found = list(storage.list(unit))
    assert isinstance(found[-1], UnlistedPrefix)


def test_keys_from_the_environment_a_profile_and_an_assumed_role(
    s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s3_bucket.put("a.csv", b"a\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    credentials = tmp_path / "credentials"
    credentials.write_text("[people]\naws_access_key_id = OFPEOPLE\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    none = {"access_key_id": None, "secret_access_key": None}
    with pytest.raises(SourceError, match="no AWS credentials were found"):
        source(s3_bucket, **none).open().check()
    with pytest.raises(SourceError, match="there is no AWS profile of that name"):
        source(s3_bucket, **none, profile="nobody").open().check()

    def used(**settings: Any) -> str:
        s3_bucket.server.requests.clear()
        assert listed(source(s3_bucket, **settings)) == ["a.csv"]
        return s3_bucket.server.listings()[-1].headers.get("authorization", "")

    assert "Credential=OFPEOPLE/" in used(**none, profile="people")
    role = "arn:aws:iam::123456789012:role/reader"
    sts = s3_bucket.server.url
    assumed = used(role_arn=role, external_id="lumos-1", sts_endpoint_url=sts)
    assert "Credential=ASIA" in assumed
    assert "x-amz-security-token" in s3_bucket.server.listings()[-1].headers
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OFENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert "Credential=OFENVIRONMENT/" in used(**none)
    assert used(**none, anonymous=True) == ""


def test_a_role_that_may_not_be_assumed_is_said(s3_bucket: Bucket) -> None:
    s3_bucket.server.faults.append(
        lambda request: Answer(403, "AccessDenied") if request.method == "POST" else None
    )
    role = "arn:aws:iam::123456789012:role/reader"
    with pytest.raises(SourceError, match="the role cannot be assumed") as raised:
        source(s3_bucket, role_arn=role, sts_endpoint_url=s3_bucket.server.url).open().check()
    assert "role_arn" in (raised.value.hint or "")
    with pytest.raises(SourceError, match="the role cannot be assumed"):
        source(s3_bucket, role_arn="short", sts_endpoint_url=s3_bucket.server.url).open().check()


def test_requester_pays_and_the_region_are_told_to_the_server(s3_bucket: Bucket) -> None:
    s3_bucket.put("a.csv", b"a\n")
    assert listed(source(s3_bucket, requester_pays=True)) == ["a.csv"]
    headers = s3_bucket.server.listings()[-1].headers
    assert headers["x-amz-request-payer"] == "requester"
    assert f"/{REGION}/s3/" in headers["authorization"]


def test_a_bucket_can_be_part_of_the_host_name(s3_bucket: Bucket) -> None:
    url = s3_bucket.server.url.replace("127.0.0.1", "localhost")
    there = source(s3_bucket, endpoint_url=url, addressing_style="virtual", **IMPATIENT)
    config: dict[str, Any] = dict(there.target().store.config)  # type: ignore[union-attr]
    assert config["endpoint"] == url.replace("localhost", f"{s3_bucket.name}.localhost")
    assert config["virtual_hosted_style_request"]


@pytest.mark.parametrize(
    "settings",
    [
        {"secret_access_key": None},
        {"anonymous": True},
        {"retries": -1},
        {"no_such": 1},
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings: dict[str, Any]) -> None:
    keys = {"access_key_id": "a", "secret_access_key": "hunter2"}
    with pytest.raises(ValidationError) as raised:
        S3Source(**{"name": "lake", "bucket": "b", **keys, **settings})
    assert "hunter2" not in str(raised.value)
