"""What can be set for Amundsen."""

from __future__ import annotations

from pydantic import Field, SecretStr, model_validator

from lumos.core.models.base import Name
from lumos.core.platform.answer_limits import ServerLimits


class AmundsenSettings(ServerLimits):
    """Settings of Amundsen: either `database_url` or `neo4j_url`."""

    database_url: SecretStr | None = Field(
        default=None,
        description="The database of its metadata service: mysql://USER:PASSWORD@HOST/DATABASE.",
    )
    neo4j_url: str | None = Field(
        default=None, description="The HTTP address of its Neo4j: http://HOST:7474. Only read."
    )
    neo4j_username: str | None = None
    neo4j_password: SecretStr | None = None
    neo4j_database: Name = "neo4j"
    timeout: float = Field(
        default=10.0,
        gt=0,
        description="Seconds to wait for a connection; an answer may take six times as long.",
    )

    @model_validator(mode="after")
    def _one_back_end(self) -> AmundsenSettings:
        if (self.database_url is None) == (self.neo4j_url is None):
            raise ValueError("give either database_url or neo4j_url")
        return self
