"""The page on storages shows settings that work and a policy that is enough."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.runtime.settings import settings_from_mapping
from lumos.core.storage.port import ListedObject
from lumos.core.storage.s3 import S3Source
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.handlers.storage_handler import StorageHandler
from s3_server import REGION, Bucket, S3Server

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "storages.md").read_text("utf-8")
ENVIRONMENT = dict.fromkeys(
    ("LAKE_KEY_ID", "LAKE_SECRET", "EXTERNAL_ID", "AZURE_SAS", "AZURE_SECRET"), "x"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_shown_source_has_a_storage(text: str) -> None:
    settings = settings_from_mapping(YAML(typ="safe").load(text), ENVIRONMENT)
    assert settings.sources
    for entry in settings.sources:
        handler = HandlerFactory.get_handler(entry)
        assert isinstance(handler, StorageHandler)
        assert handler.storages()


def test_the_shown_policy_is_enough_and_lets_nobody_read_elsewhere(
    s3_server: S3Server, s3_bucket: Bucket
) -> None:
    for key in ("raw/a.csv", "secret/b.csv"):
        s3_bucket.put(key, b"a\n")
    (policy,) = blocks("json")
    iam = s3_server.client("iam")
    iam.create_user(UserName="lumos")
    document = json.loads(policy.replace("data-lake-prod", s3_bucket.name))
    iam.put_user_policy(UserName="lumos", PolicyName="p", PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName="lumos")["AccessKey"]

    def source(prefix: str, secret: str = key["SecretAccessKey"]) -> S3Source:
        given: dict[str, Any] = s3_bucket.settings(prefixes=(prefix,), retries=0)
        keys = {"access_key_id": key["AccessKeyId"], "secret_access_key": secret}
        return S3Source(name="lake", **{**given, **keys, "region": REGION})

    _check_keys(s3_server, after="0")
    try:
        storage = source("raw").open()
        (found,) = [each for unit in storage.units(1) for each in storage.list(unit)]
        assert isinstance(found, ListedObject)
        assert storage.read(found.path, start=0, length=2) == b"a\n"
        # The server knows no conditions, so that the listing of other prefixes is not refused.
        with pytest.raises(UnreadableItemError, match="there is no permission"):
            storage.read(b"secret/b.csv", start=0, length=2)
        with pytest.raises(SourceError, match="the credentials are not accepted"):
            source("raw", secret="wrong").open().check()
    finally:
        _check_keys(s3_server, after="inf")


def _check_keys(server: S3Server, *, after: str) -> None:
    """Let the server check keys and policies, after so many more requests."""
    where = f"{server.direct_url}/moto-api/reset-auth"
    request = urllib.request.Request(where, data=after.encode(), method="POST")  # noqa: S310
    request.add_header("Content-Type", "text/plain")
    urllib.request.urlopen(request, timeout=300).close()  # noqa: S310
