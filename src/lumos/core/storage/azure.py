"""Azure Blob Storage and Data Lake Storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from pydantic import Field, SecretStr, model_validator
from typing_extensions import override

from lumos.core.storage.object_storage import ObjectAccess, ObjectSource, Target

if TYPE_CHECKING:
    from obstore.store import AzureConfig

PLATFORM: Final = "azure"


class AzureAccess(ObjectAccess):
    """How to get at containers of Azure; else a managed identity is used."""

    account: str = Field(min_length=1, description="The storage account.")
    account_key: SecretStr | None = Field(default=None, description="A key of the account.")
    sas_token: SecretStr | None = Field(default=None, description="A shared access signature.")
    tenant_id: str | None = Field(default=None, description="The tenant of a service principal.")
    client_id: str | None = Field(
        default=None, description="A service principal, or a managed identity of that id."
    )
    client_secret: SecretStr | None = Field(
        default=None, description="The secret of the service principal."
    )
    anonymous: bool = Field(
        default=False, description="Ask without credentials: public containers."
    )
    endpoint_url: str | None = Field(
        default=None, description="Where the account is, if not at Azure, such as an emulator."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        ways = (self.account_key, self.sas_token, self.client_secret, self.anonymous)
        if sum(bool(way) for way in ways) > 1:
            raise ValueError("give one of account_key, sas_token, client_secret and anonymous")
        if self.client_secret is not None and not (self.tenant_id and self.client_id):
            raise ValueError("client_secret needs tenant_id and client_id")
        return self


class AzureSource(ObjectSource, AzureAccess):
    """A container of an Azure storage account."""

    provider = "Azure"
    container: str = Field(min_length=1)

    @property
    @override
    def platform(self) -> str:
        return PLATFORM

    @override
    def target(self) -> Target:
        from obstore.store import AzureStore

        allow_http = (self.endpoint_url or "").startswith("http://")
        store = AzureStore(
            self.container,
            config=self._config(),
            client_options=self.client_options(allow_http=allow_http),
            retry_config=self.retry_config(),
        )
        return Target(
            store=store,
            shown=f"abfss://{self.container}@{self.account}.dfs.core.windows.net",
            bucket=self.container,
            urn_parts=(self.account, self.container),
        )

    def _config(self) -> AzureConfig:
        config: AzureConfig = {"account_name": self.account}
        if self.anonymous:
            config["skip_signature"] = True
        if self.account_key is not None:
            config["account_key"] = self.account_key.get_secret_value()
        if self.sas_token is not None:
            config["sas_key"] = self.sas_token.get_secret_value()
        if self.tenant_id is not None:
            config["tenant_id"] = self.tenant_id
        if self.client_id is not None:
            config["client_id"] = self.client_id
        if self.client_secret is not None:
            config["client_secret"] = self.client_secret.get_secret_value()
        if self.endpoint_url is not None:
            config["endpoint"] = self.endpoint_url
        return config
