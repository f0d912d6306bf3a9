"""Turns an address such as `s3://bucket/raw` into the settings of a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from lumos.core.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

_WEBHDFS_PORT: Final = 9870
_AZURE_HOST: Final = (".dfs.core.windows.net", ".blob.core.windows.net")
_SCHEMES_SHOWN: Final = "s3://BUCKET/PREFIX, gs://, abfss://, hdfs://, or a local path"


def source_mapping_of(address: str) -> dict[str, JsonValue]:
    """Return the settings of the source that an address names; a path is local.

    Nothing is asked of the storage. Credentials are found the way that they are for settings.

    Raises:
        UsageError: the address is of no known kind, or it names no bucket.
    """
    scheme, found, _ = address.partition("://")
    if not found:
        return {"type": "local", "path": address}
    reader = _READERS.get(scheme.lower())
    if reader is None:
        raise UsageError(f"no storage has addresses with {scheme}://", hint=f"use {_SCHEMES_SHOWN}")
    if "@" in address.partition("://")[2].partition("/")[0] and scheme.lower() not in _WITH_USER:
        raise UsageError(
            "an address holds no credentials",
            hint="set them in lumos.yaml or in the environment",
        )
    return reader(address)


def _s3(address: str) -> dict[str, JsonValue]:
    return {"type": "s3", **_bucket_of(address)}


def _gcs(address: str) -> dict[str, JsonValue]:
    return {"type": "gcs", **_bucket_of(address)}


def _local(address: str) -> dict[str, JsonValue]:
    return {"type": "local", "path": unquote(urlsplit(address).path)}


def _azure(address: str) -> dict[str, JsonValue]:
    """Read `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`."""
    place, _, prefix = address.partition("://")[2].partition("/")
    container, at, host = place.partition("@")
    account = next((host.removesuffix(end) for end in _AZURE_HOST if host.endswith(end)), "")
    if not at or not container or not account:
        raise UsageError(
            "the address names no container and account",
            hint="for example abfss://container@account.dfs.core.windows.net/raw",
        )
    return {"type": "azure", "account": account, "container": container, **_prefixes(prefix)}


def _hdfs(address: str) -> dict[str, JsonValue]:
    """Read `hdfs://NAMENODE/PATH`; its port is of another protocol, so the usual one is taken."""
    parts = urlsplit(address)
    if not parts.hostname:
        raise UsageError(
            "the address names no namenode", hint="for example hdfs://namenode/data/raw"
        )
    return {
        "type": "hdfs",
        "namenode": f"http://{parts.hostname}:{_WEBHDFS_PORT}",
        **_prefixes(address.partition("://")[2].partition("/")[2]),
    }


def _webhdfs(address: str) -> dict[str, JsonValue]:
    scheme, _, rest = address.partition("://")
    host, _, prefix = rest.partition("/")
    if not host:
        raise UsageError(
            "the address names no namenode", hint="for example webhdfs://namenode:9870/data/raw"
        )
    protocol = "https" if scheme.lower() == "swebhdfs" else "http"
    return {"type": "hdfs", "namenode": f"{protocol}://{host}", **_prefixes(prefix)}


def _bucket_of(address: str) -> dict[str, JsonValue]:
    bucket, _, prefix = address.partition("://")[2].partition("/")
    if not bucket:
        raise UsageError("the address names no bucket", hint=f"use {_SCHEMES_SHOWN}")
    return {"bucket": bucket, **_prefixes(prefix)}


def _prefixes(prefix: str) -> dict[str, JsonValue]:
    clean = prefix.strip("/")
    return {"prefixes": [clean]} if clean else {}


_READERS: Final[dict[str, Callable[[str], dict[str, JsonValue]]]] = {
    "s3": _s3,
    "s3a": _s3,
    "s3n": _s3,
    "gs": _gcs,
    "gcs": _gcs,
    "abfs": _azure,
    "abfss": _azure,
    "wasb": _azure,
    "wasbs": _azure,
    "hdfs": _hdfs,
    "webhdfs": _webhdfs,
    "swebhdfs": _webhdfs,
    "file": _local,
}
_WITH_USER: Final = ("abfs", "abfss", "wasb", "wasbs")
