"""Azure as a storage, against Microsoft's emulator."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from azurite_server import AzuriteServer
from lumos.core.errors import SourceError
from lumos.core.storage import object_storage
from lumos.core.storage.azure import AzureSource
from lumos.core.storage.gcs import GcsSource
from lumos.core.storage.port import ListedObject


def test_a_container_is_divided_listed_and_read(
    azurite: AzuriteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "PAGE", 5)
    keys = [f"t{table}/d={day}/p.csv" for table in range(3) for day in range(4)] + ["top.csv"]
    for key in keys:
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(b"a,b\n1,2\n")
    container = f"lake-{uuid.uuid4().hex}"
    azurite.create(container)
    azurite.put_folder(container, tmp_path)
    storage = AzureSource(name="lake", **azurite.settings(container)).open()
    for wanted in (1, 6):
        found = [each for unit in storage.units(wanted) for each in storage.list(unit)]
        listed = [each for each in found if isinstance(each, ListedObject)]
        assert sorted(each.path.decode() for each in listed) == sorted(keys)
    assert storage.read(b"top.csv", start=4, length=3) == b"1,2"
    shown = f"abfss://{container}@devstoreaccount1.dfs.core.windows.net/top.csv"
    assert storage.shown(b"top.csv") == shown


def test_what_keeps_a_container_shut_is_said(azurite: AzuriteServer) -> None:
    wrong = base64.b64encode(b"x" * 64).decode()
    for settings, reason in (
        (azurite.settings("no-such"), "the container does not exist"),
        (azurite.settings("no-such", account_key=wrong), "there is no permission"),
        (azurite.settings("no-such", account_key=None, anonymous=True), "there is no permission"),
    ):
        with pytest.raises(SourceError, match=reason):
            AzureSource(name="lake", retries=0, **settings).open().check()


@pytest.mark.parametrize(
    "settings",
    [
        {"account_key": "hunter2", "sas_token": "hunter2"},
        {"client_secret": "hunter2"},
        {"anonymous": True, "account_key": "hunter2"},
    ],
)
def test_ways_into_azure_that_exclude_each_other_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        AzureSource(name="lake", account="a", container="c", **settings)
    assert "hunter2" not in str(raised.value)


def test_ways_into_google_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ValidationError):
        GcsSource(name="lake", bucket="b", anonymous=True, token=SecretStr("hunter2"))


def test_a_service_account_that_cannot_be_read_is_a_source_error(tmp_path: Path) -> None:
    broken = tmp_path / "account.json"
    broken.write_text('{"private_key": "hunter2"}')
    with pytest.raises(SourceError, match="its settings cannot be used") as raised:
        GcsSource(name="lake", bucket="b", service_account_file=str(broken)).open()
    assert "hunter2" not in raised.value.message
