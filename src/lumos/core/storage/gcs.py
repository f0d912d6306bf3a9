"""Google Cloud Storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from pydantic import Field, SecretStr, model_validator
from typing_extensions import override

from lumos.core.storage.object_storage import ObjectAccess, ObjectSource, Target

if TYPE_CHECKING:
    from obstore.store import GCSConfig

PLATFORM: Final = "gcs"


class GcsAccess(ObjectAccess):
    """How to get at buckets of Google Cloud Storage; else Google's default credentials are used."""

    service_account_file: str | None = Field(
        default=None, description="The JSON file of a service account."
    )
    service_account_key: SecretStr | None = Field(
        default=None, description="The JSON text of a service account."
    )
    token: SecretStr | None = Field(default=None, description="An OAuth token.")
    anonymous: bool = Field(default=False, description="Ask without credentials: public buckets.")
    endpoint_url: str | None = Field(
        default=None, description="Where a storage other than Google's is, such as an emulator."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        ways = (self.service_account_file, self.service_account_key, self.token, self.anonymous)
        if sum(bool(way) for way in ways) > 1:
            raise ValueError(
                "give one of service_account_file, service_account_key, token and anonymous"
            )
        return self


class GcsSource(ObjectSource, GcsAccess):
    """A bucket of Google Cloud Storage."""

    provider = "Google Cloud"
    bucket: str = Field(min_length=1)

    @property
    @override
    def platform(self) -> str:
        return PLATFORM

    @override
    def target(self) -> Target:
        from obstore.store import GCSStore

        config: GCSConfig = {}
        if self.anonymous:
            config["skip_signature"] = True
        if self.service_account_file is not None:
            config["service_account"] = self.service_account_file
        if self.service_account_key is not None:
            config["service_account_key"] = self.service_account_key.get_secret_value()
        if self.token is not None:
            config["bearer_token"] = self.token.get_secret_value()
        if self.endpoint_url is not None:
            config["base_url"] = self.endpoint_url
        allow_http = (self.endpoint_url or "").startswith("http://")
        store = GCSStore(
            self.bucket,
            config=config,
            client_options=self.client_options(allow_http=allow_http),
            retry_config=self.retry_config(),
        )
        return Target(
            store=store, shown=f"gs://{self.bucket}", bucket=self.bucket, urn_parts=(self.bucket,)
        )
