"""How much of a server's answer is taken, and for how long, with the settings that say so."""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import Field

from lumos.core.models.base import CanonicalModel

_BYTES_PER_VALUE: Final = 32
"""How many bytes of an answer one JSON value needs on average; `[[],[],…]` has three."""


class AnswerLimits(NamedTuple):
    """The limits of one request and its answer."""

    response_bytes: int = 128_000_000
    """The size of an answer: as it is received, and again after it is unpacked."""
    compression_ratio: int = 200
    seconds: float = 300.0
    """From the first attempt to connect to the last byte of the answer."""

    @property
    def json_values(self) -> int:
        return max(100_000, self.response_bytes // _BYTES_PER_VALUE)


DEFAULT_LIMITS: Final = AnswerLimits()


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


class OverLimitError(Exception):
    """An answer exceeds a limit; `setting` names the setting that raises it."""

    def __init__(self, reason: str, *, setting: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.setting = setting


def require_few_values(content: bytes, limits: AnswerLimits) -> None:
    """Refuse JSON whose values would need many times the memory of its text.

    Raises:
        OverLimitError: it has more values than the limits allow.
    """
    most = limits.json_values
    if len(content) <= 2 * most:
        return
    if sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise OverLimitError(
            f"the answer holds more than {most:,} JSON values", setting="max_response_bytes"
        )


def too_large(limits: AnswerLimits) -> OverLimitError:
    return OverLimitError(
        f"the answer is larger than {limits.response_bytes:,} bytes", setting="max_response_bytes"
    )
