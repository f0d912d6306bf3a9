"""Credentials do not travel with what is handed to Spark."""

from __future__ import annotations

import pickle
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from pyspark import cloudpickle

from lumos.core.errors import SourceError
from lumos.core.storage.azure import AzureSource
from lumos.core.storage.gcs import GcsSource
from lumos.core.storage.hdfs import HdfsSource
from lumos.core.storage.local import LocalSource
from lumos.core.storage.port import StorageSource
from lumos.core.storage.s3 import S3Source
from lumos.core.storage.sealed import SealedSource, sealed
from lumos.feature.discovery.datasets import SourceRoot
from lumos.feature.ingestion.scan.file_functions import StorageFunctions
from lumos.feature.ingestion.scan.sources import ScanSource
from lumos.feature.profiling.data_files import DataFiles

SECRET = "planted-secret-4f9d1c7be2a84f06"
SOURCES: dict[str, Callable[[], StorageSource]] = {
    "s3": lambda: S3Source(
        name="x",
        bucket="b",
        access_key_id=SecretStr("AKIAPLANTED"),
        secret_access_key=SecretStr(SECRET),
    ),
    "s3 in an address": lambda: S3Source(
        name="x", bucket="b", endpoint_url=f"https://user:{SECRET}@minio.example:9000"
    ),
    "gcs": lambda: GcsSource(name="x", bucket="b", token=SecretStr(SECRET)),
    "azure": lambda: AzureSource(name="x", account="a", container="c", sas_token=SecretStr(SECRET)),
    "hdfs": lambda: HdfsSource(
        name="x", namenode="http://nn:9870", delegation_token=SecretStr(SECRET)
    ),
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> StorageSource:
    return SOURCES[request.param]()


def pickled(value: object) -> bytes:
    """Return what PySpark sends to its workers."""
    content: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return content


def functions_of(source: StorageSource, folder: Path) -> StorageFunctions:
    root = SourceRoot(source.platform, parts=("b",))
    return StorageFunctions.of({source.name: ScanSource(source, root, "b")}, folder=folder)


def test_the_functions_of_a_pipeline_hold_no_credentials(
    source: StorageSource, tmp_path: Path
) -> None:
    functions = functions_of(source, tmp_path)

    for function in (functions.list_unit, functions.read_items, functions.build_datasets):
        assert SECRET.encode() not in pickled(function)


def test_the_functions_of_a_profile_hold_no_credentials(
    source: StorageSource, tmp_path: Path
) -> None:
    reader = DataFiles(sealed(source, tmp_path), "parquet", ())

    assert SECRET.encode() not in pickled(reader.read)


def test_a_task_gets_the_whole_source_back(source: StorageSource, tmp_path: Path) -> None:
    travelled = pickle.loads(pickle.dumps(sealed(source, tmp_path)))

    assert isinstance(travelled, SealedSource)
    assert travelled.unsealed() == source


def test_the_file_is_private_and_says_nothing_without_its_key(
    source: StorageSource, tmp_path: Path
) -> None:
    reference = sealed(source, tmp_path)

    assert isinstance(reference, SealedSource)
    (file,) = tmp_path.iterdir()
    assert file == Path(reference.file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET.encode() not in file.read_bytes()
    assert SECRET not in repr(reference)
    assert repr(reference.key) not in repr(reference)


def test_a_source_with_credentials_refuses_to_be_pickled(source: StorageSource) -> None:
    for dumps in (pickle.dumps, pickled):
        with pytest.raises(TypeError, match="holds credentials and must not be pickled"):
            dumps(source)


def test_a_source_without_credentials_travels_as_it_is(tmp_path: Path) -> None:
    for source in (
        LocalSource(name="x", path=str(tmp_path)),
        S3Source(name="x", bucket="b", endpoint_url="https://minio.example:9000", profile="p"),
    ):
        assert sealed(source, tmp_path) is source
        assert pickle.loads(pickle.dumps(source)) == source
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_cannot_read_the_file_says_which_source_and_what_to_do(
    source: StorageSource, tmp_path: Path
) -> None:
    reference = sealed(source, tmp_path)
    assert isinstance(reference, SealedSource)
    Path(reference.file).unlink()

    with pytest.raises(SourceError, match="source 'x': its credentials cannot be read") as caught:
        reference.open()

    assert caught.value.hint is not None
    assert "same state folder" in caught.value.hint
    assert SECRET not in str(caught.value)
