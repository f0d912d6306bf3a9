"""Settings of the OpenMetadata adapter."""

from __future__ import annotations

from pydantic import Field, SecretStr

from lumos.core.platform.answer_limits import ServerLimits


class OpenMetadataSettings(ServerLimits):
    """What `platform_config.openmetadata` may hold."""

    server: str = Field(
        default="http://localhost:8585",
        description="Its address, with or without /api: http://HOST:8585.",
    )
    auth_token: SecretStr | None = Field(
        default=None, description="The JWT of a bot or of a person, sent as a bearer token."
    )
    timeout: float = Field(default=30.0, gt=0, description="Seconds to wait for an answer.")
    verify: bool | str = Field(
        default=True, description="Whether to check certificates, or a file of authorities."
    )
    workers: int = Field(default=8, ge=1, le=64, description="Requests under way at a time.")
    page_size: int = Field(default=200, ge=1, le=1_000, description="Entities to a page of a list.")
    entity_rules: bool = Field(
        default=True,
        description="Whether the server has its default entity rules: owners are users or one "
        "team, and there is one domain. What they do not allow is stashed.",
    )
    profile_days: int = Field(
        default=30,
        ge=0,
        le=3_650,
        description="Of how many days before the latest profile of others earlier ones are read.",
    )
