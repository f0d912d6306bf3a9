"""A certificate that is not accepted is named as such, by whatever client, and not tried again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from lumos.core.certificates import certificate_problem
from lumos.core.errors import LumosError, PlatformCertificateError, SourceError
from lumos.core.platform.http import CatalogHttp
from lumos.core.platform.refusals import ends_run
from lumos.core.storage.gcs import GcsSource
from lumos.core.storage.hdfs import HdfsSource
from lumos.core.storage.s3 import S3Source
from lumos.feature.alerting.channels import DeliveryError, deliver
from lumos.feature.alerting.messages import Message
from lumos.feature.alerting.settings import WebhookChannel
from tls_servers import FAULTS, Authority, TlsServer, tls_server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(authority: Authority, fault: str) -> Iterator[TlsServer]:
    with tls_server(authority.certificate(fault)) as running:
        yield running


@pytest.fixture(autouse=True)
def _without_proxy(monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))


def assert_told(error: LumosError, fault: str, *, authority: str) -> None:
    assert FAULTS[fault] in error.message
    assert "reached" not in error.message
    assert "\n" not in error.message
    said = error.hint if not isinstance(error, DeliveryError) else error.message
    expected = {
        "expired": "renewed",
        "not yet valid": "clock",
        "wrong name": "by the name",
        "self-signed": authority,
    }
    assert expected[fault] in (said or "")


def test_a_catalog_tells_it_after_one_try(server: TlsServer, fault: str) -> None:
    url = f"https://localhost:{server.port}"

    with CatalogHttp(url, name="cat") as http, pytest.raises(PlatformCertificateError) as told:
        http.json("GET", "/x")

    assert_told(told.value, fault, authority="platform_config.cat.verify, or SSL_CERT_FILE")
    assert f"https://localhost:{server.port}" in told.value.message
    assert server.handshakes == 1
    assert ends_run(told.value)


def test_an_s3_endpoint_tells_it_after_one_try(
    server: TlsServer, fault: str, authority: Authority
) -> None:
    source = S3Source(
        name="lake",
        bucket="b",
        endpoint_url=f"https://localhost:{server.port}",
        anonymous=True,
        ca_bundle=str(authority.file),
    )

    with pytest.raises(SourceError) as told:
        source.open().check()

    assert_told(told.value, fault, authority="ca_bundle, or AWS_CA_BUNDLE")
    assert f"localhost:{server.port}" in told.value.message
    assert server.handshakes == 1
    assert not told.value.retryable


def test_a_gcs_endpoint_tells_it_after_one_try(authority: Authority) -> None:
    with tls_server(authority.certificate("self-signed")) as server:
        url = f"https://localhost:{server.port}"
        source = GcsSource(name="lake", bucket="b", endpoint_url=url, anonymous=True)

        with pytest.raises(SourceError, match="its certificate is not trusted"):
            source.open().check()

        assert server.handshakes == 1


def test_a_listing_and_a_read_tell_it_too(authority: Authority) -> None:
    with tls_server(authority.certificate("expired")) as server:
        storage = S3Source(
            name="lake",
            bucket="b",
            endpoint_url=f"https://localhost:{server.port}",
            anonymous=True,
            ca_bundle=str(authority.file),
            retries=0,
        ).open()

        with pytest.raises(LumosError, match=r"localhost:[0-9]+: its certificate has expired"):
            storage.read(b"x.csv", start=0, length=10)


def test_hdfs_tells_it_after_one_try(server: TlsServer, fault: str) -> None:
    source = HdfsSource(name="lake", namenode=f"https://localhost:{server.port}")

    with pytest.raises(SourceError) as told:
        source.open().check()

    assert_told(told.value, fault, authority="SSL_CERT_FILE")
    assert "localhost" in told.value.message
    assert server.handshakes == 1


def test_a_webhook_tells_it(server: TlsServer, fault: str) -> None:
    url = f"https://localhost:{server.port}/secret-path"
    channel = WebhookChannel(name="hook", type="webhook", url=SecretStr(url))

    with pytest.raises(DeliveryError) as told:
        deliver(channel, Message("title", "certificate has expired", ()))

    assert_told(told.value, fault, authority="SSL_CERT_FILE")
    assert "secret-path" not in told.value.message


def test_a_right_certificate_is_accepted(authority: Authority) -> None:
    with tls_server(authority.certificate(None)) as server:
        url = f"https://localhost:{server.port}"
        with CatalogHttp(url, name="cat", verify=str(authority.file)) as http:
            assert http.json("GET", "/x") == {}


def test_other_failures_are_not_blamed_on_certificates() -> None:
    for said in ("Connection refused", "dns error", "timed out", "HTTP error: error sending"):
        assert certificate_problem(said, authority="x") is None
