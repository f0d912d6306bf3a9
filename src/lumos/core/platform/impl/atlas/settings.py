"""What can be set for Apache Atlas."""

from __future__ import annotations

from pydantic import Field, SecretStr

from lumos.core.models.base import Name
from lumos.core.platform.answer_limits import ServerLimits
from lumos.core.platform.impl.atlas.mapping.foreign import TABLE_TYPES


class AtlasSettings(ServerLimits):
    """Settings of the Apache Atlas platform."""

    url: str = Field(
        default="http://localhost:21000",
        description="Where the server is, without /api/atlas.",
    )
    username: str | None = Field(default=None, description="For HTTP Basic.")
    password: SecretStr | None = Field(default=None, description="For HTTP Basic.")
    token: SecretStr | None = Field(
        default=None, description="A bearer token, where a proxy in front of Atlas asks for one."
    )
    verify: bool | str = Field(
        default=True, description="Check the certificate; or a file of authorities to trust."
    )
    timeout_seconds: float = Field(default=60.0, gt=0)
    attempts: int = Field(default=6, ge=1, le=20, description="How often a request is tried.")
    glossary: Name = Field(
        default="Lumos",
        pattern=r"^[^.@]+$",
        description="The glossary that new business terms are put into; Atlas takes no `.` or `@`.",
    )
    table_types: tuple[Name, ...] = Field(
        default=TABLE_TYPES,
        description="Types of tables that others write to Atlas, to be read as datasets.",
    )
    purge: bool = Field(
        default=False, description="Purge what is deleted, which needs an administrator."
    )
