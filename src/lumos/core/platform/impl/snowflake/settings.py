"""What can be set for Snowflake."""

from __future__ import annotations

from typing import Self

from pydantic import Field, SecretStr, model_validator

from lumos.core.models.base import CanonicalModel, Name


class SnowflakeSettings(CanonicalModel):
    """Settings of Snowflake as a catalog."""

    account: Name = Field(description="The account identifier: ORGANISATION-ACCOUNT.")
    user: Name = Field(description="Who Lumos is there.")
    password: SecretStr | None = Field(default=None, description="A password.")
    token: SecretStr | None = Field(
        default=None, description="A programmatic access token or an OAuth token."
    )
    authenticator: str | None = Field(
        default=None, description="How to log in, in the words of Snowflake's connector."
    )
    private_key_file: str | None = Field(
        default=None, description="A file with the private key of a key pair."
    )
    private_key_passphrase: SecretStr | None = Field(
        default=None, description="What opens the private key."
    )
    role: Name | None = Field(default=None, description="The role to work in.")
    warehouse: Name | None = Field(
        default=None, description="The warehouse that reads and writes the stash."
    )
    databases: tuple[Name, ...] = Field(
        min_length=1, description="The databases to catalog, spelt as Snowflake stores them."
    )
    stash_database: Name | None = Field(
        default=None, description="The database of the stash; the first one of `databases`."
    )
    stash_schema: Name = Field(
        default="LUMOS", description="The schema that Lumos keeps its table and its tags in."
    )
    use_tags: bool = Field(
        default=True,
        description="Show tags as tags of Snowflake, which its Standard edition lacks.",
    )
    transfer_ownership: bool = Field(
        default=False,
        description="Give a table to the role that owns its dataset. It changes who may do what.",
    )
    tag_batch: int = Field(
        default=100, ge=1, le=500, description="How many tables one question for tags is about."
    )
    host: str | None = Field(default=None, description="Another host than the account's own.")
    port: int | None = Field(default=None, ge=1, le=65_535)
    protocol: str | None = Field(default=None, pattern="^https?$")
    timeout: int = Field(default=60, ge=1, description="Seconds to log in, and for an answer.")

    @model_validator(mode="after")
    def _has_one_way_in(self) -> Self:
        ways = [self.password, self.token, self.private_key_file, self.authenticator]
        if not any(ways):
            raise ValueError(
                "a login is missing: password, token, private_key_file or authenticator"
            )
        return self

    @property
    def stash_place(self) -> tuple[str, str]:
        """The database and the schema of the stash."""
        return self.stash_database or self.databases[0], self.stash_schema
