"""The settings that limit what is taken of a server's answers, and for how long."""

from __future__ import annotations

from pydantic import Field

from lumos.core.http.bounds import DEFAULT_LIMITS, AnswerLimits
from lumos.core.models.base import CanonicalModel


class ServerLimits(CanonicalModel):
    """The settings that limit the answers of a catalog's server."""

    request_seconds: float = Field(
        default=DEFAULT_LIMITS.seconds,
        gt=0,
        description="Seconds that one request may take from connecting to the last byte.",
    )
    max_response_bytes: int = Field(
        default=DEFAULT_LIMITS.response_bytes,
        ge=1_000,
        description="The largest answer that is read, in bytes, before and after it is unpacked.",
    )
    max_compression_ratio: int = Field(
        default=DEFAULT_LIMITS.compression_ratio,
        ge=1,
        description="How many times its size an answer of more than 1 MB may unpack to.",
    )

    @property
    def answer_limits(self) -> AnswerLimits:
        return AnswerLimits(
            self.max_response_bytes, self.max_compression_ratio, self.request_seconds
        )
