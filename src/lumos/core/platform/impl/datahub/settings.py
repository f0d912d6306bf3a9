"""The settings of the DataHub adapter."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AliasChoices, Field, SecretStr

from lumos.core.platform.answer_limits import ServerLimits

MOST_ASPECTS: Final = 200
"""What DataHub takes in one request."""
LARGEST_REQUEST: Final = 15_000_000
"""In bytes; DataHub refuses more than 16 MB."""


class DataHubSettings(ServerLimits):
    """Settings of the DataHub adapter."""

    gms_server: str = Field(
        validation_alias=AliasChoices("gms_server", "server", "gms_url", "url"),
        description="The URL of the metadata service: http://HOST:8080, or https://HOST/api/gms.",
    )
    token: SecretStr | None = Field(default=None, description="A personal access token.")
    environment: Annotated[str, Field(pattern=r"^[A-Z][A-Z_]*$")] = Field(
        default="PROD",
        validation_alias=AliasChoices("environment", "env"),
        description="The environment of datasets whose URN names no other.",
    )
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    workers: Annotated[int, Field(ge=1, le=64)] = Field(
        default=8, description="How many requests are under way at a time."
    )
    slices: Annotated[int, Field(ge=1, le=64)] = Field(
        default=4, description="In how many parts, at a time, a listing is read."
    )
    index_seconds: Annotated[float, Field(ge=0)] = Field(
        default=30.0,
        description="Seconds that a search waits for the index to show what was written before.",
    )
    batch_size: Annotated[int, Field(ge=1, le=MOST_ASPECTS)] = Field(
        default=MOST_ASPECTS, description="How many aspects a request writes at most."
    )
    verify: bool | str = Field(
        default=True, description="Check certificates; or a file of authorities to trust."
    )
    hard_delete: bool = Field(
        default=False, description="Remove datasets for good instead of hiding them."
    )
